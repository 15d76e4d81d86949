"""Expectations of the slowest of many ranks, in closed form or by one integral."""

import math

import numpy as np


def largest(
    means: np.ndarray, counts: np.ndarray, sd: np.ndarray | float, hit: np.ndarray | float = 0.0, detour: float = 0.0
) -> float:
    """Return E max over independent ranks: a normal, plus with probability ``hit`` an exponential of mean ``detour``.

    By the trapezoidal rule on the survival function of the maximum; relative error below 1e-3 of the spread.

    Parameters
    ----------
    means, counts : float64[g]
        Mean of each rank of a group, and ranks in it.
    sd, hit : float64[g] or float
        Of each rank of a group.
    detour : float
        In the units of ``means``.
    """
    from scipy.special import log_ndtr

    means, counts = np.asarray(means, float), np.asarray(counts, float)
    share = np.broadcast_to(np.asarray(hit, float), means.shape) if detour > 0.0 else np.zeros(means.shape)
    # without spread the law has a jump, which the rule below resolves as a narrow normal
    spread = np.maximum(sd, 1e-6 * max(float(np.abs(means).max()), detour)) + np.zeros(means.shape)
    if not (np.asarray(sd) > 0.0).any() and not (share > 0.0).any():
        return float(means.max())
    reach = math.sqrt(2.0 * math.log(max(2.0, float(counts.sum())))) + 8.0
    low, high = float((means - 9.0 * spread).max()), float((means + reach * spread).max())
    x = np.linspace(low, high, 2001)
    if (share > 0.0).any():
        x = np.append(x, high + detour * (12.0 + math.log1p(float(counts @ share))) * np.linspace(0.0, 1.0, 1501)[1:])
    z = (x[:, None] - means) / spread
    within = np.exp(log_ndtr(z))
    if (share > 0.0).any():
        # a normal plus an exponential (exponentially modified Gaussian)
        ratio = spread / detour
        late = np.exp(np.minimum(0.5 * ratio**2 - z * ratio + log_ndtr(z - ratio), 0.0))
        within = within - share * np.minimum(late, within)
    with np.errstate(divide="ignore"):
        below = np.exp((counts * np.log(within)).sum(axis=1))
    return float(low + np.trapezoid(1.0 - below, x))


def geometric(p: float, nodes: int = 96) -> tuple[np.ndarray, np.ndarray]:
    """Return values and weights of a quadrature of the geometric law on 1, 2, ...: exact mean, all but 1e-9 of mass.

    Long gaps are binned; a bin is represented by its conditional mean.
    """
    if p >= 1.0:
        return np.ones(1), np.ones(1)
    last = max(2, math.ceil(math.log(1e-9) / math.log1p(-p)))
    edges = np.unique(np.round(np.concatenate([np.arange(1, 33), np.geomspace(33, last + 1, nodes)])).astype(np.int64))
    edges = edges[edges <= last + 1]
    survival = np.exp((edges - 1) * math.log1p(-p))  # P(G >= edge)
    # E[G; G >= n] = (n - 1 + 1/p) P(G >= n)
    tail = (edges - 1 + 1.0 / p) * survival
    weights = np.append(-np.diff(survival), survival[-1])
    firsts = np.append(-np.diff(tail), tail[-1])
    keep = weights > 0.0
    return firsts[keep] / weights[keep], weights[keep]
