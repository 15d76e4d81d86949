"""Row-wise gradients of generalised linear models with one linear predictor a row.

U^{i,j}(x) = w_j ℓ(z_j·x + o_j, y_j) with ∂ℓ/∂η = residual(η, y), and the Gaussian prior's share, (w_i/σ²) x.
The three functions are templates; a model binds ``residual(eta, target)``.
"""

from typing import NamedTuple

import numpy as np

from fald_hpc.kernels.jit import fma, jit, placeholder

residual = placeholder("residual")


class Problem(NamedTuple):
    """Packed data of this rank's clients."""

    rows: np.ndarray  # float64[n, d]: z_j, client after client
    target: np.ndarray  # float64[n]: y_j
    weight: np.ndarray  # float64[n]: factor of the row's likelihood
    offset: np.ndarray  # float64[n]: o_j
    start: np.ndarray  # int64[c + 1]: first row of each client
    prior: np.ndarray  # float64[c]: w_i/σ²


@jit(forceinline=True)
def predictor(rows, row, x):
    """Return z·x of one row, always summed in the same order.

    Eight partial sums break the chain of dependent additions once a row is long enough to profit.
    """
    d = x.size
    if d < 16:
        total = 0.0
        for j in range(d):
            total = fma(rows[row, j], x[j], total)
        return total
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for j in range(0, d - 7, 8):
        s0 = fma(rows[row, j], x[j], s0)
        s1 = fma(rows[row, j + 1], x[j + 1], s1)
        s2 = fma(rows[row, j + 2], x[j + 2], s2)
        s3 = fma(rows[row, j + 3], x[j + 3], s3)
        s4 = fma(rows[row, j + 4], x[j + 4], s4)
        s5 = fma(rows[row, j + 5], x[j + 5], s5)
        s6 = fma(rows[row, j + 6], x[j + 6], s6)
        s7 = fma(rows[row, j + 7], x[j + 7], s7)
    for j in range(d - d % 8, d):
        s0 = fma(rows[row, j], x[j], s0)
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))


def gradient(problem, i, x, rows, out):
    """Write g_S(x) of local client i for the minibatch ``rows``: int64[m]; return the rows touched."""
    first = problem.start[i]
    n = problem.start[i + 1] - first
    for j in range(x.size):
        out[j] = problem.prior[i] * x[j]
    if rows.size > 0:
        scale = np.float64(n) / np.float64(rows.size)
        for m in range(rows.size):
            row = first + rows[m]
            eta = predictor(problem.rows, row, x) + problem.offset[row]
            r = scale * (problem.weight[row] * residual(eta, problem.target[row]))
            for j in range(x.size):
                out[j] = fma(r, problem.rows[row, j], out[j])
    return rows.size


def difference(problem, i, x, y, kept, rows, out):
    """Write g_S(x) - g_S(y) of local client i from the residuals kept at y: float64[n]; return the rows touched."""
    first = problem.start[i]
    n = problem.start[i + 1] - first
    for j in range(x.size):
        out[j] = problem.prior[i] * (x[j] - y[j])
    if rows.size > 0:
        scale = np.float64(n) / np.float64(rows.size)
        for m in range(rows.size):
            row = first + rows[m]
            eta = predictor(problem.rows, row, x) + problem.offset[row]
            r = scale * (problem.weight[row] * residual(eta, problem.target[row]) - kept[row])
            for j in range(x.size):
                out[j] = fma(r, problem.rows[row, j], out[j])
    return rows.size


def full_gradient(problem, i, y, kept, out):
    """Write ∇U^i(y) of local client i and keep the rows' residuals at y: float64[n]; return the rows touched."""
    first, last = problem.start[i], problem.start[i + 1]
    for j in range(y.size):
        out[j] = problem.prior[i] * y[j]
    for row in range(first, last):
        eta = predictor(problem.rows, row, y) + problem.offset[row]
        r = problem.weight[row] * residual(eta, problem.target[row])
        kept[row] = r
        for j in range(y.size):
            out[j] = fma(r, problem.rows[row, j], out[j])
    return last - first
