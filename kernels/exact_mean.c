/* Means of exact sums over clients (fald_hpc.kernels.exact_sum), as compiled Python calls them. */

#include "vector_width.h"
#include "exact_mean_call.h"

#define EXPONENT 0x7FF0000000000000

#define BODY "exact_mean.h"
#include "all_widths.h"

void fald_exact_mean(const double *bins, int64_t d, double n, double *out, int64_t width)
{
    CALL_FOR(width, mean, bins, d, n, out)
}
