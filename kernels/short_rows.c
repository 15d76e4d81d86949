/* Full gradients of regressions with short rows (fald_hpc.kernels.short_rows). */

#include <math.h>

#include "vector_width.h"
#include "short_rows_call.h"

/* partial sums of a coordinate */
#define PARTS 8
/* vectors of rows at a time: as one waits for its exponential, another computes. A multiple of PARTS/WIDTH. */
#define VECTORS 4
/* features at most: fald_hpc.kernels.short_rows.MOST */
#define MOST 16

#define LINEAR 0
#define LOGISTIC 1
#define POISSON 2

#define ROUND 6755399441055744.0 /* 1.5 2^52 */
#define LOG2_E 1.4426950408889634
#define LN2_HIGH 0.693147180369123816490
#define LN2_LOW 1.90821492927058770002e-10

#define BODY "short_rows.h"
#include "all_widths.h"

void fald_short_rows(
    const double *columns, int64_t stride, int64_t n, int64_t d, int64_t family, const double *y, double *kept, double *out,
    int64_t width)
{
    double sums[MOST * PARTS] __attribute__((aligned(64))) = {0};
    switch (best_width(width)) {
#if defined(__x86_64__)
    case 8: gradient_512(columns, stride, n, d, family, y, kept, sums); break;
    case 4: gradient_256(columns, stride, n, d, family, y, kept, sums); break;
#endif
    default: gradient_128(columns, stride, n, d, family, y, kept, sums);
    }
    for (int64_t j = 0; j < d; ++j) {
        const double *s = sums + j * PARTS;
        out[j] += ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    }
}
