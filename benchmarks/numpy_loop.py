"""The loop a user of NumPy would write: Python over iterations, arrays over clients and chains, ``default_rng``."""

import numpy as np


def quadratic(precision, mean, start, gamma, tau, p, q, chains, steps, reduced):
    """Run FALD or VR-FALD* (``reduced``) for dense quadratics; X: float64[b, s, d]."""
    b, d = mean.shape
    random = np.random.default_rng(1)
    x = np.tile(start, (b, chains, 1))
    y = np.tile(start, (chains, 1))
    shift = np.matmul(y - mean[:, None], precision).mean(axis=0)
    coins = random.random((steps, 2)) < (p, q)
    total, count = np.zeros((chains, d)), 0
    common, private = (2.0 * gamma * tau / b) ** 0.5, (2.0 * gamma * (1.0 - tau)) ** 0.5
    for averages, refreshes in coins:
        center = x.mean(axis=0) if reduced and refreshes else None
        g = np.matmul(x - y, precision) + shift if reduced else np.matmul(x - mean[:, None], precision)
        x = x - gamma * g
        if tau > 0.0:
            x += common * random.standard_normal((chains, d))
        if tau < 1.0:
            x += private * random.standard_normal((b, chains, d))
        if averages:
            average = x.mean(axis=0)
            x[:] = average
            total += average
            count += 1
        if center is not None:
            y = center
            shift = np.matmul(y - mean[:, None], precision).mean(axis=0)
    return total, count


def normals(out):
    """Fill an array with standard normals (Ziggurat, PCG64)."""
    _RANDOM.standard_normal(out=out)


_RANDOM = np.random.default_rng(1)
