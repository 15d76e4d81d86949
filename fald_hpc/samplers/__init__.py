"""The samplers, one file each, found by name."""

import importlib
import pkgutil

from fald_hpc.samplers.base import Sampler
from fald_hpc.samplers.fald import FALD
from fald_hpc.samplers.vr_fald_star import VRFALDStar

__all__ = ["FALD", "Sampler", "VRFALDStar", "by_name"]


def by_name() -> dict[str, type[Sampler]]:
    """Return all samplers by their configuration name; a new file in this folder is found without registration."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    found: dict[str, type[Sampler]] = {}
    pending = [Sampler]
    while pending:
        for subclass in pending.pop().__subclasses__():
            found[subclass.name] = subclass
            pending.append(subclass)
    return dict(sorted(found.items()))
