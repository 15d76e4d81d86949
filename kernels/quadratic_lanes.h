/* The Langevin steps of eight chains, or eight clients, side by side: one body for all vector widths.
 *
 * Every lane does exactly what fald_hpc.kernels.quadratic_plain does for one chain and client: the same operations in the same
 * order, multiply-adds fused where those are fused and nowhere else.
 */

#include "vector_math.h"
#include "exact_bins.h"
#include "quadratic_moves.h"
#include "quadratic_blocks.h"
#include "quadratic_small.h"

/* Eight chains, or sixteen, of all clients; a client's matrix is read once for all of them. */
INLINE void NAME(steps_of_chains)(const struct quadratic *q)
{
    const int64_t d = q->d, group = d * LANES, groups = (q->chains + LANES - 1) / LANES;
    double *scratch = q->scratch, *reference = scratch + 6 * group, *start = reference + 2 * group;
    NAME(base_of_chains)(q, start);
    if (q->has_reference) NAME(gather)(q->reference, d, q->chains, d, reference);
    if (q->from_start) NAME(gather)(q->start, d, q->chains, d, start);
    struct lanes s = {
        .d = d, .group = group, .base_stride = q->t * group, .private_stride = q->private_stride,
        .one_origin = !q->has_reference, .private_scale = q->private_scale,
    };
    for (int64_t i = 0; i < q->clients; ++i) {
        double *x = q->keep ? q->keep + i * q->kept_stride : scratch;
        if (q->from_start) memcpy(x, start, groups * group * sizeof *x);
        else if (q->from_kept) memcpy(x, q->kept + i * q->kept_stride, groups * group * sizeof *x);
        else NAME(gather)(q->x + i * q->client_stride, d, q->chains, d, x);
        s.matrix = q->matrix + i * d * d;
        /* where vectors are added before the last step, that one comes after them */
        for (int last = 0; last <= q->ahead; ++last) {
            s.t = last ? 1 : q->t - q->ahead;
            for (int64_t lane = 0; lane < groups * LANES;) {
                const int64_t g = lane / LANES, at = g * group + lane % LANES, done = last ? (q->t - 1) * group : 0;
                s.x = x + at, s.now = scratch + 2 * group + at, s.next = scratch + 4 * group + at;
                s.origin = q->has_reference ? reference + at : q->mean + i * d;
                s.base = q->base + g * s.base_stride + done + lane % LANES;
                s.private = q->private + g * q->private_stride + done + lane % LANES;
                if (WIDTH == LANES && d > SMALL && lane == 0 && groups == 2) {
                    NAME(steps)(0, 2, &s);
                    lane += 2 * WIDTH;
                    continue;
                }
                if (d > SMALL) NAME(steps)(0, 1, &s);
                else NAME(small)(1, 0, &s);
                lane += WIDTH;
            }
            if (q->add && !last)
                for (int64_t g = 0; g < groups; ++g) NAME(add)(x + g * group, 1, LANES, q, g);
        }
        if (q->store) NAME(scatter)(x, d, q->chains, d, q->x + i * q->client_stride);
    }
}

/* One chain of n clients, from the at-th on, in groups of eight. */
INLINE void NAME(steps_of_clients)(const struct quadratic *q, int64_t at, int64_t n)
{
    const int64_t d = q->d, group = d * LANES, groups = (n + LANES - 1) / LANES;
    double *x = q->scratch, *place = q->x + at * q->client_stride;
    if (q->from_start)
        for (int64_t g = 0; g < groups; ++g)
            for (int64_t j = 0; j < d; ++j)
                for (int l = 0; l < LANES; l += WIDTH) *(VECTOR *)(x + g * group + j * LANES + l) = NAME(all)(q->start[j]);
    else if (q->from_kept) memcpy(x, q->kept + at * d, groups * group * sizeof *x);
    else NAME(gather)(place, q->client_stride, n, d, x);
    struct lanes s = {.d = d, .group = group, .one_origin = q->has_reference, .private_scale = q->private_scale};
    for (int last = 0; last <= q->ahead; ++last) {
        s.t = last ? 1 : q->t - q->ahead;
        for (int64_t lane = 0; lane < LANES && lane < n; lane += WIDTH) {
            s.x = x + lane, s.now = s.x + group, s.next = s.now + group;
            s.matrix = q->matrix + at * d * d + lane;
            s.origin = q->has_reference ? q->reference : q->mean + at * d + lane;
            s.base = q->base + (last ? (q->t - 1) * d : 0), s.private = q->private + (last ? (q->t - 1) * group : 0) + lane;
            if (d > SMALL) NAME(steps)(1, 1, &s);
            else NAME(small)(groups, 1, &s);
        }
        if (q->add && !last) NAME(add)(x, groups, n - (groups - 1) * LANES, q, 0);
    }
    if (q->keep) memcpy(q->keep + at * d, x, groups * group * sizeof *x);
    if (q->store) NAME(scatter)(x, q->client_stride, n, d, place);
}

