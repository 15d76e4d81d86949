"""Row-wise gradients of generalised linear models with one linear predictor a row.

U^{i,j}(x) = w_j ℓ(z_j·x + o_j, y_j) with ∂ℓ/∂η = residual(η, y), and the Gaussian prior's share, (w_i/σ²) x.
The functions are templates; a model binds ``residual(eta, target)``.
"""

from typing import NamedTuple

import numpy as np

from fald_hpc.kernels.dot import ROWS, dot_four
from fald_hpc.kernels.jit import fma, jit, placeholder, stack
from fald_hpc.kernels.prefetch import rows_ahead
from fald_hpc.kernels.short_rows import MOST, add_gradient

residual = placeholder("residual")
residuals_of = placeholder("residuals_of")

LONG = MOST + 1
"""Features from which on a row is long: its dot product then fills vectors by itself."""

_PIECE = 64


class Problem(NamedTuple):
    """Packed data of this rank's clients."""

    rows: np.ndarray  # float64[n, d]: z_j, client after client
    target: np.ndarray  # float64[n]: y_j
    weight: np.ndarray  # float64[n]: factor of the row's likelihood
    offset: np.ndarray  # float64[n]: o_j
    start: np.ndarray  # int64[c + 1]: first row of each client
    prior: np.ndarray  # float64[c]: w_i/σ²
    columns: np.ndarray  # float64[d + 3, p]: rows side by side where they are short (fald_hpc.kernels.short_rows), else p = 0
    place: np.ndarray  # int64[c]: first column of each client
    packed: np.ndarray  # float64[n, p]: rows in whole lines where they are short (fald_hpc.kernels.short_steps), else p = 0
    family: int  # number of the residual in C; -1: it has none


@jit(forceinline=True)
def predictor(rows, row, x):
    """Return z·x of one row, always summed in the same order.

    Eight partial sums break the chain of dependent additions once a row is long enough to profit.
    """
    d = x.size
    if d < LONG:
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


@jit(forceinline=True)
def four_predictors(rows, a, b, c, d, x):
    """Return z·x of four rows, each as :func:`predictor` sums it."""
    if x.size < LONG:
        return predictor(rows, a, x), predictor(rows, b, x), predictor(rows, c, x), predictor(rows, d, x)
    return dot_four(rows, a, b, c, d, x)


@jit
def add_four_rows(rows, a, b, c, d, fa, fb, fc, fd, out):
    """Add f z of four rows, one after the other, to out: float64[d], which is read and written once for all."""
    for j in range(out.size):
        out[j] = fma(fd, rows[d, j], fma(fc, rows[c, j], fma(fb, rows[b, j], fma(fa, rows[a, j], out[j]))))


def rows_residuals(problem, first, rows, begin, end, x, target, weight, out):
    """Write w_j residual_j of the rows begin..end-1 of a minibatch to out[:end - begin]; ``target``, ``weight``: scratch.

    In stages, so that the elementary functions of several rows share a vector. A few rows fill none: whole vectors are
    computed all the same, from zeros, since a vector costs what one number costs.
    """
    count = end - begin
    fours = count - count % ROWS
    for m in range(0, fours, ROWS):
        out[m], out[m + 1], out[m + 2], out[m + 3] = four_predictors(
            problem.rows,
            first + rows[begin + m],
            first + rows[begin + m + 1],
            first + rows[begin + m + 2],
            first + rows[begin + m + 3],
            x,
        )
    for m in range(fours, count):
        out[m] = predictor(problem.rows, first + rows[begin + m], x)
    for m in range(count):
        row = first + rows[begin + m]
        out[m] += problem.offset[row]
        target[m] = problem.target[row]
        weight[m] = problem.weight[row]
    whole = (count + 3) & -4
    for m in range(count, whole):
        out[m], target[m], weight[m] = 0.0, 0.0, 0.0
    for m in range(whole):
        out[m] = weight[m] * residual(out[m], target[m])


@jit(forceinline=True)
def _add_rows(problem, first, rows, begin, end, factors, out):
    """Add factor_m z_m of the rows begin..end-1 of a minibatch."""
    fours = 0
    if out.size >= LONG:
        fours = (end - begin) - (end - begin) % ROWS
        for m in range(0, fours, ROWS):
            add_four_rows(
                problem.rows,
                first + rows[begin + m],
                first + rows[begin + m + 1],
                first + rows[begin + m + 2],
                first + rows[begin + m + 3],
                factors[m],
                factors[m + 1],
                factors[m + 2],
                factors[m + 3],
                out,
            )
    for m in range(fours, end - begin):
        row = first + rows[begin + m]
        for j in range(out.size):
            out[j] = fma(factors[m], problem.rows[row, j], out[j])


