"""Variance of time averages of a random affine recursion: where the tests' tolerances come from.

Records are the averages over clients at communication times (or at every iteration). Between two records the state
moves by ``s -> P s + a + noise`` with independent (P, a), so ``Cov(s_{n+l}, s_n) = E[P]^l Cov(s_n)`` exactly, and
``n Var(time average) -> G + (I - E[P])^{-1} E[P] G + transposed`` with G the covariance at a record. The number of
records in a run of fixed length is random; by Anscombe's theorem that leaves the limit as it is.
"""

from typing import NamedTuple

import numpy as np

from .moments import Moments, expected_matrix, solve_second_moment, source, stationary
from .recursions import Outcome, Recursion


class Series(NamedTuple):
    """The stationary series of records of one chain, and how two chains that share coins depend.

    Attributes
    ----------
    transfer : float64[size, size]
        E[P]: expected move of the state from one record to the next.
    covariance : float64[size, size]
        Of the state at a record.
    cross_covariance : float64[size, size]
        Between the states of two chains with the same coins but other noise and minibatches, at a record.
    observe : float64[d, size]
    """

    transfer: np.ndarray
    covariance: np.ndarray
    cross_covariance: np.ndarray
    observe: np.ndarray


def at_communications(recursion: Recursion, moments: Moments | None = None) -> Series:
    """Series of the records taken right after each averaging."""
    outcomes = recursion.outcomes
    moments = stationary(recursion) if moments is None else moments
    size = len(moments.state_mean)
    comm_prob = sum(o.probability for o in outcomes if o.averages)
    fires = [o._replace(probability=o.probability / comm_prob) for o in outcomes if o.averages]
    quiet = [o for o in outcomes if not o.averages]
    # probability-weighted moves without averaging: sum over gaps of E[M 1(B=0)]^gap
    gap = np.linalg.inv(np.eye(size) - expected_matrix(quiet)) if quiet else np.eye(size)
    transfer = comm_prob * expected_matrix(fires) @ gap
    mean = moments.state_mean
    shared = _shared_covariance(recursion, moments)
    return Series(
        transfer,
        _at_fired(fires, mean, moments.state_covariance, with_noise=True),
        _at_fired(_given_coins(fires), mean, shared, with_noise=False),
        recursion.observe,
    )


def at_every_step(recursion: Recursion, moments: Moments | None = None) -> Series:
    """Series of the records taken after every iteration."""
    moments = stationary(recursion) if moments is None else moments
    return Series(
        expected_matrix(recursion.outcomes),
        moments.state_covariance,
        _shared_covariance(recursion, moments),
        recursion.observe,
    )


def _given_coins(outcomes: list[Outcome]) -> list[Outcome]:
    """Average the minibatches out: what two chains that share their coins, and nothing else, have in common."""
    groups: dict[tuple[bool, bool], list[Outcome]] = {}
    for o in outcomes:
        groups.setdefault((o.averages, o.refreshes), []).append(o)
    merged = []
    for (averages, refreshes), members in groups.items():
        p = sum(o.probability for o in members)
        matrix = np.sum([o.probability / p * o.matrix for o in members], axis=0)
        constant = np.sum([o.probability / p * o.constant for o in members], axis=0)
        merged.append(Outcome(p, averages, refreshes, matrix, constant, np.zeros_like(matrix)))
    return merged


def _shared_covariance(recursion: Recursion, moments: Moments) -> np.ndarray:
    """Covariance between two chains that share coins: the same equation, minibatches averaged, without noise."""
    outcomes = _given_coins(recursion.outcomes)
    feed = source(outcomes, moments.state_mean, with_noise=False)
    if not np.any(feed):
        return np.zeros_like(feed)
    raw = solve_second_moment(outcomes, feed)
    return raw - np.outer(moments.state_mean, moments.state_mean)


def _at_fired(fires: list[Outcome], mean: np.ndarray, covariance: np.ndarray, *, with_noise: bool) -> np.ndarray:
    """Covariance right after an averaging, from the stationary covariance before it."""
    raw = covariance + np.outer(mean, mean)
    moved = sum(o.probability * (o.matrix @ raw @ o.matrix.T) for o in fires)
    moved = moved + source(fires, mean, with_noise=with_noise)
    after = sum(o.probability * (o.matrix @ mean + o.constant) for o in fires)
    return moved - np.outer(after, after)


def variance_rate(series: Series, covariance: np.ndarray) -> np.ndarray:
    """Return n times the variance of an average of n records, for large n, float64[d, d]."""
    lagged = np.linalg.solve(np.eye(len(covariance)) - series.transfer, series.transfer @ covariance)
    total = covariance + lagged + lagged.T
    return series.observe @ total @ series.observe.T


def mean_variance(series: Series, records: float, chains: int, *, shared: bool) -> np.ndarray:
    """Covariance of the grand mean over ``chains`` of ``records`` each, float64[d, d].

    With shared coins the chains depend on each other and their number helps less.
    """
    own = variance_rate(series, series.covariance) / records
    if not shared:
        return own / chains
    return (own + (chains - 1) * variance_rate(series, series.cross_covariance) / records) / chains


def covariance_variance(series: Series, records: float, chains: int) -> np.ndarray:
    """Variance of each entry of the estimated covariance, float64[d, d], as if the series were Gaussian.

    ``sum over lags of g_ii g_jj + g_ij g_ji`` with g the autocovariance. The coins make the series a little less
    than Gaussian and, if shared, dependent between chains, so a test takes the larger of this and a batch estimate.
    """
    total = np.zeros((len(series.observe),) * 2)
    lagged = series.covariance
    while True:
        g = series.observe @ lagged @ series.observe.T
        term = np.outer(np.diag(g), np.diag(g)) + g * g.T
        total += term if lagged is series.covariance else 2 * term
        if np.max(np.abs(term)) <= 1e-6 * np.max(np.abs(total)):
            return total / (records * chains)
        lagged = series.transfer @ lagged
