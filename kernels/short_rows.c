/* Full gradients of regressions with short rows (fald_hpc.kernels.short_rows). */

#include "vector_width.h"
#include "short_rows_call.h"

/* partial sums of a coordinate */
#define PARTS 8
/* vectors of rows at a time: as one waits for its exponential, another computes. A multiple of PARTS/WIDTH. */
#define VECTORS 4

#define BODY "short_rows.h"
#include "all_widths.h"

void fald_short_rows(
    const double *columns, int64_t stride, int64_t n, int64_t d, int64_t family, const double *y, double *kept, double *out,
    int64_t width)
{
    double sums[MOST * PARTS] __attribute__((aligned(64))) = {0};
    CALL_FOR(width, gradient, columns, stride, n, d, family, y, kept, sums)
    for (int64_t j = 0; j < d; ++j) {
        const double *s = sums + j * PARTS;
        out[j] += ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    }
}