/* Clients of a part: whole groups, in parts of nearly equal size; the last one has what is left, padded. */
INLINE int64_t NAME(part)(int64_t clients, int64_t d)
{
    const int64_t most = d <= SMALL ? NAME(most_groups)(d) : 1;
    if (most == 1 || clients <= LANES) return LANES;
    const unsigned groups = (unsigned)((clients + LANES - 1) / LANES), parts = (groups + (unsigned)most - 1) / (unsigned)most;
    return (groups + parts - 1) / parts * LANES;
}

TARGET static void NAME(run)(const struct quadratic *q)
{
    if (!q->by_clients) {
        NAME(steps_of_chains)(q);
        return;
    }
    NAME(base_of_clients)(q);
    const int64_t n = NAME(part)(q->clients, q->d);
    for (int64_t at = 0; at < q->clients; at += n) NAME(steps_of_clients)(q, at, q->clients - at < n ? q->clients - at : n);
}

INLINE void NAME(gradients_of_chains)(const struct quadratic *q)
{
    const int64_t d = q->d, group = d * LANES, groups = (q->chains + LANES - 1) / LANES;
    double *out = q->scratch, *now = out + 2 * group, *reference = now + 2 * group;
    NAME(gather)(q->reference, d, q->chains, d, reference);
    struct lanes s = {.d = d, .group = group, .products = 1};
    for (int64_t i = 0; i < q->clients; ++i) {
        s.matrix = q->matrix + i * d * d;
        for (int64_t g = 0; g < groups; ++g)
            for (int64_t j = 0; j < d; ++j)
                for (int64_t at = g * group + j * LANES, end = at + LANES; at < end; at += WIDTH)
                    *(VECTOR *)(now + at) = *(const VECTOR *)(reference + at) - NAME(all)(q->mean[i * d + j]);
        for (int64_t lane = 0; lane < groups * LANES; lane += WIDTH) {
            const int64_t at = lane / LANES * group + lane % LANES;
            s.x = out + at, s.now = now + at;
            if (WIDTH == LANES && lane == 0 && groups == 2) {
                NAME(multiply)(0, 2, &s);
                break;
            }
            NAME(multiply)(0, 1, &s);
        }
        if (q->add)
            for (int64_t g = 0; g < groups; ++g) NAME(add)(out + g * group, 1, LANES, q, g);
        if (q->store) NAME(scatter)(out, d, q->chains, d, q->x + i * q->client_stride);
    }
}

TARGET static void NAME(gradients)(const struct quadratic *q)
{
    if (!q->by_clients) {
        NAME(gradients_of_chains)(q);
        return;
    }
    const int64_t d = q->d, group = d * LANES, size = NAME(part)(q->clients, d);
    struct lanes s = {.d = d, .products = 1};
    for (int64_t at = 0, n; at < q->clients; at += n) {
        n = q->clients - at < size ? q->clients - at : size;
        double *out = q->scratch, *now = out + size * d;
        const int64_t groups = (n + LANES - 1) / LANES;
        for (int64_t g = 0; g < groups; ++g)
            for (int64_t lane = 0; lane < LANES; lane += WIDTH) {
                const int64_t first = (at + g * LANES) * d;
                const double *mean = q->mean + first + lane;
                s.matrix = q->matrix + first * d + lane;
                for (int64_t j = 0; j < d; ++j)
                    *(VECTOR *)(now + j * LANES + lane) = NAME(all)(q->reference[j]) - *(const VECTOR *)(mean + j * LANES);
                s.x = out + g * group + lane, s.now = now + lane;
                if (d > SMALL) NAME(multiply)(1, 1, &s);
                else NAME(small_products)(&s);
            }
        if (q->add) NAME(add)(out, groups, n - (groups - 1) * LANES, q, 0);
        if (q->store) NAME(scatter)(out, q->client_stride, n, d, q->x + at * q->client_stride);
    }
}
