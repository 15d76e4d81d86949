/* Products with a matrix by blocks of rows, and the moves that they are: part of quadratic_lanes.h. */

/* What moves all clients of a chain alike: -gamma C, if there is a reference, and common noise. C goes through ``shift``. */
INLINE void NAME(base_of_chains)(const struct quadratic *q, double *shift)
{
    const int64_t group = q->d * LANES, groups = (q->chains + LANES - 1) / LANES;
    const VECTOR minus_step = NAME(all)(-q->step_size), scale = NAME(all)(q->common_scale);
    if (q->has_reference) NAME(gather)(q->shift, q->d, q->chains, q->d, shift);
    for (int64_t g = 0; g < groups; ++g)
        for (int64_t r = 0; r < q->t; ++r) {
            const double *common = q->common + g * q->common_stride + r * group;
            double *base = q->base + (g * q->t + r) * group;
            for (int64_t j = 0; j < group; j += WIDTH) {
                VECTOR value = NAME(all)(0.0);
                if (q->common_scale != 0.0) value = scale * *(const VECTOR *)(common + j);
                if (q->has_reference) value = NAME(fused)(minus_step, *(const VECTOR *)(shift + g * group + j), value);
                *(VECTOR *)(base + j) = value;
            }
        }
}

INLINE void NAME(base_rows)(const int has_common, const int has_reference, const struct quadratic *q)
{
    for (int64_t r = 0; r < q->t; ++r)
        for (int64_t j = 0; j < q->d; ++j) {
            double value = has_common ? q->common_scale * q->common[r * q->d + j] : 0.0;
            if (has_reference) value = __builtin_fma(-q->step_size, q->shift[j], value);
            q->base[r * q->d + j] = value;
        }
}

INLINE void NAME(base_of_clients)(const struct quadratic *q)
{
    if (q->common_scale != 0.0 && q->has_reference) NAME(base_rows)(1, 1, q);
    else if (q->common_scale != 0.0) NAME(base_rows)(1, 0, q);
    else NAME(base_rows)(0, q->has_reference, q);
}

/* Rows j..j+n-1 of the matrix times m vectors; each row is one chain of additions over k, so n of them keep the units busy. They
 * begin with what moves a lane anyway, and the lanes move as soon as their products are there, to a second place, since the
 * products of other blocks need them as they were. */
INLINE void NAME(rows)(const int n, const int m, const int by_clients, const struct lanes *given, int64_t j)
{
    /* a copy: what is stored could be part of the original, which would be read again after every store */
    const struct lanes s = *given;
    const int64_t stride = by_clients ? LANES : 1;
    const double *h = s.matrix + j * stride, *now = s.now;
    double *next = s.next + j * LANES;
    VECTOR sum[BLOCK][2];
    if (s.products) {
        UNROLL for (int i = 0; i < n; ++i)
            UNROLL for (int w = 0; w < m; ++w) sum[i][w] = NAME(all)(0.0);
    } else {
        const double *base = s.base + j * (by_clients ? 1 : LANES);
        UNROLL for (int i = 0; i < n; ++i)
            UNROLL for (int w = 0; w < m; ++w)
                sum[i][w] = by_clients ? NAME(all)(base[i]) : *(const VECTOR *)(base + i * LANES + w * s.base_stride);
    }
    if (s.private_scale != 0.0) {
        const VECTOR scale = NAME(all)(s.private_scale);
        const double *private = s.private + j * LANES;
        UNROLL for (int i = 0; i < n; ++i)
            UNROLL for (int w = 0; w < m; ++w)
                sum[i][w] = NAME(fused)(scale, *(const VECTOR *)(private + i * LANES + w * s.private_stride), sum[i][w]);
    }
    for (int64_t k = 0; k < s.d; ++k, h += s.d * stride) {
        VECTOR of[2];
        UNROLL for (int w = 0; w < m; ++w) of[w] = *(const VECTOR *)(now + k * LANES + w * s.group);
        UNROLL for (int i = 0; i < n; ++i) {
            const VECTOR entry = by_clients ? *(const VECTOR *)(h + i * LANES) : NAME(all)(h[i]);
            UNROLL for (int w = 0; w < m; ++w) sum[i][w] = NAME(fused)(entry, of[w], sum[i][w]);
        }
    }
    UNROLL for (int i = 0; i < n; ++i)
        UNROLL for (int w = 0; w < m; ++w) {
            if (!s.products) sum[i][w] += *(const VECTOR *)(now + (j + i) * LANES + w * s.group);
            *(VECTOR *)(next + i * LANES + w * s.group) = sum[i][w];
        }
}

/* not inlined: a body for each number of rows in each of its callers takes the compiler a minute */
#define ROWS(ROWS_NAME, BY_CLIENTS, VECTORS) \
TARGET static __attribute__((noinline)) void NAME(ROWS_NAME)(int64_t n, const struct lanes *s, int64_t j) \
{ \
    switch (n) { \
    case 1: NAME(rows)(1, VECTORS, BY_CLIENTS, s, j); break; \
    case 2: NAME(rows)(2, VECTORS, BY_CLIENTS, s, j); break; \
    case 3: NAME(rows)(3, VECTORS, BY_CLIENTS, s, j); break; \
    case 4: NAME(rows)(4, VECTORS, BY_CLIENTS, s, j); break; \
    case 5: NAME(rows)(5, VECTORS, BY_CLIENTS, s, j); break; \
    case 6: NAME(rows)(6, VECTORS, BY_CLIENTS, s, j); break; \
    case 7: NAME(rows)(7, VECTORS, BY_CLIENTS, s, j); break; \
    case 8: NAME(rows)(8, VECTORS, BY_CLIENTS, s, j); break; \
    case 9: NAME(rows)(9, VECTORS, BY_CLIENTS, s, j); break; \
    case 10: NAME(rows)(10, VECTORS, BY_CLIENTS, s, j); break; \
    } \
}
ROWS(rows_of_chains, 0, 1)
ROWS(rows_of_clients, 1, 1)
#if WIDTH == 8
ROWS(rows_of_two, 0, 2)
#endif
#undef ROWS

/* All rows in blocks of nearly equal size: one of a single row would run at a tenth of the speed. */
INLINE void NAME(multiply)(const int by_clients, const int m, const struct lanes *s)
{
    (void)m;
    for (int64_t j = 0, n; j < s->d; j += n) {
        const int64_t left = s->d - j, blocks = (left + BLOCK - 1) / BLOCK;
        n = (left + blocks - 1) / blocks;
        if (by_clients) NAME(rows_of_clients)(n, s, j);
#if WIDTH == 8
        else if (m == 2) NAME(rows_of_two)(n, s, j);
#endif
        else NAME(rows_of_chains)(n, s, j);
    }
}

/* All steps of m vectors. */
INLINE void NAME(steps)(const int by_clients, const int m, struct lanes *s)
{
    s->now = s->from;
    for (int64_t r = 0; r < s->t; ++r) {
        s->next = r + 1 < s->t ? s->turn[r & 1] : s->to;
        NAME(multiply)(by_clients, m, s);
        s->now = s->next;
        s->base += s->d * (by_clients ? 1 : LANES), s->private += s->d * LANES;
    }
}
