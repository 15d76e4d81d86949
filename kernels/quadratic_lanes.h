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

/* t steps of the lanes of some groups, from the r-th of this pass on, from x or x - origin; small ones write x as well. */
INLINE void NAME(take_steps)(
    const int by_clients, const struct quadratic *q, struct lanes *s, const struct origin *origin, int64_t n, int64_t r, int64_t t,
    const double *from, int from_x, double *to, double *position)
{
    const int64_t group = q->d * LANES, groups = (n + LANES - 1) / LANES, end = by_clients ? LANES : groups * LANES;
    double *one = q->scratch, *two = one + (by_clients ? groups : 2) * group;
    const double *matrix = s->matrix;
    s->t = t, s->from_x = from_x, s->one_origin = origin->shared;
    for (int64_t lane = 0; lane < end && (!by_clients || lane < n);) {
        const int64_t g = lane / LANES, l = lane % LANES, at = g * group + l;
        s->from = from + at, s->to = to + at, s->turn[0] = two + at, s->turn[1] = one + at, s->position = position + at;
        s->origin = origin->of + (origin->shared ? 0 : at);
        s->base = q->base + (by_clients ? r * q->d : g * s->base_stride + r * group + l);
        s->private = q->private + g * q->private_stride + r * group + l;
        if (by_clients) s->matrix = matrix + l;
        if (WIDTH == LANES && q->d > SMALL && !by_clients && lane == 0 && groups == 2) {
            NAME(steps)(0, 2, s);
            lane += 2 * WIDTH;
            continue;
        }
        if (q->d > SMALL) NAME(steps)(by_clients, 1, s);
        else NAME(small)(by_clients ? groups : 1, by_clients, s);
        lane += WIDTH;
    }
    s->matrix = matrix;
}

/* Adds a client of some chains, or groups of clients of one chain, at x or, without it, at origin + offsets. */
INLINE void NAME(add_place)(
    const int by_clients, const struct quadratic *q, const struct origin *origin, const double *x, const double *offsets, int64_t n)
{
    const int64_t group = q->d * LANES, groups = (n + LANES - 1) / LANES;
    if (by_clients) {
        const int64_t left = n - (groups - 1) * LANES;
        if (x) NAME(add)(0, x, 0, groups, left, q, 0);
        else NAME(add)(1, offsets, origin, groups, left, q, 0);
        return;
    }
    for (int64_t g = 0; g < groups; ++g) {
        const struct origin of_group = {origin->of + (origin->shared ? 0 : g * group), origin->shared};
        if (x) NAME(add)(0, x + g * group, 0, 1, LANES, q, g);
        else NAME(add)(1, offsets + g * group, &of_group, 1, LANES, q, g);
    }
}

/* A client of some chains, or groups of clients of one chain, from x or x - origin, of which one may be missing, through all
 * steps to where it is wanted. Rows are n, stride apart, and begin at place. */
INLINE void NAME(pass)(
    const int by_clients, const struct quadratic *q, struct lanes *s, const struct origin *origin, const double *x,
    const double *offsets, int64_t n, int64_t stride, int64_t place, double *keep)
{
    const int64_t d = q->d, group = d * LANES, groups = (n + LANES - 1) / LANES, size = groups * group;
    double *one = q->scratch, *two = one + (by_clients ? groups : 2) * group, *end = two + (by_clients ? groups : 2) * group;
    /* where vectors are added before the last step, that one comes after them */
    for (int last = 0; last <= q->ahead; ++last) {
        const int64_t t = last ? 1 : q->t - q->ahead, r = last ? q->t - 1 : 0;
        double *to = keep && q->goes_on && last == q->ahead ? keep : last ? two : end;
        if (t && d <= SMALL) {
            double *position = keep && !q->goes_on ? keep : one;
            NAME(take_steps)(by_clients, q, s, origin, n, r, t, offsets ? offsets : x, !offsets, to, position);
            offsets = to, x = position;
        } else if (t) {
            if (!offsets) offsets = NAME(away)(x, origin, groups, d, one);
            NAME(take_steps)(by_clients, q, s, origin, n, r, t, offsets, 0, to, to);
            offsets = to, x = 0;
        }
        if (q->add && !last) NAME(add_place)(by_clients, q, origin, x, offsets, n);
    }
    if (keep && q->goes_on && offsets != keep) memcpy(keep, offsets, size * sizeof *keep);
    if (keep && !q->goes_on && x != keep) {
        if (x) memcpy(keep, x, size * sizeof *keep);
        else x = NAME(back)(offsets, origin, groups, d, keep);
    }
    if (!q->store) return;
    if (!x) x = NAME(back)(offsets, origin, groups, d, offsets == one ? two : one);
    NAME(scatter)(x, stride, n, d, q->x + place);
    if (q->goes_on) NAME(scatter)(offsets, stride, n, d, q->offsets + place);
}

