/* Exact sums over clients: one body for all vector widths. The arithmetic is that of fald_hpc.kernels.exact_sum.add; since it
 * is exact, order plays no part.
 */

#include "vector_math.h"
#include "exact_bins.h"

/* Sums of the two coarse parts, what was left of any value, and how often one lay outside the window. */
struct NAME(sums) {
    VECTOR part[BINS - 1];
    WORDS rest;
    INTEGERS outside;
};

/* x, but for what lies outside the window, which is counted. */
INLINE VECTOR NAME(inside)(VECTOR x, const struct grids *w, INTEGERS *outside)
{
    const VECTOR magnitude = (VECTOR)((INTEGERS)x & INT64_MAX);
    const INTEGERS inside = magnitude <= w->limit;
    *outside += inside + 1;
    return (VECTOR)((INTEGERS)x & inside);
}

INLINE void NAME(add)(VECTOR x, const struct grids *w, struct NAME(sums) *sums)
{
    struct NAME(window) window;
    UNROLL for (int i = 0; i < BINS; ++i) window.anchor[i] = NAME(all)(w->anchor[i]);
    sums->rest |= (WORDS)NAME(split)(NAME(inside)(x, w, &sums->outside), &window, sums->part);
}

/* The third part of x, for which there is a second look. */
INLINE VECTOR NAME(third)(VECTOR x, const struct grids *w)
{
    struct NAME(window) window;
    INTEGERS counted = {0};
    UNROLL for (int i = 0; i < BINS; ++i) window.anchor[i] = NAME(all)(w->anchor[i]);
    return NAME(finest)(NAME(inside)(x, w, &counted), &window);
}

/* Adds the first m numbers of x to those at a place. */
INLINE void NAME(accumulate)(double *place, VECTOR x, int64_t m)
{
    if (m >= WIDTH) {
        *(VECTOR *)place += x;
        return;
    }
#if WIDTH == 8
    _mm512_mask_storeu_pd(place, (__mmask8)((1 << m) - 1), (__m512d)(NAME(load)(place, m) + x));
#else
    for (int64_t l = 0; l < m; ++l) place[l] += x[l];
#endif
}

/* Vectors of n coordinates from place on, of all clients; VECTORS of them at a time. */
INLINE int64_t NAME(block)(
    const int vectors, const double *values, int64_t clients, int64_t stride, int64_t n, const struct grids *w,
    double *bins, int64_t d)
{
    struct NAME(sums) sums[VECTORS];
    int64_t outside = 0;
    UNROLL for (int v = 0; v < vectors; ++v) sums[v] = (struct NAME(sums)){0};
    for (int64_t i = 0; i < clients; ++i)
        UNROLL for (int v = 0; v < vectors; ++v)
            NAME(add)(NAME(load)(values + i * stride + v * WIDTH, v + 1 < vectors ? WIDTH : n - v * WIDTH), w, &sums[v]);
    INTEGERS counts = {0};
    UNROLL for (int v = 0; v < vectors; ++v) {
        const int64_t m = v + 1 < vectors ? WIDTH : n - v * WIDTH;
        UNROLL for (int i = 0; i < BINS - 1; ++i) NAME(accumulate)(bins + i * d + v * WIDTH, sums[v].part[i], m);
        counts += sums[v].outside;
        if (!NAME(any)(sums[v].rest)) continue;
        VECTOR third = {0};
        for (int64_t i = 0; i < clients; ++i) third += NAME(third)(NAME(load)(values + i * stride + v * WIDTH, m), w);
        NAME(accumulate)(bins + (BINS - 1) * d + v * WIDTH, third, m);
    }
    for (int l = 0; l < WIDTH; ++l) outside += counts[l];
    return outside;
}

/* Clients that lie one behind the other, d a divisor of WIDTH: lane l always holds coordinate l mod d. */
INLINE int64_t NAME(flat)(const double *values, int64_t n, const struct grids *w, double *bins, int64_t d)
{
    struct NAME(sums) sums = {0};
    VECTOR third = {0};
    int64_t outside = 0;
    for (int64_t j = 0; j < n; j += WIDTH) NAME(add)(NAME(load)(values + j, n - j), w, &sums);
    const int all = NAME(any)(sums.rest);
    if (all)
        for (int64_t j = 0; j < n; j += WIDTH) third += NAME(third)(NAME(load)(values + j, n - j), w);
    for (int l = 0; l < WIDTH; ++l) {
        for (int i = 0; i < BINS - 1; ++i) bins[i * d + l % d] += sums.part[i][l];
        if (all) bins[(BINS - 1) * d + l % d] += third[l];
        outside += sums.outside[l];
    }
    return outside;
}

TARGET static int64_t NAME(run)(
    const double *values, int64_t clients, int64_t stride, int64_t d, const struct grids *w, double *bins)
{
    int64_t outside = 0;
    if (WIDTH % d == 0 && stride == d && clients * d > WIDTH) return NAME(flat)(values, clients * d, w, bins, d);
    for (int64_t j = 0; j < d; j += VECTORS * WIDTH) {
        const int64_t n = d - j < VECTORS * WIDTH ? d - j : VECTORS * WIDTH;
        switch ((n + WIDTH - 1) / WIDTH) {
        case 1: outside += NAME(block)(1, values + j, clients, stride, n, w, bins + j, d); break;
        case 2: outside += NAME(block)(2, values + j, clients, stride, n, w, bins + j, d); break;
        case 3: outside += NAME(block)(3, values + j, clients, stride, n, w, bins + j, d); break;
        }
    }
    return outside;
}
