/* Steps and gradients for d <= SMALL, with everything but H in registers: part of quadratic_lanes.h. */

/* m groups of lanes at once: a step of one waits for the results of its own operations most of the time; others fill the gaps. */
INLINE void NAME(small_steps)(const int d, const int m, const int by_clients, const int has_reference, const struct lanes *s)
{
    const VECTOR minus_step = NAME(all)(-s->step_size);
    const VECTOR common_scale = NAME(all)(s->common_scale), private_scale = NAME(all)(s->private_scale);
    const int one_origin = by_clients == has_reference;
    VECTOR x[GROUPS * SMALL], origin[GROUPS * SMALL], shift[SMALL], gradient[GROUPS * SMALL];
    UNROLL for (int i = 0; i < m * d; ++i) {
        x[i] = *(const VECTOR *)(s->x + i * LANES);
        origin[i] = one_origin ? NAME(all)(s->origin[i % d]) : *(const VECTOR *)(s->origin + i * LANES);
    }
    UNROLL for (int j = 0; j < d; ++j)
        shift[j] = !has_reference ? NAME(all)(0.0)
                 : by_clients     ? NAME(all)(s->shift[j])
                                  : *(const VECTOR *)(s->shift + j * LANES);
    for (int64_t r = 0; r < s->t; ++r) {
        UNROLL for (int i = 0; i < m * d; ++i) gradient[i] = NAME(all)(0.0);
        UNROLL for (int k = 0; k < d; ++k)
            UNROLL for (int i = 0; i < m * d; ++i) {
                const int64_t entry = (i / d * d + k) * d + i % d;
                gradient[i] = NAME(fused)(
                    by_clients ? *(const VECTOR *)(s->precision + entry * LANES) : NAME(all)(s->precision[entry]),
                    x[i / d * d + k] - origin[i / d * d + k], gradient[i]);
            }
        UNROLL for (int i = 0; i < m * d; ++i) {
            if (has_reference) gradient[i] += shift[i % d];
            x[i] = NAME(fused)(minus_step, gradient[i], x[i]);
        }
        if (s->common_scale != 0.0)
            UNROLL for (int i = 0; i < m * d; ++i) {
                const int64_t at = r * d + i % d;
                x[i] = NAME(fused)(
                    common_scale, by_clients ? NAME(all)(s->common[at]) : *(const VECTOR *)(s->common + at * LANES), x[i]);
            }
        if (s->private_scale != 0.0)
            UNROLL for (int i = 0; i < m * d; ++i)
                x[i] = NAME(fused)(private_scale, *(const VECTOR *)(s->private + (r * d + i) * LANES), x[i]);
    }
    UNROLL for (int i = 0; i < m * d; ++i) *(VECTOR *)(s->x + i * LANES) = x[i];
}

/* The steps of as many groups as NAME(part) takes together: one, or of clients GROUPS / 2 or GROUPS. */
INLINE void NAME(small)(int64_t groups, const int by_clients, const struct lanes *s)
{
    switch (s->d << 1 | s->has_reference) {
#define CASE(D, REFERENCE) case D << 1 | REFERENCE: \
        if (by_clients && groups > GROUPS / 2) NAME(small_steps)(D, GROUPS, by_clients, REFERENCE, s); \
        else if (by_clients && groups > 1) NAME(small_steps)(D, GROUPS / 2, by_clients, REFERENCE, s); \
        else NAME(small_steps)(D, 1, by_clients, REFERENCE, s); \
        return;
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
                *(const VECTOR *)(s->precision + (k * d + j) * LANES), *(const VECTOR *)(s->now + k * LANES), sum[j]);
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
