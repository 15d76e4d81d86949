/* The local Langevin steps of dense quadratics (fald_hpc.kernels.quadratic), and their sums over clients.
 *
 * Vectors are spelled out, since every lane must do exactly what the plain steps do for one chain and client: additions in
 * the same order, fused only where it is written. The variant is chosen by the processor; all give the same bits.
 */

#include <stdint.h>
#include <string.h>

#include "vector_width.h"
#if defined(__x86_64__)
#include "lanes_transpose.h"
#endif
#include "quadratic_lanes_call.h"

/* rows of H whose products with x stay in registers together */
#define BLOCK 10
/* dimensions up to which a lane stays in registers; groups of eight clients then take their steps together, GROUPS or most_groups(d) */
#define SMALL 4
#define GROUPS (WIDTH / 2)

struct quadratic {
    const double *matrix; /* H for gradients, -gamma H for steps */
    const double *mean, *reference, *shift, *common, *private, *start, *kept;
    double *base, *x, *offsets, *keep, *bins, *scratch;
    double *anchors; /* [groups of chains, one if by_clients][3][LANES] */
    int64_t clients, chains, d, t, client_stride, kept_stride, common_stride, private_stride;
    int by_clients, has_reference, from_start, from_kept, from_offsets, store, add, ahead, goes_on;
    double step_size, common_scale, private_scale;
};

/* What the steps of some lanes read and write; the second vector of two lies ``group`` numbers behind the first, but for
 * base and noise, which have strides of their own. They begin ``from``, end at ``to``, and take turns between. Small ones
 * also begin at x, and write where they end to ``position``. */
struct lanes {
    const double *from, *now;
    double *turn[2], *to, *next, *position;
    const double *matrix, *origin, *base, *private;
    int64_t d, t, group, base_stride, private_stride;
    int products, from_x, one_origin;
    double private_scale;
};

/* Y or mu of some lanes: [groups][d][LANES], or [d] of all of them. */
struct origin {
    const double *of;
    int shared;
};

/* 2^exponent for -1022 <= exponent <= 1023 */
static double power(int64_t exponent)
{
    const int64_t bits = (exponent + 1023) << 52;
    double r;
    memcpy(&r, &bits, sizeof r);
    return r;
}

#define ANCHORS (2 * 3 * LANES)

/* Anchors of the chains: adding and subtracting 1.5 2^52 grid rounds to a multiple of the grid. */
static void set_anchors(const struct quadratic *q, const int64_t *window, int64_t grid)
{
    for (int i = 0; i < 3; ++i) {
        const int64_t below = 53 - (i + 1) * grid;
        double *anchors = q->anchors + i * LANES;
        if (q->by_clients) {
            const double anchor = 1.5 * power(window[0] + below);
            for (int l = 0; l < LANES; ++l) anchors[l] = anchor;
            continue;
        }
        /* those of lanes that are not in use play no part */
        for (int l = 0; l < 2 * LANES; ++l) anchors[l / LANES * 3 * LANES + l % LANES] = 1.5 * power((l < q->chains ? window[l] : 0) + below);
    }
}

/* ones in the first n of eight lanes: LANES - n numbers behind the beginning */
static const int64_t first_lanes[2 * LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};

/* vectors that straddle two lines of the cache take twice as long to load */
static double *aligned(double *scratch)
{
    return (double *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
}

#define BODY "quadratic_lanes.h"
#include "all_widths.h"

void fald_quadratic_steps(
    const double *moves, const double *mean, const double *reference, const double *shift, const double *common,
    const double *private, const double *start, const double *kept, double *base, double *x, double *offsets, double *keep,
    double *bins, double *scratch, const int64_t *window,
    int64_t clients, int64_t chains, int64_t d, int64_t t, int64_t client_stride, int64_t kept_stride, int64_t common_stride,
    int64_t private_stride, int64_t grid, int64_t flags, double step_size, double common_scale, double private_scale)
{
    double anchors[ANCHORS];
    const struct quadratic q = {
        .matrix = moves, .mean = mean, .reference = reference, .shift = shift, .common = common, .private = private,
        .start = start, .kept = kept, .base = base, .x = x, .offsets = offsets, .keep = flags & KEEP ? keep : 0, .bins = bins,
        .scratch = aligned(scratch), .anchors = anchors, .clients = clients, .chains = chains, .d = d, .t = t,
        .client_stride = client_stride, .kept_stride = kept_stride, .common_stride = common_stride, .private_stride = private_stride,
        .by_clients = (flags & BY_CLIENTS) != 0, .has_reference = (flags & HAS_REFERENCE) != 0,
        .from_start = (flags & FROM_START) != 0, .from_kept = (flags & FROM_KEPT) != 0, .store = (flags & STORE) != 0,
        .add = (flags & ADD) != 0, .ahead = (flags & AHEAD) != 0, .goes_on = (flags & GOES_ON) != 0,
        .from_offsets = (flags & OFFSETS) != 0,
        .step_size = step_size, .common_scale = common_scale, .private_scale = private_scale,
    };
    if (q.add) set_anchors(&q, window, grid);
    CALL_FOR(flags >> 10, run, &q)
}

void fald_quadratic_gradients(
    const double *precision, const double *mean, const double *reference, double *out, double *bins, double *scratch,
    const int64_t *window, int64_t clients, int64_t chains, int64_t d, int64_t client_stride, int64_t grid, int64_t flags)
{
    double anchors[ANCHORS];
    const struct quadratic q = {
        .matrix = precision, .mean = mean, .reference = reference, .x = out, .bins = bins, .scratch = aligned(scratch),
        .anchors = anchors, .clients = clients, .chains = chains, .d = d, .client_stride = client_stride,
        .by_clients = (flags & BY_CLIENTS) != 0, .store = (flags & STORE) != 0, .add = (flags & ADD) != 0,
    };
    if (q.add) set_anchors(&q, window, grid);
    CALL_FOR(flags >> 10, gradients, &q)
}

int64_t fald_quadratic_sums(
    const double *bins, const int64_t *window, int64_t chains, int64_t d, int64_t stride, int64_t flags, double *messages)
{
    int64_t outside = 0;
    const double *largest = bins + 3 * d * LANES;
    if (flags & BY_CLIENTS) {
        const double limit = power(window[0]);
        for (int l = 0; l < LANES; ++l) outside += !(largest[l] <= limit);
        for (int64_t j = 0; j < 3 * d; ++j, bins += LANES) {
            messages[j] = ((bins[0] + bins[1]) + (bins[2] + bins[3])) + ((bins[4] + bins[5]) + (bins[6] + bins[7]));
            outside += messages[j] != messages[j];
        }
        return outside;
    }
    for (int64_t l = 0; l < chains; ++l) outside += !(largest[l] <= power(window[l]));
    for (int64_t j = 0; j < 3 * d; ++j, bins += LANES)
        for (int64_t l = 0; l < chains; ++l) {
            messages[l * stride + j] = bins[l];
            outside += bins[l] != bins[l];
        }
    return outside;
}
