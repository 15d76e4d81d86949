/* Steps and gradients for d <= SMALL, with everything but the matrix in registers: part of quadratic_lanes.h. */

/* m groups of lanes at once: a step of one waits for the results of its own operations most of the time; others fill the gaps. */
INLINE void NAME(small_steps)(const int d, const int m, const int by_clients, const int one_origin, const struct lanes *s)
{
    const VECTOR private_scale = NAME(all)(s->private_scale);
    VECTOR x[(GROUPS + 1) * SMALL], origin[(GROUPS + 1) * SMALL], move[(GROUPS + 1) * SMALL];
    UNROLL for (int i = 0; i < m * d; ++i) {
        x[i] = *(const VECTOR *)(s->x + i * LANES);
        origin[i] = one_origin ? NAME(all)(s->origin[i % d]) : *(const VECTOR *)(s->origin + i * LANES);
    }
    for (int64_t r = 0; r < s->t; ++r) {
        UNROLL for (int i = 0; i < m * d; ++i) {
            const int64_t at = r * d + i % d;
            move[i] = by_clients ? NAME(all)(s->base[at]) : *(const VECTOR *)(s->base + at * LANES);
        }
        if (s->private_scale != 0.0)
            UNROLL for (int i = 0; i < m * d; ++i)
                move[i] = NAME(fused)(private_scale, *(const VECTOR *)(s->private + (r * d + i) * LANES), move[i]);
        UNROLL for (int k = 0; k < d; ++k)
            UNROLL for (int i = 0; i < m * d; ++i) {
                const int64_t entry = (i / d * d + k) * d + i % d;
                move[i] = NAME(fused)(
                    by_clients ? *(const VECTOR *)(s->matrix + entry * LANES) : NAME(all)(s->matrix[entry]),
                    x[i / d * d + k] - origin[i / d * d + k], move[i]);
            }
        UNROLL for (int i = 0; i < m * d; ++i) x[i] += move[i];
    }
    UNROLL for (int i = 0; i < m * d; ++i) *(VECTOR *)(s->x + i * LANES) = x[i];
}

/* Groups of clients that take their steps together at most: as many as have room in the registers. */
INLINE int64_t NAME(most_groups)(int64_t d)
{
    return WIDTH == LANES && d <= 2 ? GROUPS + 1 : GROUPS;
}

INLINE void NAME(small_of)(const int d, const int64_t groups, const int by_clients, const int one_origin, const struct lanes *s)
{
    switch (by_clients ? groups : 1) {
    case 1: NAME(small_steps)(d, 1, by_clients, one_origin, s); break;
#if WIDTH >= 4
    case 2: NAME(small_steps)(d, 2, by_clients, one_origin, s); break;
#endif
#if WIDTH == 8
    case 3: NAME(small_steps)(d, 3, by_clients, one_origin, s); break;
    case 4: NAME(small_steps)(d, 4, by_clients, one_origin, s); break;
    case 5: NAME(small_steps)(d, d <= 2 ? 5 : 4, by_clients, one_origin, s); break;
#endif
    }
}

/* The steps of so many groups of clients, or of one of chains. */
INLINE void NAME(small)(int64_t groups, const int by_clients, const struct lanes *s)
{
    switch (s->d << 1 | s->one_origin) {
#define CASE(D, ONE_ORIGIN) case D << 1 | ONE_ORIGIN: NAME(small_of)(D, groups, by_clients, ONE_ORIGIN, s); return;
    CASE(1, 0) CASE(2, 0) CASE(3, 0) CASE(4, 0) CASE(1, 1) CASE(2, 1) CASE(3, 1) CASE(4, 1)
#undef CASE
    }
}

INLINE void NAME(small_product)(const int d, const struct lanes *s)
{
    VECTOR sum[SMALL];
    UNROLL for (int j = 0; j < d; ++j) sum[j] = NAME(all)(0.0);
    UNROLL for (int k = 0; k < d; ++k)
        UNROLL for (int j = 0; j < d; ++j)
            sum[j] = NAME(fused)(
                *(const VECTOR *)(s->matrix + (k * d + j) * LANES), *(const VECTOR *)(s->now + k * LANES), sum[j]);
    UNROLL for (int j = 0; j < d; ++j) *(VECTOR *)(s->x + j * LANES) = sum[j];
}

/* H now of eight clients. */
INLINE void NAME(small_products)(const struct lanes *s)
{
    switch (s->d) {
    case 1: NAME(small_product)(1, s); break;
    case 2: NAME(small_product)(2, s); break;
    case 3: NAME(small_product)(3, s); break;
    case 4: NAME(small_product)(4, s); break;
    }
}
