"""The two cases with a printed formula (specification, section 3 items 1 and 2)."""

import numpy as np


def one_client_variance(curvature: float, step_size: float) -> float:
    """Return the stationary variance ``1 / (h (1 - γ h / 2))`` of one client with ``U = h x²/2``."""
    return 1 / (curvature * (1 - step_size * curvature / 2))


def two_clients(means: np.ndarray, variances: np.ndarray, step_size: float) -> tuple[float, float]:
    """Return mean and variance with exactly two local steps a round, τ = 1, ``U^i = (x - μ_i)²/(2 s_i)``."""
    s = np.asarray(variances, dtype=np.float64)
    mu = np.asarray(means, dtype=np.float64)
    sigma2 = 1 / np.sum(1 / s)
    centre = sigma2 * np.sum(mu / s)
    s4 = np.sum(1 / s**2)
    half = step_size / 2
    mean = (centre - half * sigma2 * np.sum(mu / s**2)) / (1 - half * sigma2 * s4)
    sigma = np.sqrt(sigma2)
    contraction = half * (1 / sigma - step_size * sigma * s4 / 2) ** 2
    variance = (sigma2 - half + step_size**2 / (8 * sigma2)) / (1 - half * sigma2 * s4 - contraction)
    return float(mean), float(variance)
