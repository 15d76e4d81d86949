"""What compiled code has as intrinsics, for kernels that run as plain Python (``NUMBA_DISABLE_JIT=1``)."""

import math

import numpy as np

# 64-bit words wrap around on purpose; NumPy's scalars warn of it
np.seterr(over="ignore")


def stack(like: type, size: int) -> np.ndarray:
    """Return an array on the stack: here, an ordinary one."""
    return np.empty(size, like)


def _halves(x: float) -> tuple[float, float]:
    """Return two numbers of at most 26 bits with the sum x (Veltkamp)."""
    t = 134217729.0 * x
    high = t - (t - x)
    return high, x - high


def fma(a: float, b: float, c: float) -> float:
    """Return a·b + c with one rounding, but where the product is huge or tiny (Python before 3.13 has no fused form)."""
    a, b, c = float(a), float(b), float(c)
    product = a * b
    if not (1e-280 < abs(product) < 1e280 and abs(a) < 1e280 and abs(b) < 1e280 and abs(c) < 1e280):
        return np.float64(product + c)
    a1, a2 = _halves(a)
    b1, b2 = _halves(b)
    error = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2  # exact (Dekker)
    return np.float64(math.fsum((product, error, c)))


def flatten(array: np.ndarray) -> np.ndarray:
    """Return a C-contiguous array as a vector, without a copy."""
    return array.reshape(-1)


def wide_vectors() -> None:
    """Do nothing."""


def swap_halves(u: np.uint64) -> np.uint64:
    """Return a word with its upper and lower 32 bits exchanged."""
    return (u << np.uint64(32)) | (u >> np.uint64(32))


def bits(x: float) -> np.uint64:
    """Return the bit pattern of a double."""
    return np.float64(x).view(np.uint64)


def from_bits(u: np.uint64) -> np.float64:
    """Return the double with a bit pattern."""
    return np.uint64(u).view(np.float64)
