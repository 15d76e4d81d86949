r"""Posterior moments, MCSE, ESS and split R-hat from the streamed sums of all chains.

All functions take the :class:`~fald_hpc.kernels.moments.Accumulators` of *all* chains in chain order and are pure.
Sums run in one fixed order (over chains by whole rows, over batches in a compiled loop), so results have the same bits
on every processor. NaN stands for "no number": too few draws to tell, or a parameter that never moves.

**MCSE and ESS.** Chains may share the communication coins and are then dependent, so their spread says little about
the error of the grand mean. The series that decides is therefore the average over chains of the batch means (batch j
holds the same record indices in every chain), and LRV its long-run variance
(:func:`~fald_hpc.kernels.long_run.long_run_variance`):

    MCSE² = m · LRV(average of the batch means) / n,        ESS = sd² / MCSE²,

with m the batch size and n the records of the shortest chain. Autocorrelation between batches is summed like that
between draws, so short batches bring no bias, and with m = 1 (fewer records than batches) this is the usual ESS of the
mean. For independent chains LRV is also the mean of the chains' own long-run variances over s, known s times better;
that value is used as long as the first does not exceed it by more than three of its standard errors, nor by more than
:data:`LARGEST_EXCESS`. So dependence that goes unseen makes an MCSE at most 12 % too small. No number is given for
series of fewer than :data:`AUTOCORRELATION_TIMES` autocorrelation times.

**Chains that disagree.** Above R-hat :data:`LARGEST_R_HAT` the within-chain series does not know the error. Then
MCSE² is at least the variance of the 2s half-chain means divided by 2s, so ESS is at most about the number of half
chains once they have nothing in common, and about 20s at the threshold.

**R-hat** is the split R-hat without ranks (Gelman et al., Bayesian Data Analysis, 3rd ed., 11.4; Vehtari et al. 2021,
equations 1 to 4): every chain is cut into halves of equally many whole batches and

    R-hat² = [ (h - 1)/h · W + B ] / W,

B the variance of the 2s half means, h the records of a half, W the variance within groups (both halves and what lies
in neither because batches do not divide evenly). One chain is its two halves: this shows a drift, and nothing else.
"""

import numpy as np

from fald_hpc.kernels.long_run import long_run_variance
from fald_hpc.kernels.moments import Accumulators, halve

LARGEST_R_HAT = 1.05
"""Above this the chains disagree: ESS is scaled down and a warning is given."""

AUTOCORRELATION_TIMES = 50
"""Length in autocorrelation times below which MCSE and ESS are not given (the emcee documentation's rule of thumb)."""

LARGEST_EXCESS = 0.25
"""Relative excess of the average's long-run variance over that of independent chains that is put down to chance."""

FEWEST_FOR_R_HAT = 20
"""Complete batches, or records while those are fewer, below which R-hat is not given."""


def _sum_rows(rows: np.ndarray) -> np.ndarray:
    """Sum over the first axis, one row after the other (``np.sum`` picks its order by processor)."""
    total = np.zeros(rows.shape[1:])
    for row in rows:
        total += row
    return total


def _chain_offsets(acc: Accumulators) -> np.ndarray:
    """Return float64[s, d]: mean of each chain minus the first chain's origin."""
    return (acc.origin - acc.origin[0]) + acc.total / acc.count[:, None]


def _grand_offset(acc: Accumulators) -> np.ndarray:
    """Return float64[d]: mean over all records of all chains minus the first chain's origin."""
    weights = acc.count / float(acc.count.sum())
    return _sum_rows(weights[:, None] * _chain_offsets(acc))


def mean(acc: Accumulators) -> np.ndarray:
    """Return the posterior mean float64[d], every record of every chain weighted alike."""
    if acc.count.min() == 0:
        return np.full(acc.origin.shape[1], np.nan)
    return acc.origin[0] + _grand_offset(acc)


def variance(acc: Accumulators) -> np.ndarray:
    """Return the posterior variances float64[d]: all records about the grand mean (within and between chains)."""
    n = int(acc.count.sum())
    if acc.count.min() == 0 or n < 2:
        return np.full(acc.origin.shape[1], np.nan)
    away = _chain_offsets(acc) - _grand_offset(acc)
    within = acc.squares - acc.total * acc.total / acc.count[:, None]
    return np.maximum(_sum_rows(within + acc.count[:, None] * away * away), 0.0) / (n - 1)


def sd(acc: Accumulators) -> np.ndarray:
    """Return the posterior standard deviations float64[d]."""
    return np.sqrt(variance(acc))


