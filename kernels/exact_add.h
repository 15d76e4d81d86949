/* Exact sums over clients: one body for all vector widths. The arithmetic is that of fald_hpc.kernels.exact_sum.add; since it
 * is exact, order plays no part.
 */

#include "vector_math.h"
#include "exact_bins.h"

/* Sums of the three parts, and how often a value lay outside the window, of one vector of values. */
struct NAME(sums) {
    VECTOR part[BINS];
    INTEGERS outside;
};

INLINE void NAME(add)(VECTOR x, const struct grids *w, struct NAME(sums) *sums)
{
    const VECTOR magnitude = (VECTOR)((INTEGERS)x & INT64_MAX);
    const INTEGERS inside = magnitude <= w->limit;
    x = (VECTOR)((INTEGERS)x & inside);
    sums->outside += inside + 1;
    struct NAME(window) window;
    UNROLL for (int i = 0; i < BINS; ++i) window.anchor[i] = NAME(all)(w->anchor[i]);
    NAME(split)(x, &window, sums->part);
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
        UNROLL for (int i = 0; i < BINS; ++i)
            NAME(accumulate)(bins + i * d + v * WIDTH, sums[v].part[i], v + 1 < vectors ? WIDTH : n - v * WIDTH);
        counts += sums[v].outside;
    }
    for (int l = 0; l < WIDTH; ++l) outside += counts[l];
    return outside;
}

/* Clients that lie one behind the other, d a divisor of WIDTH: lane l always holds coordinate l mod d. */
INLINE int64_t NAME(flat)(const double *values, int64_t n, const struct grids *w, double *bins, int64_t d)
{
    struct NAME(sums) sums = {0};
    int64_t outside = 0;
    for (int64_t j = 0; j < n; j += WIDTH) NAME(add)(NAME(load)(values + j, n - j), w, &sums);
    for (int l = 0; l < WIDTH; ++l) {
        for (int i = 0; i < BINS; ++i) bins[i * d + l % d] += sums.part[i][l];
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
