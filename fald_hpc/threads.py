"""Thread pools of numerical libraries, capped at one thread a rank where the user has not said otherwise.

Every rank is one core's work; libraries that start one thread a core each would fight over the cores. The variables are
read by the libraries when they are loaded: call :func:`cap` before the first import of NumPy. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

OPENMP = "OMP_NUM_THREADS"
# Fall back to OMP_NUM_THREADS when unset, so an explicit OMP_NUM_THREADS must stay the last word for them.
FOLLOW_OPENMP = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
OTHERS = ("NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
VARIABLES = (OPENMP, *FOLLOW_OPENMP, *OTHERS)

_capped_here: set[str] = set()


def cap(environ: MutableMapping[str, str]) -> tuple[str, ...]:
    """Set the variables that are unset to 1 and return their names; explicit settings stay.

    Parameters
    ----------
    environ : MutableMapping
        Environment variables, changed in place.
    """
    names = (OPENMP, *FOLLOW_OPENMP, *OTHERS) if OPENMP not in environ else OTHERS
    unset = tuple(name for name in names if name not in environ)
    for name in unset:
        environ[name] = "1"
    _capped_here.update(unset)
    return unset


def recorded(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in force for the manifest: ``"1 (capped)"``, the user's own value, or ``"unset"``."""
    return {
        name: f"{environ[name]} (capped)" if name in _capped_here and name in environ else environ.get(name, "unset")
        for name in VARIABLES
    }
