/* The Langevin steps of eight chains, or eight clients, side by side: one body for all vector widths.
 *
 * Every lane does exactly what fald_hpc.potentials.gaussian and fald_hpc.kernels.langevin do for one chain and client:
 * the same operations in the same order, multiply-adds fused where those are fused and nowhere else.
 */

#include "vector_math.h"

/* Rows 0..n-1 of out = H v. Each row is one chain of additions over k, so n of them keep the units busy. */
INLINE void NAME(rows)(const int n, const int by_clients, int64_t d, const double *h, const double *v, double *out)
{
    const int64_t stride = by_clients ? LANES : 1;
    VECTOR sum[BLOCK];
    UNROLL for (int i = 0; i < n; ++i) sum[i] = NAME(all)(0.0);
    for (int64_t k = 0; k < d; ++k, h += d * stride, v += LANES) {
        const VECTOR difference = *(const VECTOR *)v;
        UNROLL for (int i = 0; i < n; ++i)
            sum[i] = NAME(fused)(by_clients ? *(const VECTOR *)(h + i * LANES) : NAME(all)(h[i]), difference, sum[i]);
    }
    UNROLL for (int i = 0; i < n; ++i) *(VECTOR *)(out + i * LANES) = sum[i];
}

/* not inlined: a body for each number of rows in each of its callers takes the compiler a minute */
#define MULTIPLY(MULTIPLY_NAME, BY_CLIENTS) \
TARGET static __attribute__((noinline)) void NAME(MULTIPLY_NAME)( \
    int64_t n, int64_t d, const double *h, const double *v, double *out) \
{ \
    switch (n) { \
    case 1: NAME(rows)(1, BY_CLIENTS, d, h, v, out); break; \
    case 2: NAME(rows)(2, BY_CLIENTS, d, h, v, out); break; \
    case 3: NAME(rows)(3, BY_CLIENTS, d, h, v, out); break; \
    case 4: NAME(rows)(4, BY_CLIENTS, d, h, v, out); break; \
    case 5: NAME(rows)(5, BY_CLIENTS, d, h, v, out); break; \
    case 6: NAME(rows)(6, BY_CLIENTS, d, h, v, out); break; \
    case 7: NAME(rows)(7, BY_CLIENTS, d, h, v, out); break; \
    case 8: NAME(rows)(8, BY_CLIENTS, d, h, v, out); break; \
    case 9: NAME(rows)(9, BY_CLIENTS, d, h, v, out); break; \
    case 10: NAME(rows)(10, BY_CLIENTS, d, h, v, out); break; \
    } \
}
MULTIPLY(multiply_of_chains, 0)
MULTIPLY(multiply_of_clients, 1)
#undef MULTIPLY

/* Blocks of nearly equal size: one of a single row would run at a tenth of the speed. */
INLINE int64_t NAME(block)(int64_t left)
{
    const int64_t blocks = (left + BLOCK - 1) / BLOCK;
    return (left + blocks - 1) / blocks;
}

/* What x - origin subtracts in row j: one number for all lanes, or one for each. */
INLINE VECTOR NAME(origin)(const int one, const struct quadratic *q, int64_t j, int64_t half)
{
    return one ? NAME(all)(q->origin[j]) : *(const VECTOR *)(q->origin + j * LANES + half);
}

/* All steps of one half of the lanes. A block of rows moves as soon as its products are there, and x - origin goes into a
 * second buffer, so that the products of one block need not wait for the moves of the one before. */
INLINE void NAME(steps)(const int by_clients, const int has_reference, const struct quadratic *q, double *x, int64_t half)
{
    const int64_t d = q->d;
    const int64_t stride = by_clients ? LANES : 1;
    const int one_origin = by_clients == has_reference;
    double *now = q->scratch + LANES * d + half, *next = now + LANES * d, *g = next + LANES * d;
    const double *h = q->precision + (by_clients ? half : 0);
    const VECTOR minus_step = NAME(all)(-q->step_size);
    const VECTOR common_scale = NAME(all)(q->common_scale), private_scale = NAME(all)(q->private_scale);
    const int has_common = q->common_scale != 0.0, has_private = q->private_scale != 0.0;

    x += half;
    for (int64_t k = 0; k < d; ++k)
        *(VECTOR *)(now + k * LANES) = *(const VECTOR *)(x + k * LANES) - NAME(origin)(one_origin, q, k, half);
    for (int64_t r = 0; r < q->t; ++r) {
        for (int64_t j = 0, end = 0; end < d;) {
            end = j + NAME(block)(d - j);
            if (by_clients) NAME(multiply_of_clients)(end - j, d, h + j * stride, now, g);
            else NAME(multiply_of_chains)(end - j, d, h + j * stride, now, g);
            for (const double *product = g; j < end; ++j, product += LANES) {
                const int64_t place = r * d + j;
                VECTOR gradient = *(const VECTOR *)product, moved = *(const VECTOR *)(x + j * LANES);
                if (has_reference)
                    gradient += by_clients ? NAME(all)(q->shift[j]) : *(const VECTOR *)(q->shift + j * LANES + half);
                moved = NAME(fused)(minus_step, gradient, moved);
                if (has_common)
                    moved = NAME(fused)(common_scale, by_clients ? NAME(all)(q->common[place])
                                                                 : *(const VECTOR *)(q->common + place * LANES + half), moved);
                if (has_private)
                    moved = NAME(fused)(private_scale, *(const VECTOR *)(q->private + place * LANES + half), moved);
                *(VECTOR *)(x + j * LANES) = moved;
                *(VECTOR *)(next + j * LANES) = moved - NAME(origin)(one_origin, q, j, half);
            }
        }
        double *swap = now;
        now = next, next = swap;
    }
}

