/* The steps of eight lanes across a gap, as compiled Python calls them (fald_hpc.kernels.quadratic). */

#ifndef FALD_QUADRATIC_LANES_CALL_H
#define FALD_QUADRATIC_LANES_CALL_H

#include <stdint.h>

#define LANES 8

/* Arrays with LANES as their last axis are best aligned to 64 bytes. */

struct quadratic {
    const double *precision; /* H: [d][d], or [groups][d][d][LANES] with the lanes' own if by_clients */
    const double *origin;    /* H multiplies x - origin: [d] if by_clients == has_reference, else [groups][d][LANES] */
    const double *shift;     /* added to the gradient if has_reference: [d] if by_clients, else [d][LANES] */
    const double *common;    /* [t][d] if by_clients, else [t][d][LANES]; not read if its scale is 0 */
    const double *private;   /* [t][d][LANES]; not read if its scale is 0 */
    double *x;               /* lane l at x + l stride: [d] */
    double *scratch;         /* 4 d LANES numbers and 64 bytes */
    int64_t d, t, n, stride; /* dimension, steps, lanes in use, distance of lanes in x */
    int by_clients, has_reference;
    double step_size, common_scale, private_scale;
};

/* flags: bit 0 by_clients, bit 1 has_reference; from bit 8 on the vector width to use, 0 for the widest. More than LANES
 * lanes only if by_clients, in groups of eight, and with common noise alone. */
void fald_quadratic_lanes(
    const double *precision, const double *origin, const double *shift, const double *common, const double *private,
    double *x, double *scratch, int64_t d, int64_t t, int64_t n, int64_t stride, int64_t flags,
    double step_size, double common_scale, double private_scale);

/* out = H (x - origin) for n lanes: lane l of x at l x_stride, of out at l out_stride; origin is one for all lanes, or
 * [groups][d][LANES] if by_clients. flags as above, without has_reference. */
void fald_quadratic_gradients(
    const double *precision, const double *origin, const double *x, double *out, double *scratch,
    int64_t d, int64_t n, int64_t x_stride, int64_t out_stride, int64_t flags);

#endif