def covariance(acc: Accumulators) -> np.ndarray | None:
    """Return the posterior covariance float64[d, d] (within and between chains), None if only variances were kept."""
    d = acc.origin.shape[1]
    if acc.cross.shape[1] != d:
        return None
    n = int(acc.count.sum())
    if acc.count.min() == 0 or n < 2:
        return np.full((d, d), np.nan)
    away = _chain_offsets(acc) - _grand_offset(acc)
    total = np.zeros((d, d))
    for i, count in enumerate(acc.count):
        total += acc.cross[i] - np.outer(acc.total[i], acc.total[i]) / count + count * np.outer(away[i], away[i])
    lower = np.tril(total) / (n - 1)
    return lower + np.tril(lower, -1).T


def _common_batches(acc: Accumulators) -> tuple[np.ndarray, int]:
    """Return sums over complete batches float64[s, a, d] of one size for all chains, and that size m."""
    size = int(acc.size.max())
    a = int(acc.count.min()) // size
    batches = np.array(acc.batches)
    for i in range(batches.shape[0]):
        merged = int(acc.size[i])
        while merged < size:
            halve(batches[i])
            merged *= 2
    return batches[:, :a], size


def _halves(acc: Accumulators) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the half-chain means float64[2s, d] about the first chain's origin, W float64[d] and h."""
    batches, size = _common_batches(acc)
    half = batches.shape[1] // 2
    h = half * size
    first = _sum_rows(np.moveaxis(batches[:, :half], 1, 0))
    last = _sum_rows(np.moveaxis(batches[:, batches.shape[1] - half :], 1, 0))
    left = acc.total - first - last
    n_left = (acc.count - 2 * h)[:, None]
    within = acc.squares - (first * first + last * last) / h - left * left / np.maximum(n_left, 1)
    freedom = int((acc.count - 2 - (n_left[:, 0] > 0)).sum())
    shift = acc.origin - acc.origin[0]
    means = np.concatenate([shift + first / h, shift + last / h])
    return means, np.maximum(_sum_rows(within), 0.0) / freedom, h


def _variance_of_rows(rows: np.ndarray) -> np.ndarray:
    """Return the sample variance float64[d] over the first axis."""
    away = rows - _sum_rows(rows) / rows.shape[0]
    return _sum_rows(away * away) / (rows.shape[0] - 1)


def _enough_for_r_hat(acc: Accumulators) -> bool:
    return int(acc.count.min()) // int(acc.size.max()) >= FEWEST_FOR_R_HAT


def r_hat(acc: Accumulators) -> np.ndarray:
    """Return the split R-hat float64[d]; infinite for chains that stand still in different places."""
    if not _enough_for_r_hat(acc):
        return np.full(acc.origin.shape[1], np.nan)
    means, within, h = _halves(acc)
    between = _variance_of_rows(means)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(((h - 1) / h * within + between) / within)


def long_run(batches: np.ndarray, need: float) -> float:
    """Return the long-run variance of the average over chains of one parameter's batch sums float64[s, a]."""
    chains, a = batches.shape
    together, lags = long_run_variance(_sum_rows(batches)[None] / chains, need)
    alone, lags_alone = long_run_variance(batches, need)
    # Relative variance of a sum of autocovariances over L lags on either side: 2 (2L + 1) / a.
    chance = 3.0 * np.sqrt(2.0 * (2.0 * max(lags, lags_alone) - 1.0) / a) if lags else 0.0
    apart = alone / chains
    dependent = together > (1.0 + min(chance, LARGEST_EXCESS)) * apart
    return together if dependent or np.isnan(together) else apart


def mcse_and_ess(acc: Accumulators) -> tuple[np.ndarray, np.ndarray]:
    """Return the Monte Carlo standard error of the mean and the effective sample size, float64[d] each."""
    chains, slots, d = acc.batches.shape
    mcse, ess = np.full(d, np.nan), np.full(d, np.nan)
    if acc.count.min() == 0:
        return mcse, ess
    batches, size = _common_batches(acc)
    need = float(min(AUTOCORRELATION_TIMES, slots // 4))
    scale = 1.0 / (float(size) * int(acc.count.min()))
    error = np.array([long_run(np.ascontiguousarray(batches[:, :, p]), need) for p in range(d)]) * scale
    if _enough_for_r_hat(acc):
        between = _variance_of_rows(_halves(acc)[0]) / (2 * chains)
        error = np.where(r_hat(acc) > LARGEST_R_HAT, np.fmax(error, between), error)
    spread = variance(acc)
    np.divide(spread, error, out=ess, where=(spread > 0.0) & (error > 0.0))
    return np.sqrt(error), ess
