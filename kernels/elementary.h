/* Elementary functions of vectors, with the bits of fald_hpc.kernels.elementary (but for the sign of a NaN): included by bodies
 * that are compiled once for each width, as vector_math.h.
 */

#include <math.h>

#include "vector_math.h"

#define ROUND 6755399441055744.0 /* 1.5 2^52: adding it rounds to an integer and leaves that in the low bits */
#define LOG2_E 1.4426950408889634
#define LN2_HIGH 0.693147180369123816490
#define LN2_LOW 1.90821492927058770002e-10
#define TWO_PI 6.283185307179586
#define MANTISSA_OF_ROOT_TWO 0x6A09E667F3BCDull /* of 1.4142135623730951 */

/* e^x. */
INLINE VECTOR NAME(exponential)(VECTOR x)
{
    const VECTOR lowest = NAME(all)(-708.0), highest = NAME(all)(709.7);
    VECTOR clipped = NAME(where_less)(x, lowest, lowest, x);
    clipped = NAME(where_less)(highest, clipped, highest, clipped);
    const VECTOR shifted = NAME(fused)(clipped, NAME(all)(LOG2_E), NAME(all)(ROUND)), n = shifted - ROUND;
    const VECTOR r = NAME(fused)(-n, NAME(all)(LN2_LOW), NAME(fused)(-n, NAME(all)(LN2_HIGH), clipped));
    VECTOR p = NAME(all)(1.0 / 6227020800.0);
    p = NAME(horner)(p, r, 1.0 / 479001600.0);
    p = NAME(horner)(p, r, 1.0 / 39916800.0);
    p = NAME(horner)(p, r, 1.0 / 3628800.0);
    p = NAME(horner)(p, r, 1.0 / 362880.0);
    p = NAME(horner)(p, r, 1.0 / 40320.0);
    p = NAME(horner)(p, r, 1.0 / 5040.0);
    p = NAME(horner)(p, r, 1.0 / 720.0);
    p = NAME(horner)(p, r, 1.0 / 120.0);
    p = NAME(horner)(p, r, 1.0 / 24.0);
    p = NAME(horner)(p, r, 1.0 / 6.0);
    p = NAME(horner)(p, r, 0.5);
    p = NAME(horner)(p, r, 1.0);
    p = NAME(horner)(p, r, 1.0);
    VECTOR result = p * 2.0 * (VECTOR)(((WORDS)shifted + 1022) << 52);
    result = NAME(where_less)(x, lowest, NAME(all)(0.0), result);
    return NAME(where_less)(highest, x, NAME(all)(INFINITY), result);
}

/* 1/(1 + e^-x). */
INLINE VECTOR NAME(sigmoid)(VECTOR x)
{
    const VECTOR e = NAME(exponential)((VECTOR)((WORDS)x | 0x8000000000000000)), q = 1.0 / (1.0 + e);
    return NAME(where_less)(x, NAME(all)(0.0), e * q, q);
}

/* The natural logarithm of positive numbers that are not subnormal. */
INLINE VECTOR NAME(logarithm)(VECTOR x)
{
    const WORDS pattern = (WORDS)x;
    /* one more in the exponent where the mantissa is above the root of two */
    const WORDS shifted = pattern + (0x0010000000000000 - (MANTISSA_OF_ROOT_TWO + 1));
    const VECTOR mantissa = (VECTOR)((pattern - (shifted & 0xFFF0000000000000)) + 0x3FF0000000000000);
    const VECTOR exponent = (VECTOR)((shifted >> 52) | 0x4330000000000000) - (0x1p52 + 1023.0);
    const VECTOR f = mantissa - 1.0, s = f / (2.0 + f), z = s * s;
    VECTOR p = NAME(all)(2.0 / 23.0);
    p = NAME(horner)(p, z, 2.0 / 21.0);
    p = NAME(horner)(p, z, 2.0 / 19.0);
    p = NAME(horner)(p, z, 2.0 / 17.0);
    p = NAME(horner)(p, z, 2.0 / 15.0);
    p = NAME(horner)(p, z, 2.0 / 13.0);
    p = NAME(horner)(p, z, 2.0 / 11.0);
    p = NAME(horner)(p, z, 2.0 / 9.0);
    p = NAME(horner)(p, z, 2.0 / 7.0);
    p = NAME(horner)(p, z, 2.0 / 5.0);
    p = NAME(horner)(p, z, 2.0 / 3.0);
    const VECTOR series = NAME(fused)(p * z, s, s + s);
    const VECTOR rest = NAME(fused)(exponent, NAME(all)(LN2_LOW), series);
    return NAME(fused)(exponent, NAME(all)(LN2_HIGH), rest);
}

/* Cosine and sine of word/2^64 turns. */
INLINE void NAME(cos_sin_turn)(WORDS word, VECTOR *cosine, VECTOR *sine)
{
    const WORDS turned = word + 0x2000000000000000; /* the quadrant in the upper two bits */
    const VECTOR x = ((VECTOR)(((turned << 2) >> 12) | 0x3FF0000000000000) - 1.5) * (0.25 * TWO_PI), z = x * x;
    VECTOR s = NAME(all)(-1.0 / 1307674368000.0);
    s = NAME(horner)(s, z, 1.0 / 6227020800.0);
    s = NAME(horner)(s, z, -1.0 / 39916800.0);
    s = NAME(horner)(s, z, 1.0 / 362880.0);
    s = NAME(horner)(s, z, -1.0 / 5040.0);
    s = NAME(horner)(s, z, 1.0 / 120.0);
    s = NAME(horner)(s, z, -1.0 / 6.0);
    const WORDS b = (WORDS)NAME(fused)(s * z, x, x);
    VECTOR c = NAME(all)(1.0 / 20922789888000.0);
    c = NAME(horner)(c, z, -1.0 / 87178291200.0);
    c = NAME(horner)(c, z, 1.0 / 479001600.0);
    c = NAME(horner)(c, z, -1.0 / 3628800.0);
    c = NAME(horner)(c, z, 1.0 / 40320.0);
    c = NAME(horner)(c, z, -1.0 / 720.0);
    c = NAME(horner)(c, z, 1.0 / 24.0);
    c = NAME(horner)(c, z, -0.5);
    const WORDS a = (WORDS)NAME(horner)(c, z, 1.0);
    /* odd quadrants exchange the two; the signs are bits of the quadrant and of the next one */
    const WORDS odd = (WORDS)((INTEGERS)(turned << 1) >> 63), exchange = (a ^ b) & odd;
    *cosine = (VECTOR)(a ^ exchange ^ ((turned + 0x4000000000000000) & 0x8000000000000000));
    *sine = (VECTOR)(b ^ exchange ^ (turned & 0x8000000000000000));
}
