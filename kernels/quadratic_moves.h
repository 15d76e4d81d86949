/* Lanes from where they lie and back, and their sums: part of quadratic_lanes.h. */

/* n rows, stride apart, to x: [groups][d][LANES]; zeros in lanes that are not in use. */
INLINE void NAME(gather)(const double *from, int64_t stride, int64_t n, int64_t d, double *x)
{
    for (int64_t first = 0; first < n; first += LANES, from += LANES * stride, x += LANES * d) {
#if WIDTH == 8
        if (d == 2 && stride == 2) {
            pairs_to_lanes(from, n - first, x);
            continue;
        }
        if (d > 2) {
            rows_to_lanes(from, stride, n - first, d, x);
            continue;
        }
#endif
        for (int64_t j = 0; j < d; ++j)
            for (int64_t l = 0; l < LANES; ++l) x[j * LANES + l] = first + l < n ? from[l * stride + j] : 0.0;
    }
}

INLINE void NAME(scatter)(const double *x, int64_t stride, int64_t n, int64_t d, double *to)
{
    for (int64_t first = 0; first < n; first += LANES, to += LANES * stride, x += LANES * d) {
#if WIDTH == 8
        if (d == 2 && stride == 2) {
            lanes_to_pairs(x, n - first, to);
            continue;
        }
        if (d > 2) {
            lanes_to_rows(x, stride, n - first, d, to);
            continue;
        }
#endif
        for (int64_t l = 0; l < LANES && first + l < n; ++l)
            for (int64_t j = 0; j < d; ++j) to[l * stride + j] = x[j * LANES + l];
    }
}

/* x - origin of some groups, to a place that is returned. */
INLINE const double *NAME(away)(const double *x, const struct origin *origin, int64_t groups, int64_t d, double *to)
{
    for (int64_t g = 0, at = 0; g < groups; ++g)
        for (int64_t j = 0; j < d; ++j)
            for (int l = 0; l < LANES; l += WIDTH, at += WIDTH)
                *(VECTOR *)(to + at) = *(const VECTOR *)(x + at)
                    - (origin->shared ? NAME(all)(origin->of[j]) : *(const VECTOR *)(origin->of + at));
    return to;
}

/* And back: x of x - origin. */
INLINE const double *NAME(back)(const double *offsets, const struct origin *origin, int64_t groups, int64_t d, double *to)
{
    for (int64_t g = 0, at = 0; g < groups; ++g)
        for (int64_t j = 0; j < d; ++j)
            for (int l = 0; l < LANES; l += WIDTH, at += WIDTH)
                *(VECTOR *)(to + at) = *(const VECTOR *)(offsets + at)
                    + (origin->shared ? NAME(all)(origin->of[j]) : *(const VECTOR *)(origin->of + at));
    return to;
}

/* The larger magnitude, but for what is not a number: that shows in the sums. */
INLINE VECTOR NAME(larger_magnitude)(VECTOR x, VECTOR largest)
{
#if WIDTH == 8
    return (VECTOR)_mm512_range_pd((__m512d)x, (__m512d)largest, 0xb);
#else
    const VECTOR magnitude = (VECTOR)((INTEGERS)x & INT64_MAX);
    return NAME(where_less)(largest, magnitude, magnitude, largest);
#endif
}

/* The j-th coordinate of the k-th group at some lanes: of x: [groups][d][LANES] or, if ``moved``, of origin + x. */
INLINE VECTOR NAME(coordinate)(
    const int moved, const double *x, const struct origin *origin, int64_t d, int64_t k, int64_t j, int64_t half)
{
    const int64_t at = (k * d + j) * LANES + half;
    if (!moved) return *(const VECTOR *)(x + at);
    return *(const VECTOR *)(x + at) + (origin->shared ? NAME(all)(origin->of[j]) : *(const VECTOR *)(origin->of + at));
}

/* Adds x, or origin + x, to the bins of the g-th group of chains; of the last group the first n lanes count. A value outside the
 * window is not left out: the largest magnitude tells of it, and the sums are void then. */
INLINE void NAME(add)(
    const int moved, const double *x, const struct origin *origin, int64_t groups, int64_t n, const struct quadratic *q, int64_t g)
{
    const int64_t d = q->d, bin = d * LANES;
    double *place = q->bins + g * (BINS * d + 1) * LANES;
    const double *anchors = q->anchors + g * BINS * LANES;
    for (int64_t half = 0; half < LANES; half += WIDTH) {
        struct NAME(window) w;
        const INTEGERS inside = *(const INTEGERS *)(first_lanes + LANES - (n < LANES ? n : LANES) + half);
        UNROLL for (int i = 0; i < BINS; ++i) w.anchor[i] = *(const VECTOR *)(anchors + i * LANES + half);
        double *last = place + BINS * bin + half;
        VECTOR largest = *(VECTOR *)last;
        WORDS rest = {0};
        for (int64_t j = 0; j < d; ++j) {
            double *row = place + j * LANES + half;
            VECTOR part[BINS - 1];
            UNROLL for (int i = 0; i < BINS - 1; ++i) part[i] = *(VECTOR *)(row + i * bin);
            for (int64_t k = 0; k < groups; ++k) {
                VECTOR value = NAME(coordinate)(moved, x, origin, d, k, j, half);
                if (k == groups - 1 && n < LANES) value = (VECTOR)((INTEGERS)value & inside);
                largest = NAME(larger_magnitude)(value, largest);
                rest |= (WORDS)NAME(split)(value, &w, part);
            }
            UNROLL for (int i = 0; i < BINS - 1; ++i) *(VECTOR *)(row + i * bin) = part[i];
        }
        *(VECTOR *)last = largest;
        if (!NAME(any)(rest)) continue;
        for (int64_t j = 0; j < d; ++j)
            for (int64_t k = 0; k < groups; ++k) {
                VECTOR value = NAME(coordinate)(moved, x, origin, d, k, j, half);
                if (k == groups - 1 && n < LANES) value = (VECTOR)((INTEGERS)value & inside);
                *(VECTOR *)(place + (BINS - 1) * bin + j * LANES + half) += NAME(finest)(value, &w);
            }
    }
}
