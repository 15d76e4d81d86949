"""Elementary functions that give the same bits on every processor and that the compiler can vectorise.

The system's ``exp``, ``log``, ``sin`` and ``cos`` differ between C libraries, and NumPy's between processors. These are
argument reductions followed by Taylor polynomials long enough for double precision, built from IEEE operations and
fused multiply-adds only.
"""

import numpy as np

from fald_hpc.kernels.jit import bits, fma, from_bits, jit

_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer and leaves that integer in the low bits
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.693147180369123816490  # upper 32 bits of ln 2, so that n * _LN2_HIGH is exact
_LN2_LOW = 1.90821492927058770002e-10
_TWO_PI = 6.283185307179586
_MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
_HALF_EXPONENT = np.uint64(0x3FE0000000000000)
_ONE_EXPONENT = np.uint64(0x3FF0000000000000)
_SHIFT_52 = np.uint64(52)
_BIAS = np.uint64(1023)


@jit(forceinline=True)
def exp(x):
    """Return e^x; 0 below -708, infinity above 709.7 (relative error < 3e-16)."""
    clipped = min(max(x, -708.0), 709.7)
    shifted = fma(clipped, _LOG2_E, _ROUND)
    n = shifted - _ROUND
    r = fma(-n, _LN2_LOW, fma(-n, _LN2_HIGH, clipped))
    p = 1.0 / 6227020800.0
    p = fma(p, r, 1.0 / 479001600.0)
    p = fma(p, r, 1.0 / 39916800.0)
    p = fma(p, r, 1.0 / 3628800.0)
    p = fma(p, r, 1.0 / 362880.0)
    p = fma(p, r, 1.0 / 40320.0)
    p = fma(p, r, 1.0 / 5040.0)
    p = fma(p, r, 1.0 / 720.0)
    p = fma(p, r, 1.0 / 120.0)
    p = fma(p, r, 1.0 / 24.0)
    p = fma(p, r, 1.0 / 6.0)
    p = fma(p, r, 0.5)
    p = fma(p, r, 1.0)
    p = fma(p, r, 1.0)
    # 2^n in two factors, since n reaches 1024 where the result is still finite
    result = p * 2.0 * from_bits((bits(shifted) + _BIAS - np.uint64(1)) << _SHIFT_52)
    result = 0.0 if x < -708.0 else result
    result = np.inf if x > 709.7 else result
    return x if x != x else result


@jit(forceinline=True)
def log(x):
    """Return the natural logarithm of a positive normal double (relative error < 3e-16; other arguments undefined)."""
    pattern = bits(x)
    # the mantissa in [sqrt(1/2), sqrt(2)): halving the upper part keeps the series short and log(1) exact
    mantissa = from_bits((pattern & _MANTISSA) | _ONE_EXPONENT)
    large = mantissa > 1.4142135623730951
    exponent = np.float64(pattern >> _SHIFT_52) - 1023.0
    exponent = exponent + 1.0 if large else exponent
    mantissa = mantissa * 0.5 if large else mantissa
    f = mantissa - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = 2.0 / 23.0
    p = fma(p, z, 2.0 / 21.0)
    p = fma(p, z, 2.0 / 19.0)
    p = fma(p, z, 2.0 / 17.0)
    p = fma(p, z, 2.0 / 15.0)
    p = fma(p, z, 2.0 / 13.0)
    p = fma(p, z, 2.0 / 11.0)
    p = fma(p, z, 2.0 / 9.0)
    p = fma(p, z, 2.0 / 7.0)
    p = fma(p, z, 2.0 / 5.0)
    p = fma(p, z, 2.0 / 3.0)
    series = fma(p * z, s, s + s)
    return fma(exponent, _LN2_HIGH, fma(exponent, _LN2_LOW, series))


@jit(forceinline=True)
def cos_sin_turn(word):
    """Return the cosine and sine of 2π·word/2^64 (absolute error < 3e-16)."""
    quadrant = (word + np.uint64(0x2000000000000000)) >> np.uint64(62)
    # the rest, in [-1/8, 1/8) of a turn, as a double by bit assembly: exact, and fast without a 64-bit conversion
    rest = (word + np.uint64(0x2000000000000000)) << np.uint64(2)
    turn = (from_bits((rest >> np.uint64(12)) | _ONE_EXPONENT) - 1.5) * 0.25
    x = turn * _TWO_PI
    z = x * x
    s = -1.0 / 1307674368000.0
    s = fma(s, z, 1.0 / 6227020800.0)
    s = fma(s, z, -1.0 / 39916800.0)
    s = fma(s, z, 1.0 / 362880.0)
    s = fma(s, z, -1.0 / 5040.0)
    s = fma(s, z, 1.0 / 120.0)
    s = fma(s, z, -1.0 / 6.0)
    sine = fma(s * z, x, x)
    c = 1.0 / 20922789888000.0
    c = fma(c, z, -1.0 / 87178291200.0)
    c = fma(c, z, 1.0 / 479001600.0)
    c = fma(c, z, -1.0 / 3628800.0)
    c = fma(c, z, 1.0 / 40320.0)
    c = fma(c, z, -1.0 / 720.0)
    c = fma(c, z, 1.0 / 24.0)
    c = fma(c, z, -0.5)
    cosine = fma(c, z, 1.0)
    # a quarter turn maps (cos, sin) to (-sin, cos): the odd quadrants swap, the signs follow from two bits
    swap = (quadrant & np.uint64(1)) == np.uint64(1)
    a = sine if swap else cosine
    b = cosine if swap else sine
    cos_sign = ((quadrant + np.uint64(1)) >> np.uint64(1)) << np.uint64(63)
    sin_sign = (quadrant >> np.uint64(1)) << np.uint64(63)
    return from_bits(bits(a) ^ cos_sign), from_bits(bits(b) ^ sin_sign)


@jit(forceinline=True)
def sigmoid(x):
    """Return 1/(1 + e^-x) without overflow."""
    e = exp(-abs(x))
    q = 1.0 / (1.0 + e)
    return q if x >= 0.0 else e * q


@jit(forceinline=True)
def log1p_exp(x):
    """Return log(1 + e^x) without overflow (absolute error < 3e-16 plus the relative error of the result)."""
    e = exp(-abs(x))
    u = 1.0 + e
    # Kahan's correction restores the bits that 1 + e dropped
    small = log(u) + (e - (u - 1.0)) / u
    return small + max(x, 0.0)
