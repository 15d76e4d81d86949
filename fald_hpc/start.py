"""Where chains start: apart by default, so that R-hat can show a failure to converge."""

from typing import Any

import numpy as np

from fald_hpc.errors import UserError
from fald_hpc.federation import Federation
from fald_hpc.kernels.noise import INIT
from fald_hpc.kernels.normals import fill_normals
from fald_hpc.linalg import backward, cholesky
from fald_hpc.mode import DENSE_LIMIT

SPREAD = 2.0
"""Standard deviations of the Laplace approximation by which dispersed chains start apart."""


def initial(init: Any, federation: Federation, mode: np.ndarray | None, key: np.uint64, chains: range) -> np.ndarray:
    """Return X_0 of some chains: float64[s, d], the same for all clients of a chain.

    Parameters
    ----------
    init : "dispersed", "mode", "prior" or array
        "dispersed": the federated mode plus :data:`SPREAD` Laplace standard deviations times a normal draw;
        "prior": a draw of N(0, σ² I); an array: float64[d] for all chains, or float64[chains, d].
    federation : Federation
        The clients.
    mode : float64[d] or None
        The federated mode where ``init`` needs it.
    key : uint64
        Generator key.
    chains : range
        Global indices of the chains.

    Raises
    ------
    UserError
        If ``init`` is unknown, has the wrong shape or is not finite.
    """
    d = federation.dimension
    if isinstance(init, str) and init in ("dispersed", "mode"):
        assert mode is not None
        x = np.tile(mode, (len(chains), 1))
        if init == "mode":
            return x
        spread = _laplace_factor(federation, mode)
        for s, chain in enumerate(chains):
            z = _normals(key, chain, d)
            x[s] += SPREAD * (backward(spread, z) if spread.ndim == 2 else z / spread)
        return x
    if isinstance(init, str) and init == "prior":
        scale = getattr(federation.potential, "prior_scale", None)
        if scale is None:
            raise UserError(f'init = "prior": the {federation.potential.name} potential has no prior; choose "mode".')
        return np.array([scale * _normals(key, chain, d) for chain in chains])
    if isinstance(init, str):
        raise UserError(f'init = {init!r}: give "dispersed", "mode", "prior" or a list of numbers.')
    x = np.asarray(init, np.float64)
    if x.ndim == 1 and x.size == d:
        x = np.tile(x, (max(chains) + 1, 1))
    if x.ndim != 2 or x.shape[1] != d or x.shape[0] <= max(chains):
        raise UserError(f"init has shape {list(np.shape(init))}; give {d} numbers, or one such row per chain.")
    if not np.isfinite(x).all():
        raise UserError("init holds a value that is not finite.")
    return np.ascontiguousarray(x[list(chains)])


def _normals(key: np.uint64, chain: int, d: int) -> np.ndarray:
    z = np.empty((1, d))
    fill_normals(key, INIT, chain, 0, 0, z)
    return z[0]


def _laplace_factor(federation: Federation, mode: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor of U's Hessian at the mode, or the square root of its diagonal in high dimension."""
    if federation.dimension <= DENSE_LIMIT:
        return cholesky(federation.hessian(mode) * federation.n_clients)
    return np.sqrt(federation.hessian_diagonal(mode) * federation.n_clients)
