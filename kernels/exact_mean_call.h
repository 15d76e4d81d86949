/* Correctly rounded means of the bins of an exact sum (fald_hpc.kernels.exact_sum.mean). */

#ifndef FALD_EXACT_MEAN_CALL_H
#define FALD_EXACT_MEAN_CALL_H

#include <stdint.h>

/* bins: [3][d], sums over n clients; out: [d]; width: of the vectors, 0 for the widest. */
void fald_exact_mean(const double *bins, int64_t d, double n, double *out, int64_t width);

#endif
