/* Full gradients of regressions with short rows: one body for all vector widths. Rows lie side by side in the vectors.
 *
 * A row's residual has the bits that a step gives it (fald_hpc.kernels.glm). A coordinate of the gradient is summed in eight
 * parts, row r in part r mod 8, whatever the width.
 */

#include "residuals.h"

/* Rows of so many vectors from a column on; the first n of them are there. */
INLINE void NAME(rows)(
    const int vectors, const int family, const double *columns, int64_t stride, int64_t n, int64_t d, const double *y,
    double *kept, double *sums)
{
    VECTOR eta[VECTORS];
    UNROLL for (int v = 0; v < vectors; ++v) eta[v] = NAME(all)(0.0);
    const double *column = columns;
    for (int64_t j = 0; j < d; ++j, column += stride)
        UNROLL for (int v = 0; v < vectors; ++v)
            eta[v] = NAME(fused)(*(const VECTOR *)(column + v * WIDTH), NAME(all)(y[j]), eta[v]);
    UNROLL for (int v = 0; v < vectors; ++v) {
        const VECTOR weight = *(const VECTOR *)(column + v * WIDTH), offset = *(const VECTOR *)(column + stride + v * WIDTH);
        const VECTOR target = *(const VECTOR *)(column + 2 * stride + v * WIDTH);
        eta[v] = weight * NAME(residual)(family, eta[v] + offset, target);
    }
    UNROLL for (int v = 0; v < vectors; ++v) {
        if ((v + 1) * WIDTH <= n) *(VECTOR *)(kept + v * WIDTH) = eta[v];
        else
            for (int64_t l = v * WIDTH; l < n; ++l) kept[l] = eta[v][l - v * WIDTH];
    }
    column = columns;
    for (int64_t j = 0; j < d; ++j, column += stride)
        UNROLL for (int v = 0; v < vectors; ++v) {
            VECTOR *sum = (VECTOR *)(sums + j * PARTS + v * WIDTH % PARTS);
            *sum = NAME(fused)(eta[v], *(const VECTOR *)(column + v * WIDTH), *sum);
        }
}

#define FAMILY(FAMILY_NAME, NUMBER) \
TARGET static void NAME(FAMILY_NAME)( \
    const double *columns, int64_t stride, int64_t n, int64_t d, const double *y, double *kept, double *sums) \
{ \
    const int64_t whole = (n + PARTS - 1) / PARTS * PARTS; \
    int64_t at = 0; \
    for (; at + VECTORS * WIDTH <= whole; at += VECTORS * WIDTH) \
        NAME(rows)(VECTORS, NUMBER, columns + at, stride, n - at, d, y, kept + at, sums); \
    for (; at < whole; at += PARTS) \
        NAME(rows)(PARTS / WIDTH, NUMBER, columns + at, stride, n - at, d, y, kept + at, sums); \
}

FAMILY(linear, LINEAR)
FAMILY(logistic, LOGISTIC)
FAMILY(poisson, POISSON)
#undef FAMILY

TARGET static void NAME(gradient)(
    const double *columns, int64_t stride, int64_t n, int64_t d, int64_t family, const double *y, double *kept, double *sums)
{
    switch (family) {
    case LOGISTIC: NAME(logistic)(columns, stride, n, d, y, kept, sums); break;
    case POISSON: NAME(poisson)(columns, stride, n, d, y, kept, sums); break;
    default: NAME(linear)(columns, stride, n, d, y, kept, sums);
    }
}
