"""The federated mode: the minimiser of U = Σ_i U^i, from exact means over clients, equal to the bit on every layout."""

import numpy as np

from fald_hpc.errors import UserError
from fald_hpc.federation import Federation
from fald_hpc.kernels.jit import fma, jit
from fald_hpc.linalg import cholesky, solve_cholesky

DENSE_LIMIT = 400
"""Largest dimension for which Hessians are formed; beyond it curvature is diagonal and the mode found by L-BFGS."""

_MEMORY = 10
_ITERATIONS = 200


@jit
def dot(a, b):
    """Return a·b summed in ascending order (BLAS sums in an order that depends on the processor)."""
    total = 0.0
    for j in range(a.size):
        total = fma(a[j], b[j], total)
    return total


def find_mode(federation: Federation) -> np.ndarray:
    """Return the mode: float64[d].

    Newton's method with the mean Hessian up to :data:`DENSE_LIMIT` parameters, limited-memory BFGS beyond, both with a
    line search on the slope alone: U is convex, so a step is good where the slope along it has come near zero.

    Raises
    ------
    UserError
        If the potential is not convex enough or no mode is found.
    """
    x = np.zeros(federation.dimension)
    dense = federation.dimension <= DENSE_LIMIT
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    gradient = _gradient(federation, x)
    for _ in range(_ITERATIONS if dense else 10 * _ITERATIONS):
        norm = np.sqrt(dot(gradient, gradient))
        if norm == 0.0:
            return x
        direction = _newton(federation, x, gradient) if dense else _lbfgs(federation, x, gradient, pairs)
        slope = dot(gradient, direction)
        if not slope < 0.0:
            return x
        # the step's length in the metric of the curvature, in posterior standard deviations, squared
        if federation.n_clients * -slope < 1e-14:
            return x
        scale = 1.0
        for _ in range(60):
            moved = x + scale * direction
            new_gradient = _gradient(federation, moved)
            new_slope = dot(new_gradient, direction)
            if np.isfinite(new_slope) and abs(new_slope) <= 0.9 * -slope:
                break
            scale *= 0.5
        else:
            return x
        pairs.append((moved - x, new_gradient - gradient))
        del pairs[:-_MEMORY]
        x, gradient = moved, new_gradient
    if federation.n_clients * -slope > 1e-4:
        raise UserError(
            "the mode of the posterior was not found: the potential may not be convex or not have a minimum; "
            'set init in [sampler] to a list of numbers, "prior", and give step_size as a number.'
        )
    return x


def _gradient(federation: Federation, x: np.ndarray) -> np.ndarray:
    try:
        return federation.gradient(x)
    except FloatingPointError:
        return np.full(x.size, np.nan)


def _newton(federation: Federation, x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    hessian = federation.hessian(x)
    ridge = 0.0
    while True:
        try:
            return -solve_cholesky(cholesky(hessian + ridge * np.eye(x.size)), gradient)
        except np.linalg.LinAlgError:
            ridge = max(2.0 * ridge, 1e-10 * float(np.abs(np.diag(hessian)).max()), 1e-300)
            if not np.isfinite(ridge):
                raise UserError("the curvature of the potential at a trial point is not finite; rescale the data.") from None


def _lbfgs(
    federation: Federation, x: np.ndarray, gradient: np.ndarray, pairs: list[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """Return the quasi-Newton direction from the last steps (two-loop recursion), diagonal curvature as its start."""
    q = gradient.copy()
    weights = []
    good = [(s, y, dot(s, y)) for s, y in pairs]
    good = [(s, y, sy) for s, y, sy in good if sy > 0.0]
    for s, y, sy in reversed(good):
        a = dot(s, q) / sy
        q = q - a * y
        weights.append(a)
    q = q / federation.hessian_diagonal(x)
    for (s, y, sy), a in zip(good, reversed(weights), strict=True):
        q = q + s * (a - dot(y, q) / sy)
    return -q
