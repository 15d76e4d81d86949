r"""Monte Carlo error of posterior standard deviations, from the kept draws.

With z_t the average over chains of (x_t - mean)² at draw t, LRV its long-run variance and n the draws of a chain,

    error(variance)² = LRV(z) / n,        error(sd) = error(variance) / (2 sd)

(delta method). Dependence between chains that share their coins is treated as for the mean
(:func:`fald_hpc.metrics.diagnostics.long_run`). The sd itself comes from all records; where the store was thinned, the
error is that of the fewer draws and so a little too large.
"""

import numpy as np

from fald_hpc.metrics import diagnostics


def sd_error(draws: np.ndarray) -> np.ndarray:
    """Return the Monte Carlo standard errors of the standard deviations: float64[d], in units of the parameters.

    NaN for chains of fewer than :data:`~fald_hpc.metrics.diagnostics.AUTOCORRELATION_TIMES` autocorrelation times of
    the squares, and for parameters that do not move.

    Parameters
    ----------
    draws : float64[s, n, d]
        The kept draws of all chains.
    """
    _, n, d = draws.shape
    error = np.full(d, np.nan)
    if n < 2:
        return error
    for p in range(d):
        squares = draws[:, :, p] - draws[:, :, p].mean()
        squares *= squares
        variance = squares.mean()
        if variance > 0.0:
            long_run = diagnostics.long_run(squares, float(diagnostics.AUTOCORRELATION_TIMES))
            error[p] = np.sqrt(long_run / n) / (2.0 * np.sqrt(variance))
    return error
