"""The Titanic table of the specification's section 5, client splits, and its posterior by importance sampling."""

from typing import NamedTuple

import numpy as np

# (class, child, male): (died, survived); classes first, second, third, crew = 0, 1, 2, 3
TABLE = {
    (0, 1, 1): (0, 5),
    (0, 1, 0): (0, 1),
    (0, 0, 1): (118, 57),
    (0, 0, 0): (4, 140),
    (1, 1, 1): (0, 11),
    (1, 1, 0): (0, 13),
    (1, 0, 1): (154, 14),
    (1, 0, 0): (13, 80),
    (2, 1, 1): (35, 13),
    (2, 1, 0): (17, 14),
    (2, 0, 1): (387, 75),
    (2, 0, 0): (89, 76),
    (3, 0, 1): (670, 192),
    (3, 0, 0): (3, 20),
}


class Posterior(NamedTuple):
    """Reference moments and their own Monte Carlo errors, float64[4] each."""

    mean: np.ndarray
    sd: np.ndarray
    mean_error: np.ndarray
    sd_error: np.ndarray


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Features float64[2201, 4] (intercept; class, child, male standardised) and survival float64[2201]."""
    raw, survived = [], []
    for (cls, child, male), counts in TABLE.items():
        for value, count in zip((0.0, 1.0), counts, strict=True):
            raw += [(cls, child, male)] * count
            survived += [value] * count
    x = np.array(raw, dtype=np.float64)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return np.column_stack([np.ones(len(x)), x]), np.array(survived)


def split(b: int, seed: int = 0) -> list[np.ndarray]:
    """Row indices of b clients of uneven sizes with different shares of survivors; disjoint and complete."""
    rng = np.random.default_rng(seed)
    _, y = rows()
    parts: list[list[int]] = [[] for _ in range(b)]
    for label in (0.0, 1.0):
        owner = rng.choice(b, size=int(np.sum(y == label)), p=rng.dirichlet(np.ones(b)))
        for row, i in zip(np.flatnonzero(y == label), owner, strict=True):
            parts[i].append(int(row))
    return [np.array(sorted(p), dtype=np.int64) for p in parts]


def potential(theta: np.ndarray) -> np.ndarray:
    """U for theta float64[..., 4]: minus log likelihood of all rows plus half the squared norm, in nats."""
    x, y = rows()
    patterns, index = np.unique(x, axis=0, return_inverse=True)
    ones = np.bincount(index.ravel(), weights=y)
    totals = np.bincount(index.ravel())
    t = theta @ patterns.T
    return np.logaddexp(0, t) @ totals - t @ ones + 0.5 * np.sum(theta**2, axis=-1)


def mode() -> tuple[np.ndarray, np.ndarray]:
    """Mode float64[4] and the inverse Hessian of U there, by Newton's method."""
    x, y = rows()
    theta = np.zeros(4)
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ theta))
        hessian = (x * (p * (1 - p))[:, None]).T @ x + np.eye(4)
        theta = theta - np.linalg.solve(hessian, x.T @ (p - y) + theta)
    return theta, np.linalg.inv(hessian)


def posterior(draws: int = 400_000, seed: int = 0) -> Posterior:
    """Mean and sd of the posterior by self-normalised importance sampling around the mode.

    The proposal is normal with 1.1 times the Laplace covariance. Errors are delta-method standard errors.
    """
    rng = np.random.default_rng(seed)
    centre, covariance = mode()
    factor = np.linalg.cholesky(1.1 * covariance)
    z = rng.standard_normal((draws, 4))
    theta = centre + z @ factor.T
    log_weight = 0.5 * np.sum(z**2, axis=1) - potential(theta)
    w = np.exp(log_weight - log_weight.max())
    w /= w.sum()
    mean = w @ theta
    square = (theta - mean) ** 2
    variance = w @ square
    mean_error = np.sqrt(w**2 @ square)
    variance_error = np.sqrt(w**2 @ (square - variance) ** 2)
    sd = np.sqrt(variance)
    return Posterior(mean, sd, mean_error, variance_error / (2 * sd))


def quadrature(points: int = 15) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd by tensor Gauss-Hermite quadrature: a second way, for checking the first."""
    centre, covariance = mode()
    factor = np.linalg.cholesky(covariance)
    nodes, weights = np.polynomial.hermite_e.hermegauss(points)
    grid = np.stack(np.meshgrid(*[nodes] * 4, indexing="ij"), axis=-1).reshape(-1, 4)
    w = np.prod(np.stack(np.meshgrid(*[weights] * 4, indexing="ij"), axis=-1).reshape(-1, 4), axis=1)
    theta = centre + grid @ factor.T
    log_ratio = 0.5 * np.sum(grid**2, axis=1) - potential(theta)
    w = w * np.exp(log_ratio - log_ratio.max())
    w /= w.sum()
    mean = w @ theta
    return mean, np.sqrt(w @ (theta - mean) ** 2)
