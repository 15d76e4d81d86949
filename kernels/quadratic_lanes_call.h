/* Steps and gradients of dense quadratics in lanes, as compiled Python calls them (fald_hpc.kernels.quadratic). */

#ifndef FALD_QUADRATIC_LANES_CALL_H
#define FALD_QUADRATIC_LANES_CALL_H

#include <stdint.h>

#define LANES 8

/* flags; from bit 10 on the vector width to use, 0 for the widest */
#define BY_CLIENTS 1    /* lanes are clients of one chain, else chains */
#define HAS_REFERENCE 2 /* gradients are H (x - Y) + C, else H (x - mu) */
#define FROM_START 4    /* all clients begin at start; with neither this nor FROM_KEPT, at x */
#define STORE 8         /* write where they end to x */
#define ADD 16          /* add where they end to bins */
#define KEEP 32         /* write it to keep */
#define FROM_KEPT 64    /* all clients begin at kept */
#define AHEAD 128       /* what is added is where they are before the last of the t steps */
#define GOES_ON 256     /* keep x - origin, and store it beside x */
#define OFFSETS 512     /* kept holds x - origin; without FROM_KEPT, begin at offsets */

/* Arrays with LANES as their last axis are best aligned to 64 bytes.
 *
 * moves      -gamma H: [clients][d][d], or [groups][d][d][LANES] with the lanes' own if BY_CLIENTS
 * mean       mu: [clients][d], or [groups][d][LANES]; not read with a reference
 * reference  Y: [chains][d], one chain if BY_CLIENTS; read with a reference only
 * shift      C, likewise
 * common     [t][d], or [groups][..][d][LANES] with common_stride between groups; not read if its scale is 0
 * private    [t][d][LANES] or, of two groups of chains, [groups][..][d][LANES] with private_stride; not read if its scale is 0
 * start      [chains][d], one chain if BY_CLIENTS
 * kept       [groups][d][LANES] of client i at kept + i kept_stride or, if BY_CLIENTS, of all; read for FROM_KEPT only
 * base       work space: [t][d], or [groups][t][d][LANES]: what moves all clients of a chain alike
 * x          client i, chain s at x + i client_stride + s d: [d]
 * offsets    likewise: x - origin, with Y or mu for the origin; read or written for OFFSETS and GOES_ON only
 * keep       as kept, and not the same place; written for KEEP only
 * bins       [3 d + 1][LANES] for each group of chains, or one if BY_CLIENTS: sums and the largest magnitude
 * scratch    15 d LANES numbers and 64 bytes, whatever the sizes
 *
 * At most two groups of chains, any number of clients; with private noise one client, or one group of them. */

void fald_quadratic_steps(
    const double *moves, const double *mean, const double *reference, const double *shift, const double *common,
    const double *private, const double *start, const double *kept, double *base, double *x, double *offsets, double *keep,
    double *bins, double *scratch, const int64_t *window,
    int64_t clients, int64_t chains, int64_t d, int64_t t, int64_t client_stride, int64_t kept_stride, int64_t common_stride,
    int64_t private_stride, int64_t grid, int64_t flags, double step_size, double common_scale, double private_scale);

/* Gradients H (Y - mu) at the references of all chains: to out, as x, if STORE; to bins if ADD. */
void fald_quadratic_gradients(
    const double *precision, const double *mean, const double *reference, double *out, double *bins, double *scratch,
    const int64_t *window, int64_t clients, int64_t chains, int64_t d, int64_t client_stride, int64_t grid, int64_t flags);

/* Bins of a group of chains, or of the one chain if BY_CLIENTS, to messages: 3 d sums, chains stride apart. Returns 0 if all values
 * lay inside the windows; else the sums are void. */
int64_t fald_quadratic_sums(
    const double *bins, const int64_t *window, int64_t chains, int64_t d, int64_t stride, int64_t flags, double *messages);

#endif