def gradient(problem, i, x, rows, out):
    """Write g_S(x) of local client i for the minibatch ``rows``: int64[m]; return the rows touched."""
    first = problem.start[i]
    n = problem.start[i + 1] - first
    for j in range(x.size):
        out[j] = problem.prior[i] * x[j]
    if rows.size > 0:
        scale = np.float64(n) / np.float64(rows.size)
        if rows.size == 1:
            row = first + rows[0]
            eta = predictor(problem.rows, row, x) + problem.offset[row]
            r = scale * (problem.weight[row] * residual(eta, problem.target[row]))
            for j in range(x.size):
                out[j] = fma(r, problem.rows[row, j], out[j])
            return 1
        target, weight, factors = stack(np.float64, _PIECE), stack(np.float64, _PIECE), stack(np.float64, _PIECE)
        for begin in range(0, rows.size, _PIECE):
            end = min(begin + _PIECE, rows.size)
            residuals_of(problem, first, rows, begin, end, x, target, weight, factors)
            for m in range(end - begin):
                factors[m] *= scale
            _add_rows(problem, first, rows, begin, end, factors, out)
    return rows.size


@jit(forceinline=True)
def read_ahead(problem, i, rows):
    """Ask for the minibatch of a step to come."""
    rows_ahead(problem.rows, problem.start[i], rows)


def difference(problem, i, x, y, kept, rows, out):
    """Write g_S(x) - g_S(y) of local client i from the residuals kept at y: float64[n]; return the rows touched."""
    first = problem.start[i]
    n = problem.start[i + 1] - first
    for j in range(x.size):
        out[j] = problem.prior[i] * (x[j] - y[j])
    if rows.size > 0:
        scale = np.float64(n) / np.float64(rows.size)
        if rows.size == 1:
            row = first + rows[0]
            eta = predictor(problem.rows, row, x) + problem.offset[row]
            r = scale * (problem.weight[row] * residual(eta, problem.target[row]) - kept[row])
            for j in range(x.size):
                out[j] = fma(r, problem.rows[row, j], out[j])
            return 1
        target, weight, factors = stack(np.float64, _PIECE), stack(np.float64, _PIECE), stack(np.float64, _PIECE)
        for begin in range(0, rows.size, _PIECE):
            end = min(begin + _PIECE, rows.size)
            residuals_of(problem, first, rows, begin, end, x, target, weight, factors)
            for m in range(end - begin):
                factors[m] = scale * (factors[m] - kept[first + rows[begin + m]])
            _add_rows(problem, first, rows, begin, end, factors, out)
    return rows.size


def full_gradient(problem, i, y, kept, out):
    """Write ∇U^i(y) of local client i and keep the rows' residuals at y: float64[n]; return the rows touched."""
    first, last = problem.start[i], problem.start[i + 1]
    for j in range(y.size):
        out[j] = problem.prior[i] * y[j]
    if problem.columns.shape[1] > 0:
        add_gradient(problem, i, y, kept, out)
        return last - first
    for begin in range(first, last, _PIECE):
        # in stages, as a minibatch: the rows of a piece are still in the first-level cache when they are added
        end = min(begin + _PIECE, last)
        fours = end - (end - begin) % ROWS
        for m in range(begin, fours, ROWS):
            kept[m], kept[m + 1], kept[m + 2], kept[m + 3] = four_predictors(problem.rows, m, m + 1, m + 2, m + 3, y)
        for m in range(fours, end):
            kept[m] = predictor(problem.rows, m, y)
        for m in range(begin, end):
            kept[m] = problem.weight[m] * residual(kept[m] + problem.offset[m], problem.target[m])
        for m in range(begin, fours, ROWS):
            add_four_rows(
                problem.rows, m, m + 1, m + 2, m + 3, kept[m], kept[m + 1], kept[m + 2], kept[m + 3], out
            )
        for m in range(fours, end):
            for j in range(y.size):
                out[j] = fma(kept[m], problem.rows[m, j], out[j])
    return last - first
