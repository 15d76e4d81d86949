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

/* Adds x: [groups][d][LANES] to the bins of the g-th group of chains; of the last group the first n lanes count. A value outside
 * the window is not left out: the largest magnitude tells of it, and the sums are void then. */
INLINE void NAME(add)(const double *x, int64_t groups, int64_t n, const struct quadratic *q, int64_t g)
{
    const int64_t d = q->d;
    double *place = q->bins + g * (BINS * d + 1) * LANES;
    const double *anchors = q->anchors + g * BINS * LANES;
    for (int64_t half = 0; half < LANES; half += WIDTH) {
        struct NAME(window) w;
        const INTEGERS inside = *(const INTEGERS *)(first_lanes + LANES - (n < LANES ? n : LANES) + half);
        UNROLL for (int i = 0; i < BINS; ++i) w.anchor[i] = *(const VECTOR *)(anchors + i * LANES + half);
        double *last = place + BINS * d * LANES + half;
        VECTOR part[BINS], largest = *(VECTOR *)last;
        for (int64_t j = 0; j < d; ++j) {
            double *row = place + j * LANES + half;
            UNROLL for (int i = 0; i < BINS; ++i) part[i] = *(VECTOR *)(row + i * d * LANES);
            for (int64_t k = 0; k < groups; ++k) {
                VECTOR value = *(const VECTOR *)(x + (k * d + j) * LANES + half);
                if (k == groups - 1 && n < LANES) value = (VECTOR)((INTEGERS)value & inside);
                largest = NAME(larger_magnitude)(value, largest);
                NAME(split)(value, &w, part);
            }
            UNROLL for (int i = 0; i < BINS; ++i) *(VECTOR *)(row + i * d * LANES) = part[i];
        }
        *(VECTOR *)last = largest;
    }
}
