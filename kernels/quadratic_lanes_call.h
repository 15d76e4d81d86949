/* The steps of eight lanes across a gap, as compiled Python calls them (fald_hpc.kernels.quadratic). */

#ifndef FALD_QUADRATIC_LANES_CALL_H
#define FALD_QUADRATIC_LANES_CALL_H

#include <stdint.h>

#define LANES 8

struct quadratic {
    const double *precision; /* H: [d][d], or [d][d][LANES] with the lanes' own if by_clients */
    const double *origin;    /* H multiplies x - origin: [d] if one_origin, else [d][LANES] */
    const double *shift;     /* added to the gradient if has_shift: [d] if one_shift, else [d][LANES] */
    const double *common;    /* [t][d] if by_clients, else [t][d][LANES]; not read if its scale is 0 */
    const double *private;   /* [t][d][LANES]; not read if its scale is 0 */
    double *x;               /* lane l at x + l stride: [d] */
    double *scratch;         /* 3 d LANES numbers */
    int64_t d, t, n, stride; /* dimension, steps, lanes in use, distance of lanes in x */
    int by_clients, one_origin, has_shift, one_shift;
    double step_size, common_scale, private_scale;
};

/* flags: bits 0..3 the four ints above in this order; from bit 8 on the vector width to use, 0 for the widest. */
void fald_quadratic_lanes(
    const double *precision, const double *origin, const double *shift, const double *common, const double *private,
    double *x, double *scratch, int64_t d, int64_t t, int64_t n, int64_t stride, int64_t flags,
    double step_size, double common_scale, double private_scale);

#endif
