/* Residuals ∂ℓ/∂η of the regressions in vectors: included by bodies that are compiled once for each width, as vector_math.h. */

#include "elementary.h"

#ifndef LOGISTIC
#define LINEAR 0
#define LOGISTIC 1
#define POISSON 2
/* features of a short row at most: fald_hpc.kernels.short_rows.MOST */
#define MOST 15
#endif

INLINE VECTOR NAME(residual)(const int family, VECTOR eta, VECTOR target)
{
    if (family == LOGISTIC) return NAME(sigmoid)(eta) - target;
    if (family == POISSON) return NAME(exponential)(eta) - target;
    return eta - target;
}
