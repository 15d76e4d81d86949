"""The potentials, one file each, found by name."""

import importlib
import pkgutil

from fald_hpc.potentials.base import Potential

__all__ = ["Potential", "by_name"]


def by_name() -> dict[str, type[Potential]]:
    """Return all potentials by their configuration name; a new file in this folder is found without registration."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    found: dict[str, type[Potential]] = {}
    pending = [Potential]
    while pending:
        for subclass in pending.pop().__subclasses__():
            if "name" in vars(subclass):
                found[subclass.name] = subclass
            pending.append(subclass)
    return dict(sorted(found.items()))