/* The same for d <= SMALL, m groups of lanes at once: everything but H stays in registers over the steps. A step of one
 * group waits for the results of its own operations most of the time; others fill the gaps. */
INLINE void NAME(small_steps)(
    const int d, const int m, const int by_clients, const int has_reference, const struct quadratic *q, double *place, int64_t half)
{
    const VECTOR minus_step = NAME(all)(-q->step_size);
    const VECTOR common_scale = NAME(all)(q->common_scale), private_scale = NAME(all)(q->private_scale);
    const int one_origin = by_clients == has_reference;
    VECTOR x[GROUPS * SMALL], origin[GROUPS * SMALL], shift[SMALL], gradient[GROUPS * SMALL];
    UNROLL for (int i = 0; i < m * d; ++i) {
        x[i] = *(const VECTOR *)(place + i * LANES + half);
        origin[i] = one_origin ? NAME(all)(q->origin[i % d]) : *(const VECTOR *)(q->origin + i * LANES + half);
    }
    UNROLL for (int j = 0; j < d; ++j)
        shift[j] = !has_reference ? NAME(all)(0.0)
                 : by_clients     ? NAME(all)(q->shift[j])
                                  : *(const VECTOR *)(q->shift + j * LANES + half);
    for (int64_t r = 0; r < q->t; ++r) {
        UNROLL for (int i = 0; i < m * d; ++i) gradient[i] = NAME(all)(0.0);
        UNROLL for (int k = 0; k < d; ++k)
            UNROLL for (int i = 0; i < m * d; ++i) {
                const int64_t entry = (i / d * d + k) * d + i % d;
                gradient[i] = NAME(fused)(
                    by_clients ? *(const VECTOR *)(q->precision + entry * LANES + half) : NAME(all)(q->precision[entry]),
                    x[i / d * d + k] - origin[i / d * d + k], gradient[i]);
            }
        UNROLL for (int i = 0; i < m * d; ++i) {
            if (has_reference) gradient[i] += shift[i % d];
            x[i] = NAME(fused)(minus_step, gradient[i], x[i]);
        }
        if (q->common_scale != 0.0)
            UNROLL for (int i = 0; i < m * d; ++i) {
                const int64_t at = r * d + i % d;
                x[i] = NAME(fused)(common_scale, by_clients ? NAME(all)(q->common[at])
                                                            : *(const VECTOR *)(q->common + at * LANES + half), x[i]);
            }
        if (q->private_scale != 0.0)
            UNROLL for (int i = 0; i < m * d; ++i)
                x[i] = NAME(fused)(private_scale, *(const VECTOR *)(q->private + (r * d + i) * LANES + half), x[i]);
    }
    UNROLL for (int i = 0; i < m * d; ++i) *(VECTOR *)(place + i * LANES + half) = x[i];
}

/* Lanes from where they lie to x: [groups][d][LANES]; zeros in lanes that are not in use. */
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

INLINE void NAME(run_small)(
    const int d, const int m, const int by_clients, const int has_reference, const struct quadratic *q)
{
    double x[GROUPS * SMALL * LANES];
    NAME(gather)(q->x, q->stride, q->n, d, x);
    for (int64_t half = 0; half < LANES; half += WIDTH)
        if (half < q->n) NAME(small_steps)(d, m, by_clients, has_reference, q, x, half);
    NAME(scatter)(x, q->stride, q->n, d, q->x);
}

INLINE void NAME(run_part)(const int by_clients, const int has_reference, const struct quadratic *q)
{
    switch (q->d) {
#define CASE(D) case D: \
        if (by_clients && q->n > LANES * (GROUPS / 2)) NAME(run_small)(D, GROUPS, by_clients, has_reference, q); \
        else if (by_clients && q->n > LANES) NAME(run_small)(D, GROUPS / 2, by_clients, has_reference, q); \
        else NAME(run_small)(D, 1, by_clients, has_reference, q); \
        return;
    CASE(1) CASE(2) CASE(3) CASE(4)
#undef CASE
    }
    NAME(gather)(q->x, q->stride, q->n, q->d, q->scratch);
    for (int64_t half = 0; half < LANES; half += WIDTH)
        if (half < q->n) NAME(steps)(by_clients, has_reference, q, q->scratch, half);
    NAME(scatter)(q->scratch, q->stride, q->n, q->d, q->x);
}

