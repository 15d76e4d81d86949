"""Sums over clients that are exact, hence free of order, and means that are correctly rounded.

Pre-rounded summation (Demmel and Nguyen, IEEE Trans. Comput. 2015): every value is split against three powers of two
into multiples of three grids, so coarse that plain double-precision sums of the parts over all clients are exact in any
order and under any reduction algorithm of any MPI library. The grids hang below a *window* 2^e that holds every value;
a value beyond it is counted instead of added, and the caller widens the window and repeats.

With b clients a grid has W = 52 - ceil(log2 b) bits, so 3 W bits below 2^(e+1) are kept (135 at b = 100): values down to
2^(e - 3W + 54) are captured exactly, smaller ones rounded to a multiple of 2^(e + 1 - 3W), the same on every layout.
"""

import math

import llvmlite.binding
import numpy as np
from numba import types

from fald_hpc.kernels import _exact_sum
from fald_hpc.kernels.jit import DISABLED, bits, fma, from_bits, jit

BINS = 3
HEADROOM = 12
"""Powers of two left free above the largest value when a window is set."""

MIN_WINDOW = -600
MAX_WINDOW = 900
"""Largest window: values beyond 2^900 count as a divergence."""

_EXPONENT = np.uint64(0x7FF0000000000000)
_MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
_52 = np.uint64(52)
_ONE = np.uint64(1)


def grid_bits(n_clients: int) -> int:
    """Return W, the bits of a grid, for a number of clients."""
    return 52 - math.ceil(math.log2(n_clients)) if n_clients > 1 else 52


@jit(forceinline=True)
def power(exponent):
    """Return 2^exponent for -1022 <= exponent <= 1023."""
    return from_bits(np.uint64(np.int64(exponent) + 1023) << _52)


@jit
def window_for(maximum):
    """Return the window exponent for a largest absolute value (finite), with headroom."""
    exponent = np.int64((bits(maximum) & _EXPONENT) >> _52) - 1022
    return min(max(exponent + HEADROOM, MIN_WINDOW), MAX_WINDOW)


@jit(forceinline=True)
def add(values, window, width, bins):
    """Add a vector to three bins.

    Parameters
    ----------
    values : float64[d]
        The vector of one client.
    window : int
        Window exponent e: values up to 2^e in magnitude are added.
    width : int
        Bits of a grid, :func:`grid_bits`.
    bins : float64[3·d]
        Partial sums, coarse grid first.

    Returns
    -------
    outside : int
        How many values lie outside the window or are not finite (they are not added).
    """
    d = values.size
    limit = power(window)
    # adding and subtracting 1.5·2^52·grid rounds to a multiple of the grid
    anchor1 = 1.5 * power(window + 1 - width + 52)
    anchor2 = 1.5 * power(window + 1 - 2 * width + 52)
    anchor3 = 1.5 * power(window + 1 - 3 * width + 52)
    outside = 0
    for j in range(d):
        x = values[j]
        inside = abs(x) <= limit
        outside += 0 if inside else 1
        x = x if inside else 0.0
        q1 = (x + anchor1) - anchor1
        x = x - q1
        q2 = (x + anchor2) - anchor2
        x = x - q2
        q3 = (x + anchor3) - anchor3
        bins[j] += q1
        bins[d + j] += q2
        bins[2 * d + j] += q3
    return outside


if DISABLED:

    def add_clients(values, chain, window, width, bins):
        """Add a chain's vectors of all clients, one by one."""
        return sum(add(values[i, chain], window, width, bins) for i in range(values.shape[0]))
else:
    llvmlite.binding.add_symbol("fald_exact_add", _exact_sum.address())
    _pointer = types.CPointer(types.float64)
    _exact_add = types.ExternalFunction(
        "fald_exact_add", types.int64(_pointer, *[types.int64] * 5, _pointer, types.int64)
    )

    @jit(forceinline=True)
    def add_clients(values, chain, window, width, bins):
        """Add a chain's vectors of all clients to the bins, as :func:`add` does one by one; in C.

        Parameters
        ----------
        values : float64[c, s, d]
            C-contiguous.
        chain : int
            Which of the s.
        window, width, bins
            As for :func:`add`.

        Returns
        -------
        outside : int
            Of all clients.
        """
        c, s, d = values.shape
        return _exact_add(values[0, chain].ctypes, c, s * d, d, window, width, bins.ctypes, 0)


@jit(forceinline=True)
def _two_sum(a, b):
    """Return the rounded sum and its error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@jit(forceinline=True)
def quotient(s1, s2, s3, n):
    """Return (s1 + s2 + s3)/n correctly rounded to nearest, ties to even.

    Parameters
    ----------
    s1, s2, s3 : float
        Sums of the three bins.
    n : float
        Number of clients, an integer up to 2^20.
    """
    a, e1 = _two_sum(s2, s3)
    high, e2 = _two_sum(s1, a)
    middle, low = _two_sum(e2, e1)
    high, middle = _two_sum(high, middle)
    middle, low = _two_sum(middle, low)
    sign = -1.0 if high < 0.0 else 1.0
    high, middle, low = sign * high, sign * middle, sign * low
    q = high / n
    # what is left over, high + middle + low - q n, as rest + tail: the first product is exact by the fma
    rest, tail = _two_sum(fma(-q, n, high), middle)
    tail += low
    improved = q + rest / n
    rest = fma(-(improved - q), n, rest)
    rest, tail = _two_sum(rest, tail)
    q = improved
    exponent = bits(q) & _EXPONENT
    half = 0.5 * from_bits(exponent - (_52 << _52)) * n
    odd = (bits(q) & _ONE) == _ONE
    half_below = 0.5 * half if (bits(q) & _MANTISSA) == np.uint64(0) else half
    up = rest > half or (rest == half and (tail > 0.0 or (tail == 0.0 and odd)))
    down = rest < -half_below or (rest == -half_below and (tail < 0.0 or (tail == 0.0 and odd)))
    q_up = from_bits(bits(q) + _ONE)
    q_down = from_bits(bits(q) - _ONE)
    result = q_up if up else (q_down if down else q)
    return 0.0 if high == 0.0 else sign * result


if DISABLED:

    def mean(bins, n, out):
        """Write the means, one by one."""
        d = out.size
        for j in range(d):
            out[j] = quotient(bins[j], bins[d + j], bins[2 * d + j], n)
else:
    llvmlite.binding.add_symbol("fald_exact_mean", _exact_sum.mean_address())
    _exact_mean = types.ExternalFunction(
        "fald_exact_mean", types.void(_pointer, types.int64, types.float64, _pointer, types.int64)
    )

    @jit(forceinline=True)
    def mean(bins, n, out):
        """Write the correctly rounded means over n clients, as :func:`quotient` gives them one by one; in C.

        Parameters
        ----------
        bins : float64[3·d]
            Sums, coarse grid first; may go on behind them. C-contiguous.
        n : float
            Number of clients, an integer up to 2^20.
        out : float64[d]
            C-contiguous.
        """
        _exact_mean(bins.ctypes, out.size, n, out.ctypes, 0)
