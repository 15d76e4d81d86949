"""Sampled moments against exact ones, with tolerances from theory.

The mean must lie within ``LIMIT`` standard errors, from the exact variance of a time average (of chains that share
their coins, or do not). An entry of the covariance must lie within ``LIMIT`` of the larger of two standard errors: the
exact one of a Gaussian series, and one from 25 batches of the series averaged over chains, which knows of shared coins;
the second may not exceed three times the first, or the sampler is not the one that the oracle describes.
"""

from typing import NamedTuple

import numpy as np

from oracles import averages, moments
from oracles.recursions import Recursion

LIMIT = 4.5
BATCHES = 25


class Agreement(NamedTuple):
    """Distances from the exact moments, in standard errors.

    Attributes
    ----------
    mean : float64[d]
    covariance : float64[d, d]
    batch_ratio : float
        Largest ratio of the batch estimate of a covariance's standard error to the exact one.
    bias : float64[d]
        Exact bias of the mean against the mode of the product, in standard errors.
    """

    mean: np.ndarray
    covariance: np.ndarray
    batch_ratio: float
    bias: np.ndarray


def mean_error(recursion: Recursion, records: float, chains: int, *, shared: bool) -> np.ndarray:
    """Return the exact standard errors of a grand mean, float64[d]."""
    series = averages.at_communications(recursion)
    return np.sqrt(np.diag(averages.mean_variance(series, records, chains, shared=shared)))


def compare(draws: list[np.ndarray], recursion: Recursion, *, shared: bool) -> Agreement:
    """Compare the records of several chains, float64[r, d] each, taken at communication times after a burn-in."""
    exact = moments.stationary(recursion)
    series = averages.at_communications(recursion, exact)
    chains = len(draws)
    records = float(np.mean([len(x) for x in draws]))
    mean_error = np.sqrt(np.diag(averages.mean_variance(series, records, chains, shared=shared)))
    grand = np.mean([x.mean(axis=0) for x in draws], axis=0)

    shortest = min(len(x) for x in draws)
    cut = shortest - shortest % BATCHES
    squares = np.zeros((cut, *exact.covariance.shape))
    for x in draws:
        centred = x[:cut] - exact.mean
        squares += centred[:, :, None] * centred[:, None, :]
    squares /= chains
    means = squares.reshape(BATCHES, cut // BATCHES, *exact.covariance.shape).mean(axis=1)
    batch_error = means.std(axis=0, ddof=1) / np.sqrt(BATCHES)
    theory_error = np.sqrt(averages.covariance_variance(series, cut, chains))
    error = np.maximum(batch_error, theory_error)
    return Agreement(
        (grand - exact.mean) / mean_error,
        (squares.mean(axis=0) - exact.covariance) / error,
        float(np.max(batch_error / theory_error)),
        (exact.mean - recursion.origin) / mean_error,
    )


def check(draws: list[np.ndarray], recursion: Recursion, *, shared: bool) -> Agreement:
    """Compare, and raise AssertionError unless mean and covariance agree."""
    found = compare(draws, recursion, shared=shared)
    assert np.all(np.abs(found.mean) < LIMIT), f"mean off by {found.mean} standard errors"
    assert found.batch_ratio < 3, f"the covariance fluctuates {found.batch_ratio:.1f} times as much as it should"
    assert np.all(np.abs(found.covariance) < LIMIT), f"covariance off by {found.covariance} standard errors"
    return found
