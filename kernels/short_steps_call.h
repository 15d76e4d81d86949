/* The Langevin steps of regressions with short rows, as compiled Python calls them (fald_hpc.kernels.short_steps). */

#ifndef FALD_SHORT_STEPS_CALL_H
#define FALD_SHORT_STEPS_CALL_H

#include <stdint.h>

/* clients in a vector of 512 bits, and groups of so many that one call takes at most */
#define SHORT_LANES 8
#define SHORT_GROUPS 2

struct short_steps {
    const double *packed;      /* [n rows][stride]: features, weight, offset, target of a row; stride: whole lines */
    const double *kept;        /* [n rows]: residuals at the reference; not read without one */
    const int64_t *rows;       /* [groups][rows_stride][SHORT_LANES]: rows of the minibatches, step after step */
    const double *common;      /* [t][d]; not read if its scale is 0 */
    const double *private;     /* [groups][private_stride][d][SHORT_LANES]; not read if its scale is 0 */
    const double *reference;   /* [d]: Y; not read without one */
    const double *shift;       /* [d]: C; not read without one */
    double *x;                 /* client i at x + i stride_x: [d] */
    const double *prior;       /* [n] */
    const int64_t *n_rows;     /* [n]: N_i */
    const int64_t *batch;      /* [n]: n_i <= most */
    int64_t rows_stride, private_stride, x_stride;
    int64_t d, t, n, most;     /* dimension, steps, clients, places of a step in rows */
    double step_size, common_scale, private_scale;
};

/* Advances n <= SHORT_LANES SHORT_GROUPS clients by t steps, side by side.
 *
 * A step has ``most`` places for rows in ``rows``, one or an even number; client i reads those that hold its minibatch, the
 * first batch[i]. What the other places and the lanes without a client hold must be rows that are there: it is read and dropped.
 * flags: bits 0-1 family (0 linear, 1 logistic, 2 Poisson), bit 2 with a reference, from bit 8 on the vector width, 0 for the
 * widest. */
void fald_short_steps(
    const double *packed, const double *kept, const int64_t *rows, const double *common, const double *private,
    const double *reference, const double *shift, double *x, const double *prior, const int64_t *n_rows, const int64_t *batch,
    int64_t rows_stride, int64_t private_stride, int64_t x_stride, int64_t d, int64_t t, int64_t n, int64_t most, int64_t flags,
    double step_size, double common_scale, double private_scale);

#endif
