/* The Langevin steps of eight chains, or eight clients, side by side: one body for all vector widths.
 *
 * Included by quadratic_lanes.c once for each variant, with
 *   WIDTH   doubles in a vector (a divisor of LANES)
 *   TARGET  the function attribute that lets the compiler use such vectors
 *   NAME(f) f with a suffix for the variant
 *
 * Every lane does exactly what fald_hpc.potentials.gaussian and fald_hpc.kernels.langevin do for one chain and client:
 * the same operations in the same order, multiply-adds fused where those are fused and nowhere else.
 */

#define VECTOR NAME(vector)
typedef double VECTOR __attribute__((vector_size(8 * WIDTH), aligned(8), may_alias));

INLINE VECTOR NAME(all)(double x)
{
    VECTOR r;
    UNROLL for (int l = 0; l < WIDTH; ++l) r[l] = x;
    return r;
}

/* a b + c with one rounding. Written by element, since C has no such operation on vectors: the compiler joins them. */
INLINE VECTOR NAME(fused)(VECTOR a, VECTOR b, VECTOR c)
{
    VECTOR r;
    UNROLL for (int l = 0; l < WIDTH; ++l) r[l] = __builtin_fma(a[l], b[l], c[l]);
    return r;
}

/* Rows j..j+n-1 of out = H v. Each element of out is one chain of additions over k, so n of them keep the units busy. */
INLINE void NAME(multiply)(const int n, const int by_clients, int64_t d, const double *h, const double *v, double *out)
{
    const int64_t stride = by_clients ? LANES : 1;
    const double *entry[BLOCK];
    VECTOR sum[BLOCK];
    UNROLL for (int i = 0; i < n; ++i) {
        sum[i] = NAME(all)(0.0);
        entry[i] = h + i * stride;
        /* hides that the entries are neighbours: gcc would load them as a vector and spend its shuffles taking it apart,
         * where each can be broadcast by the load of the multiply-add itself */
        __asm__("" : "+r"(entry[i]));
    }
    for (int64_t k = 0; k < d; ++k) {
        const VECTOR difference = *(const VECTOR *)(v + k * LANES);
        UNROLL for (int i = 0; i < n; ++i) {
            const double *place = entry[i] + k * d * stride;
            sum[i] = NAME(fused)(by_clients ? *(const VECTOR *)place : NAME(all)(*place), difference, sum[i]);
        }
    }
    UNROLL for (int i = 0; i < n; ++i) *(VECTOR *)(out + i * LANES) = sum[i];
}

INLINE void NAME(steps)(const int by_clients, const struct quadratic *q, double *x, int64_t half)
{
    const int64_t d = q->d;
    const int64_t stride = by_clients ? LANES : 1;
    double *v = q->scratch + LANES * d, *g = v + LANES * d;
    const VECTOR minus_step = NAME(all)(-q->step_size);
    const VECTOR common_scale = NAME(all)(q->common_scale), private_scale = NAME(all)(q->private_scale);
    const double *h = q->precision + half * (by_clients ? 1 : 0);

    x += half, v += half, g += half;
    for (int64_t r = 0; r < q->t; ++r) {
        for (int64_t k = 0; k < d; ++k) {
            const VECTOR origin = q->one_origin ? NAME(all)(q->origin[k]) : *(const VECTOR *)(q->origin + k * LANES + half);
            *(VECTOR *)(v + k * LANES) = *(const VECTOR *)(x + k * LANES) - origin;
        }
        int64_t j = 0;
        /* blocks of nearly equal size: one of a single row would run at a tenth of the speed */
        for (int64_t blocks = (d + BLOCK - 1) / BLOCK; blocks > 0; --blocks) {
            const int64_t n = (d - j + blocks - 1) / blocks;
            const double *rows = h + j * stride;
            double *out = g + j * LANES;
            switch (n) {
#define CASE(N) case N: NAME(multiply)(N, by_clients, d, rows, v, out); break;
            CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)
#if BLOCK > 8
            CASE(9) CASE(10)
#endif
#undef CASE
            }
            j += n;
        }
        for (j = 0; j < d; ++j) {
            VECTOR gradient = *(const VECTOR *)(g + j * LANES);
            VECTOR moved = *(const VECTOR *)(x + j * LANES);
            if (q->has_shift)
                gradient += q->one_shift ? NAME(all)(q->shift[j]) : *(const VECTOR *)(q->shift + j * LANES + half);
            moved = NAME(fused)(minus_step, gradient, moved);
            if (q->common_scale != 0.0) {
                const int64_t place = r * d + j;
                moved = NAME(fused)(common_scale, by_clients ? NAME(all)(q->common[place])
                                                             : *(const VECTOR *)(q->common + place * LANES + half), moved);
            }
            if (q->private_scale != 0.0)
                moved = NAME(fused)(private_scale, *(const VECTOR *)(q->private + (r * d + j) * LANES + half), moved);
            *(VECTOR *)(x + j * LANES) = moved;
        }
    }
}

TARGET static void NAME(run)(const struct quadratic *q)
{
    const int64_t d = q->d;
    double *x = q->scratch;
    for (int64_t j = 0; j < d; ++j)
        for (int64_t l = 0; l < LANES; ++l) x[j * LANES + l] = l < q->n ? q->x[l * q->stride + j] : 0.0;
    for (int64_t half = 0; half < LANES; half += WIDTH) {
        if (half >= q->n) break;
        if (q->by_clients) NAME(steps)(1, q, x, half);
        else NAME(steps)(0, q, x, half);
    }
    for (int64_t l = 0; l < q->n; ++l)
        for (int64_t j = 0; j < d; ++j) q->x[l * q->stride + j] = x[j * LANES + l];
}

#undef VECTOR
