/* Exact sums over clients (fald_hpc.kernels.exact_sum), as compiled Python calls them. */

#include <string.h>

#include "vector_width.h"
#include "exact_add_call.h"

/* vectors of coordinates whose sums over the clients stay in registers together */
#define VECTORS 3

struct grids {
    double limit; /* 2^window */
    double anchor[3];
};

#define BODY "exact_add.h"
#include "all_widths.h"

/* 2^exponent for -1022 <= exponent <= 1023 */
static double power(int64_t exponent)
{
    const int64_t bits = (exponent + 1023) << 52;
    double r;
    memcpy(&r, &bits, sizeof r);
    return r;
}

int64_t fald_exact_add(
    const double *values, int64_t clients, int64_t stride, int64_t d, int64_t window, int64_t grid, double *bins, int64_t width)
{
    struct grids w = {.limit = power(window)};
    for (int i = 0; i < 3; ++i) w.anchor[i] = 1.5 * power(window + 1 - (i + 1) * grid + 52);
    int64_t outside = 0;
    CALL_FOR(width, outside = run, values, clients, stride, d, &w, bins)
    return outside;
}
