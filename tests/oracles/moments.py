"""Stationary moments of a random affine recursion, by a linear solve (specification, section 3 item 3)."""

from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from .recursions import Outcome, Recursion

DENSE_UP_TO = 24
"""Largest state whose second moments are solved by a dense matrix of its Kronecker products."""


class Moments(NamedTuple):
    """Stationary law of a recursion, at every iteration.

    Attributes
    ----------
    mean, covariance : float64[d], float64[d, d]
        Of the average over clients, in the parameter's own coordinates.
    state_mean, state_covariance : float64[size], float64[size, size]
        Of the whole state, centred at the mode of the product.
    """

    mean: np.ndarray
    covariance: np.ndarray
    state_mean: np.ndarray
    state_covariance: np.ndarray


def expected_matrix(outcomes: list[Outcome]) -> np.ndarray:
    """E[M], float64[size, size]."""
    return np.sum([o.probability * o.matrix for o in outcomes], axis=0)


def stationary(recursion: Recursion) -> Moments:
    """Exact stationary mean and covariance.

    The mean solves ``m = E[M] m + E[c]``, the second moment
    ``S = E[M S M' + M m c' + c m' M' + c c' + noise]``.
    """
    outcomes = recursion.outcomes
    size = len(outcomes[0].constant)
    shift = np.sum([o.probability * o.constant for o in outcomes], axis=0)
    mean = np.linalg.solve(np.eye(size) - expected_matrix(outcomes), shift)
    second = solve_second_moment(outcomes, source(outcomes, mean, with_noise=True))
    covariance = second - np.outer(mean, mean)
    r = recursion.observe
    return Moments(recursion.origin + r @ mean, r @ covariance @ r.T, mean, covariance)


def source(outcomes: list[Outcome], mean: np.ndarray, *, with_noise: bool) -> np.ndarray:
    """E[M m c' + c m' M' + c c' (+ noise)]: what feeds the second moment besides itself."""
    total = np.zeros_like(outcomes[0].matrix)
    for o in outcomes:
        cross = np.outer(o.matrix @ mean, o.constant)
        total += o.probability * (cross + cross.T + np.outer(o.constant, o.constant))
        if with_noise:
            total += o.probability * o.noise
    return total


def solve_second_moment(outcomes: list[Outcome], feed: np.ndarray, dense_up_to: int = DENSE_UP_TO) -> np.ndarray:
    """Solve ``S = E[M S M'] + feed`` for the symmetric S, densely or with GMRES.

    Raises
    ------
    ArithmeticError
        If GMRES does not reach a relative residual of 1e-11.
    """
    size = len(feed)
    if size <= dense_up_to:
        lifted = np.sum([o.probability * np.kron(o.matrix, o.matrix) for o in outcomes], axis=0)
        return np.linalg.solve(np.eye(size * size) - lifted, feed.ravel()).reshape(size, size)

    def residual_map(flat: np.ndarray) -> np.ndarray:
        s = flat.reshape(size, size)
        image = sum(o.probability * (o.matrix @ s @ o.matrix.T) for o in outcomes)
        return (s - image).ravel()

    operator = LinearOperator((size * size, size * size), matvec=residual_map, dtype=np.float64)
    flat, _ = gmres(operator, feed.ravel(), rtol=1e-12, restart=200, maxiter=5)
    left = np.linalg.norm(residual_map(flat) - feed.ravel()) / np.linalg.norm(feed)
    if not left < 1e-11:
        raise ArithmeticError(f"GMRES stopped at a relative residual of {left:.2e}")
    s = flat.reshape(size, size)
    return (s + s.T) / 2
