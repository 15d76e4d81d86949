/* Means of exact sums: one body for all vector widths. It is fald_hpc.kernels.exact_sum.quotient in fewer operations. Both
 * round correctly, so they give the same bits. What is other here:
 *
 * - Sums with their errors take three operations, not six. That is exact if the first number is a multiple of the unit in
 *   the last place of the second, whichever is larger: and a bin holds multiples of its grid, of which the next bin is at
 *   most n/2, n <= 2^20; an error is a multiple of that unit of either summand.
 * - The divisions are products with the reciprocal of n. Whatever the first quotient lacks is found in what it leaves over,
 *   exactly: a few units of its last place times n. The second is a guess at the neighbour that the comparison mends.
 * - What is left over is compared with half a unit by the sign of one number, ties included.
 */

#include "vector_math.h"

/* The rounded sum of a and b, which becomes a, and its error, which becomes b. */
INLINE void NAME(sum)(VECTOR *a, VECTOR *b)
{
    const VECTOR total = *a + *b;
    *b -= total - *a;
    *a = total;
}

/* (high + middle + low)/n, of three bins. half: n/2^53. */
INLINE VECTOR NAME(quotient)(VECTOR high, VECTOR middle, VECTOR low, VECTOR n, VECTOR reciprocal, VECTOR half)
{
    if (NAME(any)((WORDS)low)) {
        NAME(sum)(&middle, &low);
        NAME(sum)(&high, &middle);
        NAME(sum)(&middle, &low);
    }
    NAME(sum)(&high, &middle);
    NAME(sum)(&middle, &low);
    const VECTOR first = high * reciprocal;
    VECTOR rest = NAME(fused)(-first, n, high), tail = middle;
    NAME(sum)(&rest, &tail);
    tail += low;
    const VECTOR q = NAME(fused)(rest, reciprocal, first);
    rest = NAME(fused)(first - q, n, rest);
    NAME(sum)(&rest, &tail);
    /* of |q|: rest and tail take its sign; its neighbour below may have a smaller exponent */
    const INTEGERS bits = (INTEGERS)q, sign = bits & INT64_MIN, odd = bits & 1;
    rest = (VECTOR)((INTEGERS)rest ^ sign);
    tail = (VECTOR)((INTEGERS)tail ^ sign);
    const VECTOR half_up = (VECTOR)(bits & EXPONENT) * half, half_down = (VECTOR)((bits - 1) & EXPONENT) * half;
    /* where one is 0 there is a tie; neither is ever -0. For q = 0 the latter is infinite, and nothing is beyond. */
    const VECTOR beyond_up = (rest - half_up) + tail, beyond_down = (-half_down - rest) - tail;
    /* a comparison that holds is -1 */
    return (VECTOR)(bits - ((INTEGERS)beyond_up > -odd) + ((INTEGERS)beyond_down > -odd));
}

TARGET static void NAME(mean)(const double *bins, int64_t d, double clients, double *out)
{
    const VECTOR n = NAME(all)(clients), reciprocal = NAME(all)(1.0 / clients), half = NAME(all)(clients * 0x1p-53);
    for (int64_t j = 0; j < d; j += WIDTH) {
        const int64_t m = d - j;
        const VECTOR s1 = NAME(load)(bins + j, m), s2 = NAME(load)(bins + d + j, m), s3 = NAME(load)(bins + 2 * d + j, m);
        NAME(store)(out + j, NAME(quotient)(s1, s2, s3, n, reciprocal, half), m);
    }
}
