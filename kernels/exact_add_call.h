/* Adds the vectors of some clients to the bins of an exact sum (fald_hpc.kernels.exact_sum.add_clients). */

#ifndef FALD_EXACT_ADD_CALL_H
#define FALD_EXACT_ADD_CALL_H

#include <stdint.h>

/* values: client i at i stride: [d]; grid: bits of a grid; bins: [3][d]; width: of the vectors, 0 for the widest.
 * Returns how many values lie outside the window 2^window or are not finite. */
int64_t fald_exact_add(
    const double *values, int64_t clients, int64_t stride, int64_t d, int64_t window, int64_t grid, double *bins, int64_t width);

#endif