/* Eight chains, or sixteen, of all clients; a client's matrix is read once for all of them. */
INLINE void NAME(steps_of_chains)(const struct quadratic *q)
{
    const int64_t d = q->d, group = d * LANES, groups = (q->chains + LANES - 1) / LANES;
    double *one = q->scratch, *reference = one + 6 * group, *start = reference + 2 * group, *moved = start + 2 * group;
    struct origin origin = {reference, 0};
    NAME(base_of_chains)(q, start);
    if (q->has_reference) NAME(gather)(q->reference, d, q->chains, d, reference);
    if (q->from_start) NAME(gather)(q->start, d, q->chains, d, start);
    if (q->from_start && q->has_reference) NAME(away)(start, &origin, groups, d, moved);
    struct lanes s = {
        .d = d, .group = group, .base_stride = q->t * group, .private_stride = q->private_stride, .private_scale = q->private_scale,
    };
    for (int64_t i = 0; i < q->clients; ++i) {
        const double *x = 0, *offsets = 0, *kept = q->kept + i * q->kept_stride;
        if (!q->has_reference) origin = (struct origin){q->mean + i * d, 1};
        if (q->from_start) {
            x = start;
            if (q->has_reference) offsets = moved;
        } else {
            if (!q->from_kept) {
                NAME(gather)((q->from_offsets ? q->offsets : q->x) + i * q->client_stride, d, q->chains, d, one);
                kept = one;
            }
            if (q->from_offsets) offsets = kept;
            else x = kept;
        }
        s.matrix = q->matrix + i * d * d;
        NAME(pass)(0, q, &s, &origin, x, offsets, q->chains, d, i * q->client_stride, q->keep ? q->keep + i * q->kept_stride : 0);
    }
}

/* One chain of n clients, from the at-th on, in groups of eight. */
INLINE void NAME(steps_of_clients)(const struct quadratic *q, int64_t at, int64_t n)
{
    const int64_t d = q->d, group = d * LANES, groups = (n + LANES - 1) / LANES, place = at * q->client_stride;
    double *one = q->scratch;
    const struct origin origin = {q->has_reference ? q->reference : q->mean + at * d, q->has_reference};
    const double *x = 0, *offsets = 0, *kept = q->kept + at * d;
    if (q->from_start) {
        for (int64_t g = 0; g < groups; ++g)
            for (int64_t j = 0; j < d; ++j)
                for (int l = 0; l < LANES; l += WIDTH) *(VECTOR *)(one + g * group + j * LANES + l) = NAME(all)(q->start[j]);
        x = one;
    } else {
        if (!q->from_kept) {
            NAME(gather)((q->from_offsets ? q->offsets : q->x) + place, q->client_stride, n, d, one);
            kept = one;
        }
        if (q->from_offsets) offsets = kept;
        else x = kept;
    }
    struct lanes s = {.d = d, .group = group, .private_scale = q->private_scale, .matrix = q->matrix + at * d * d};
    NAME(pass)(1, q, &s, &origin, x, offsets, n, q->client_stride, place, q->keep ? q->keep + at * d : 0);
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
            s.next = out + at, s.now = now + at;
            if (WIDTH == LANES && lane == 0 && groups == 2) {
                NAME(multiply)(0, 2, &s);
                break;
            }
            NAME(multiply)(0, 1, &s);
        }
        if (q->add)
            for (int64_t g = 0; g < groups; ++g) NAME(add)(0, out + g * group, 0, 1, LANES, q, g);
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
                s.next = out + g * group + lane, s.now = now + lane;
                if (d > SMALL) NAME(multiply)(1, 1, &s);
                else NAME(small_products)(&s);
            }
        if (q->add) NAME(add)(0, out, 0, groups, n - (groups - 1) * LANES, q, 0);
        if (q->store) NAME(scatter)(out, q->client_stride, n, d, q->x + at * q->client_stride);
    }
}
