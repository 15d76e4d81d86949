/* Full gradients of regressions with short rows (fald_hpc.kernels.short_rows), as compiled Python calls them. */

#ifndef FALD_SHORT_ROWS_CALL_H
#define FALD_SHORT_ROWS_CALL_H

#include <stdint.h>

/* Adds the gradient of a client's rows at y to out: [d], and writes the rows' residuals to kept: [n].
 * columns: [d + 3][stride], features, then weight, offset and target of each row, whole eights of rows that end with zeros;
 * family: 0 linear, 1 logistic, 2 Poisson; width: of the vectors, 0 for the widest. */
void fald_short_rows(
    const double *columns, int64_t stride, int64_t n, int64_t d, int64_t family, const double *y, double *kept, double *out,
    int64_t width);

#endif
