"""Small dense linear algebra whose bits do not depend on the processor.

LAPACK sums in an order that differs between processors; results that enter the sampled numbers (the start of a chain,
the precision of a Gaussian client) must not. These routines are for set-up, not for the loop.
"""

import numpy as np

from fald_hpc.kernels.jit import fma, jit


@jit
def _factor(matrix, lower):
    d = matrix.shape[0]
    for j in range(d):
        pivot = matrix[j, j]
        for k in range(j):
            pivot = fma(-lower[j, k], lower[j, k], pivot)
        if not pivot > 0.0:
            return False
        root = np.sqrt(pivot)
        lower[j, j] = root
        for i in range(j + 1, d):
            total = matrix[i, j]
            for k in range(j):
                total = fma(-lower[i, k], lower[j, k], total)
            lower[i, j] = total / root
    return True


@jit(allocates=True)
def forward(lower, b):
    """Solve L x = b for a lower triangular L: float64[d, d], b: float64[d]."""
    x = b.copy()
    for i in range(x.size):
        for k in range(i):
            x[i] = fma(-lower[i, k], x[k], x[i])
        x[i] /= lower[i, i]
    return x


@jit(allocates=True)
def backward(lower, b):
    """Solve Lᵀ x = b for a lower triangular L: float64[d, d], b: float64[d]."""
    x = b.copy()
    for i in range(x.size - 1, -1, -1):
        for k in range(i + 1, x.size):
            x[i] = fma(-lower[k, i], x[k], x[i])
        x[i] /= lower[i, i]
    return x


def cholesky(matrix: np.ndarray) -> np.ndarray:
    """Return the lower Cholesky factor of a symmetric positive definite matrix.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix is not positive definite.
    """
    matrix = np.ascontiguousarray(matrix, dtype=np.float64)
    lower = np.zeros_like(matrix)
    if not _factor(matrix, lower):
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    return lower


def solve_cholesky(lower: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve (L Lᵀ) x = b for one right-hand side."""
    return backward(lower, forward(lower, np.ascontiguousarray(b, dtype=np.float64)))


def inverse_spd(matrix: np.ndarray) -> np.ndarray:
    """Return the inverse of a symmetric positive definite matrix, exactly symmetric."""
    lower = cholesky(matrix)
    columns = [solve_cholesky(lower, unit) for unit in np.eye(lower.shape[0])]
    inverse = np.array(columns)
    return (inverse + inverse.T) / 2.0
