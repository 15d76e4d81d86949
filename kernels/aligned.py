"""Arrays that begin on a line of the cache: vectors that straddle two lines take twice as long to load."""

import math

import numpy as np

LINE = 64
"""Bytes of a line, and of the widest vector."""


def zeros(shape: tuple[int, ...]) -> np.ndarray:
    """Return a C-contiguous float64 array of zeros whose first element is aligned to :data:`LINE` bytes."""
    size = 8 * math.prod(shape)
    buffer = np.zeros(size + LINE, np.uint8)
    first = -buffer.ctypes.data % LINE
    return buffer[first : first + size].view(np.float64).reshape(shape)


def copy(values: np.ndarray) -> np.ndarray:
    """Return the values in such an array."""
    out = zeros(values.shape)
    out[...] = values
    return out
