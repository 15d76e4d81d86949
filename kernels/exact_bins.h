/* Exact sums lane by lane (fald_hpc.kernels.exact_sum): included by bodies that are compiled once for each width, after
 * vector_math.h. A value outside the window is not left out here; the largest magnitude tells of it, and the sums are void.
 */

#define BINS 3

struct NAME(window) {
    VECTOR anchor[BINS];
};

/* Sums of the three parts, and the largest magnitude, but for what is not a number: that shows in the sums. */
struct NAME(bins) {
    VECTOR part[BINS], largest;
};

INLINE VECTOR NAME(larger_magnitude)(VECTOR x, VECTOR largest)
{
#if WIDTH == 8
    return (VECTOR)_mm512_range_pd((__m512d)x, (__m512d)largest, 0xb);
#else
    const VECTOR magnitude = (VECTOR)((INTEGERS)x & INT64_MAX);
    return NAME(where_less)(largest, magnitude, magnitude, largest);
#endif
}

INLINE void NAME(add_value)(VECTOR x, const struct NAME(window) *w, struct NAME(bins) *bins)
{
    bins->largest = NAME(larger_magnitude)(x, bins->largest);
    UNROLL for (int i = 0; i < BINS; ++i) {
        const VECTOR q = (x + w->anchor[i]) - w->anchor[i];
        bins->part[i] += q;
        x -= q;
    }
}
