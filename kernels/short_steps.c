/* Langevin steps of regressions with short rows, clients side by side; see short_steps.h.
 *
 * Compiled with -ffp-contract=off, so that multiplications and additions are fused only where it is written. The variant
 * is chosen by the processor; all give the same bits.
 */

#include "vector_width.h"
#if defined(__x86_64__)
#include "lanes_transpose.h"
#endif
#include "short_steps_call.h"

/* vectors of clients at a time: one step waits for its own results most of the time, another fills the gaps */
#define VECTORS 2
/* the same for the rows of a minibatch */
#define ROWS 2
/* numbers of a packed row at most, in whole lines of the cache; the kept residual has its place behind them */
#define LARGEST_STRIDE 24
/* vectors that straddle two lines take twice as long to load */
#define LINES __attribute__((aligned(64)))
#define STRIDE(d) (((d) + 3 + 7) / 8 * 8)

#define BODY "short_steps.h"
#include "all_widths.h"

void fald_short_steps(
    const double *packed, const double *kept, const int64_t *rows, const double *common, const double *private,
    const double *reference, const double *shift, double *x, const double *prior, const int64_t *n_rows, const int64_t *batch,
    int64_t rows_stride, int64_t private_stride, int64_t x_stride, int64_t d, int64_t t, int64_t n, int64_t most, int64_t flags,
    double step_size, double common_scale, double private_scale)
{
    const struct short_steps q = {
        .packed = packed, .kept = kept, .rows = rows, .common = common, .private = private, .reference = reference,
        .shift = shift, .x = x, .prior = prior, .n_rows = n_rows, .batch = batch, .rows_stride = rows_stride,
        .private_stride = private_stride, .x_stride = x_stride, .d = d, .t = t, .n = n, .most = most,
        .step_size = step_size, .common_scale = common_scale, .private_scale = private_scale,
    };
    /* half a vector of 512 bits would be empty, and its rows would be loaded all the same */
    const int64_t width = flags >> 8 == 0 && n <= 4 ? 4 : flags >> 8;
    CALL_FOR(width, run, &q, flags & 3, flags >> 2 & 1)
}
