"""The posterior's variances in the units of the sampled parameters: those of the standardised features where there are some."""

import math

import numpy as np

from fald_hpc.kernels.moments import Accumulators
from fald_hpc.metrics import diagnostics
from fald_hpc.study import Study


def sampled_variances(acc: Accumulators, study: Study) -> np.ndarray | None:
    """Return float64[d], None where the covariances that an intercept needs were not kept.

    The results are in the units of the data: coefficients times the columns' sd, and the intercept plus coefficients
    times the columns' means, are what was sampled (the inverse of :func:`fald_hpc.data.standardise.undo`).
    """
    variances = diagnostics.variance(acc)
    if study.scale is None or not np.isfinite(variances).all():
        return variances if study.scale is None else None
    mean, sd = study.scale
    p, intercept = mean.size, bool(getattr(study.request.potential, "intercept", False))
    covariance = diagnostics.covariance(acc) if intercept else None
    if intercept and covariance is None:
        return None
    found = variances.copy()
    for first in range(0, variances.size, p + intercept):
        found[first : first + p] *= sd * sd
        if covariance is not None:
            weights = np.append(mean, 1.0)
            block = covariance[first : first + p + 1, first : first + p + 1]
            found[first + p] = math.fsum((weights[:, None] * block * weights).ravel())
    return found
