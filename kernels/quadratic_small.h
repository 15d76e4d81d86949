/* Steps and gradients for d <= SMALL, with everything but the matrix in registers: part of quadratic_lanes.h. */

INLINE VECTOR NAME(small_origin)(const int d, int i, const struct lanes *s)
{
    return s->one_origin ? NAME(all)(s->origin[i % d]) : *(const VECTOR *)(s->origin + i * LANES);
}

/* m groups of lanes at once: a step of one waits for the results of its own operations most of the time; others fill the gaps. */
INLINE void NAME(small_steps)(const int d, const int m, const int by_clients, const struct lanes *s)
{
    const VECTOR private_scale = NAME(all)(s->private_scale);
    VECTOR offset[(GROUPS + 1) * SMALL], move[(GROUPS + 1) * SMALL];
    UNROLL for (int i = 0; i < m * d; ++i) offset[i] = *(const VECTOR *)(s->from + i * LANES);
    if (s->from_x) UNROLL for (int i = 0; i < m * d; ++i) offset[i] -= NAME(small_origin)(d, i, s);
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
                    offset[i / d * d + k], move[i]);
            }
        UNROLL for (int i = 0; i < m * d; ++i) offset[i] += move[i];
    }
    UNROLL for (int i = 0; i < m * d; ++i) *(VECTOR *)(s->to + i * LANES) = offset[i];
    UNROLL for (int i = 0; i < m * d; ++i) *(VECTOR *)(s->position + i * LANES) = offset[i] + NAME(small_origin)(d, i, s);
}

/* Groups of clients that take their steps together at most: as many as have room in the registers. */
INLINE int64_t NAME(most_groups)(int64_t d)
{
    return WIDTH == LANES && d <= 2 ? GROUPS + 1 : GROUPS;
}

INLINE void NAME(small_of)(const int d, const int64_t groups, const int by_clients, const struct lanes *s)
{
    switch (by_clients ? groups : 1) {
    case 1: NAME(small_steps)(d, 1, by_clients, s); break;
#if WIDTH >= 4
    case 2: NAME(small_steps)(d, 2, by_clients, s); break;
#endif
#if WIDTH == 8
    case 3: NAME(small_steps)(d, 3, by_clients, s); break;
    case 4: NAME(small_steps)(d, 4, by_clients, s); break;
    case 5: NAME(small_steps)(d, d <= 2 ? 5 : 4, by_clients, s); break;
#endif
    }
}

/* The steps of so many groups of clients, or of one of chains. */
INLINE void NAME(small)(int64_t groups, const int by_clients, const struct lanes *s)
{
    switch (s->d) {
    case 1: NAME(small_of)(1, groups, by_clients, s); break;
    case 2: NAME(small_of)(2, groups, by_clients, s); break;
    case 3: NAME(small_of)(3, groups, by_clients, s); break;
    case 4: NAME(small_of)(4, groups, by_clients, s); break;
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
    UNROLL for (int j = 0; j < d; ++j) *(VECTOR *)(s->next + j * LANES) = sum[j];
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
