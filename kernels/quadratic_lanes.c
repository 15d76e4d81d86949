/* Langevin steps of dense quadratics, eight chains or eight clients at a time; see quadratic_lanes.h.
 *
 * Compiled with -ffp-contract=off, so that multiplications and additions are fused only where it is written. The variant
 * is chosen by the processor; all give the same bits.
 */

#include <stdint.h>

#include "vector_width.h"
#if defined(__x86_64__)
#include "lanes_transpose.h"
#endif
#include "quadratic_lanes_call.h"

/* dimensions up to which a lane stays in registers; GROUPS of eight lanes then take their steps together */
#define SMALL 4

#define BLOCK 10
#define GROUPS (WIDTH / 2)
#define BODY "quadratic_lanes.h"
#include "all_widths.h"

/* vectors that straddle two lines of the cache take twice as long to load */
static double *aligned(double *scratch)
{
    return (double *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
}

void fald_quadratic_lanes(
    const double *precision, const double *origin, const double *shift, const double *common, const double *private,
    double *x, double *scratch, int64_t d, int64_t t, int64_t n, int64_t stride, int64_t flags,
    double step_size, double common_scale, double private_scale)
{
    const struct quadratic q = {
        .precision = precision, .origin = origin, .shift = shift, .common = common, .private = private,
        .x = x, .scratch = aligned(scratch), .d = d, .t = t, .n = n, .stride = stride,
        .by_clients = flags & 1, .has_reference = flags >> 1 & 1,
        .step_size = step_size, .common_scale = common_scale, .private_scale = private_scale,
    };
    CALL_FOR(flags >> 8, run, &q)
}

void fald_quadratic_gradients(
    const double *precision, const double *origin, const double *x, double *out, double *scratch,
    int64_t d, int64_t n, int64_t x_stride, int64_t out_stride, int64_t flags)
{
    /* x is only read here */
    const struct quadratic q = {
        .precision = precision, .origin = origin, .x = (double *)x, .scratch = aligned(scratch),
        .d = d, .n = n, .stride = x_stride, .by_clients = flags & 1,
    };
    CALL_FOR(flags >> 8, gradients, &q, out, out_stride)
}