/* Clients at..at+m-1 of those in the lanes. */
INLINE struct quadratic NAME(part)(const struct quadratic *q, int64_t at, int64_t m)
{
    struct quadratic part = *q;
    part.n = m;
    part.x += at * q->stride;
    if (q->by_clients) {
        part.precision += at * q->d * q->d;
        if (!q->has_reference) part.origin += at * q->d;
    }
    return part;
}

TARGET static void NAME(run)(const struct quadratic *q)
{
    for (int64_t at = 0; at < q->n;) {
        /* whole groups, as many as are taken together, then what is left, padded */
        const int64_t left = q->n - at, most = q->d <= SMALL ? GROUPS * LANES : LANES;
        const int64_t n = left >= most ? most : left >= most / 2 && most > LANES ? most / 2 : left < LANES ? left : LANES;
        const struct quadratic part = NAME(part)(q, at, n);
        switch (q->by_clients << 1 | q->has_reference) {
        case 0: NAME(run_part)(0, 0, &part); break;
        case 1: NAME(run_part)(0, 1, &part); break;
        case 2: NAME(run_part)(1, 0, &part); break;
        case 3: NAME(run_part)(1, 1, &part); break;
        }
        at += n;
    }
}

/* out = H (x - origin) of one half of the lanes. */
INLINE void NAME(products)(const int by_clients, const struct quadratic *q, const double *x, double *v, double *out, int64_t half)
{
    const int64_t stride = by_clients ? LANES : 1;
    const double *h = q->precision + (by_clients ? half : 0);
    for (int64_t k = 0; k < q->d; ++k)
        *(VECTOR *)(v + k * LANES + half) = *(const VECTOR *)(x + k * LANES + half) - NAME(origin)(!by_clients, q, k, half);
    for (int64_t j = 0, n; j < q->d; j += n) {
        n = NAME(block)(q->d - j);
        if (by_clients) NAME(multiply_of_clients)(n, q->d, h + j * stride, v + half, out + j * LANES + half);
        else NAME(multiply_of_chains)(n, q->d, h + j * stride, v + half, out + j * LANES + half);
    }
}

/* The same for clients and d <= SMALL at one point for all, with everything in registers. */
INLINE void NAME(small_products)(const int d, const struct quadratic *q, double *out, int64_t half)
{
    VECTOR v[SMALL], sum[SMALL];
    UNROLL for (int k = 0; k < d; ++k) v[k] = NAME(all)(q->x[k]) - *(const VECTOR *)(q->origin + k * LANES + half);
    UNROLL for (int j = 0; j < d; ++j) sum[j] = NAME(all)(0.0);
    UNROLL for (int k = 0; k < d; ++k)
        UNROLL for (int j = 0; j < d; ++j)
            sum[j] = NAME(fused)(*(const VECTOR *)(q->precision + (k * d + j) * LANES + half), v[k], sum[j]);
    UNROLL for (int j = 0; j < d; ++j) *(VECTOR *)(out + j * LANES + half) = sum[j];
}

INLINE void NAME(small_gradients)(const int d, const struct quadratic *q, double *out, int64_t out_stride)
{
    double g[SMALL * LANES];
    for (int64_t at = 0; at < q->n; at += LANES) {
        const struct quadratic part = NAME(part)(q, at, q->n - at < LANES ? q->n - at : LANES);
        for (int64_t half = 0; half < LANES && half < part.n; half += WIDTH) NAME(small_products)(d, &part, g, half);
        NAME(scatter)(g, out_stride, part.n, d, out + at * out_stride);
    }
}

TARGET static void NAME(gradients)(const struct quadratic *q, double *out, int64_t out_stride)
{
    if (q->by_clients && q->stride == 0) switch (q->d) {
#define CASE(D) case D: NAME(small_gradients)(D, q, out, out_stride); return;
        CASE(1) CASE(2) CASE(3) CASE(4)
#undef CASE
    }
    double *x = q->scratch, *v = x + q->d * LANES, *g = v + q->d * LANES;
    for (int64_t at = 0; at < q->n; at += LANES) {
        const struct quadratic part = NAME(part)(q, at, q->n - at < LANES ? q->n - at : LANES);
        NAME(gather)(part.x, part.stride, part.n, q->d, x);
        for (int64_t half = 0; half < LANES; half += WIDTH) {
            if (half >= part.n) break;
            if (q->by_clients) NAME(products)(1, &part, x, v, g, half);
            else NAME(products)(0, &part, x, v, g, half);
        }
        NAME(scatter)(g, out_stride, part.n, q->d, out + at * out_stride);
    }
}
