"""Federated Bayesian posteriors by FALD and VR-FALD*.

The public names are loaded when they are first used, so that importing the package is cheap.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fald_hpc.data.clients import Clients as Clients
    from fald_hpc.data.partition import partition as partition
    from fald_hpc.errors import UserError as UserError
    from fald_hpc.potentials.custom import row_potential as row_potential
    from fald_hpc.potentials.gaussian import Gaussian as Gaussian
    from fald_hpc.potentials.linear import Linear as Linear
    from fald_hpc.potentials.logistic import Logistic as Logistic
    from fald_hpc.potentials.poisson import Poisson as Poisson
    from fald_hpc.potentials.softmax import Softmax as Softmax
    from fald_hpc.run import Run as Run
    from fald_hpc.run import open_run as open_run
    from fald_hpc.samplers.fald import FALD as FALD
    from fald_hpc.samplers.vr_fald_star import VRFALDStar as VRFALDStar
    from fald_hpc.sampling import sample as sample

__version__ = "0.1.0"

_HOMES = {
    "Clients": "fald_hpc.data.clients",
    "FALD": "fald_hpc.samplers.fald",
    "Gaussian": "fald_hpc.potentials.gaussian",
    "Linear": "fald_hpc.potentials.linear",
    "Logistic": "fald_hpc.potentials.logistic",
    "Poisson": "fald_hpc.potentials.poisson",
    "Run": "fald_hpc.run",
    "Softmax": "fald_hpc.potentials.softmax",
    "UserError": "fald_hpc.errors",
    "VRFALDStar": "fald_hpc.samplers.vr_fald_star",
    "open_run": "fald_hpc.run",
    "partition": "fald_hpc.data.partition",
    "row_potential": "fald_hpc.potentials.custom",
    "sample": "fald_hpc.sampling",
}

__all__ = [*sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'fald_hpc' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return [*_HOMES, "__version__"]
