"""Long-run variance of stationary series by Geyer's initial monotone sequence.

The long-run variance is ``sum over all lags of the autocovariance`` = n times the variance of the mean of n values.
For a reversible chain the sums of neighbouring autocovariances ``g[2k] + g[2k+1]`` are positive and decrease; the
estimate adds them up to the first that is not positive, each limited by the one before.

Source: C. J. Geyer, Practical Markov chain Monte Carlo, Statistical Science 7 (1992), section 3.3; the same truncation
as Stan's and ArviZ's ESS (Vehtari et al., Bayesian Analysis 16 (2021), section 3.2).
"""

import numpy as np

from fald_hpc.kernels.jit import jit


@jit
def autocovariance(series, lag):
    """Return the autocovariance at a lag, averaged over series float64[k, a] of mean zero; divided by a."""
    k, a = series.shape
    total = 0.0
    for i in range(k):
        for t in range(a - lag):
            total += series[i, t] * series[i, t + lag]
    return total / (k * a)


@jit(allocates=True)
def long_run_variance(series, need):
    """Return the mean long-run variance of some series, NaN when they are too short to tell.

    Parameters
    ----------
    series : float64[k, a]
        k series of a values, in any units u.
    need : float
        Autocorrelation times that a series must be long at least.

    Returns
    -------
    value : float
        In u². Corrected for the means being estimated: each autocovariance falls short by long-run variance / a.
    lags : int
        Lags that were summed, 0 to ``lags - 1``.
    """
    k, a = series.shape
    if a < need or a < 4:
        return np.nan, 0
    centred = np.empty((k, a))
    for i in range(k):
        mean = 0.0
        for t in range(a):
            mean += series[i, t]
        mean /= a
        for t in range(a):
            centred[i, t] = series[i, t] - mean
    variance = autocovariance(centred, 0)
    if variance == 0.0:
        return 0.0, 0
    total = -variance
    previous = np.inf
    lags = 0
    while 4 * lags <= a:
        pair = autocovariance(centred, lags) + autocovariance(centred, lags + 1)
        if not pair > 0.0:
            break
        previous = min(pair, previous)
        total += 2.0 * previous
        lags += 2
        if total * need > variance * a:
            return np.nan, lags
    if 4 * lags > a:
        return np.nan, lags
    # Antithetic series: the mean is never called better than that of four times as many independent values.
    total = max(total, 0.25 * variance)
    if lags > 0:
        total /= 1.0 - (2.0 * lags - 1.0) / a
    if total * need > variance * a:
        return np.nan, lags
    return total, lags
