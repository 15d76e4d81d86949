"""Full gradients of linear, logistic and Poisson regression with short rows, side by side in the lanes of vectors.

The arithmetic is in ``short_rows.c``. Rows are kept a second time, transposed, each client from a column on that is a multiple
of eight: a refresh reads every row, and vectors that straddle lines of the cache, or rows of other clients, would slow it.
"""

import llvmlite.binding
import numpy as np
from numba import types

from fald_hpc.kernels import _short_rows, aligned
from fald_hpc.kernels.jit import DISABLED, jit

MOST = 15
"""Features of a short row at most: the dot product of a longer one fills vectors by itself."""

FAMILIES = {"linear": 0, "logistic": 1, "poisson": 2}
"""Numbers of the potentials that have residuals in C."""

NONE = -1
"""The number of the others."""

_EIGHT = 8


def side_by_side(
    rows: np.ndarray, weight: np.ndarray, offset: np.ndarray, target: np.ndarray, start: np.ndarray, family: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows as columns, and each client's first column.

    Parameters
    ----------
    rows : float64[n, d]
        Of all clients, one after another.
    weight, offset, target : float64[n]
        Of each row.
    start : int64[c + 1]
        First row of each client.
    family : int
        Of :data:`FAMILIES`, or :data:`NONE`.

    Returns
    -------
    columns : float64[d + 3, p]
        Features, weight, offset, target; zeros behind each client up to a multiple of eight. No columns
        where rows are long, for another family, or where nothing is compiled.
    place : int64[c]
        First column of each client.
    """
    n, d = rows.shape
    counts = np.diff(start)
    widths = -(-counts // _EIGHT) * _EIGHT
    place = np.concatenate([[0], np.cumsum(widths)])
    if d > MOST or family == NONE or DISABLED:
        return aligned.zeros((d + 3, 0)), place[:-1]
    columns = aligned.zeros((d + 3, int(place[-1])))
    at = np.arange(n) + np.repeat(place[:-1] - start[:-1], counts)
    for j in range(d):
        columns[j, at] = rows[:, j]
    columns[d, at], columns[d + 1, at], columns[d + 2, at] = weight, offset, target
    return columns, place[:-1]


if DISABLED:

    def add_gradient(problem, i, y, kept, out):
        """Never called: no problem has columns."""
        raise NotImplementedError("rows are not packed side by side where nothing is compiled")
else:
    llvmlite.binding.add_symbol("fald_short_rows", _short_rows.address())
    _pointer = types.CPointer(types.float64)
    _gradient = types.ExternalFunction(
        "fald_short_rows", types.void(_pointer, *[types.int64] * 4, *[_pointer] * 3, types.int64)
    )

    @jit(forceinline=True)
    def add_gradient(problem, i, y, kept, out):
        """Add the gradient of the rows of local client i at y: float64[d] to out, and keep their residuals: float64[n]."""
        first, n = problem.start[i], problem.start[i + 1] - problem.start[i]
        if n > 0:
            _gradient(
                problem.columns[0, problem.place[i] :].ctypes,
                problem.columns.shape[1],
                n,
                y.size,
                problem.family,
                y.ctypes,
                kept[first:].ctypes,
                out.ctypes,
                0,
            )
