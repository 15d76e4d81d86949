/* Normals and random words of many addresses at once (fald_hpc.kernels.normals), as compiled Python calls them. */

#ifndef FALD_NORMALS_CALL_H
#define FALD_NORMALS_CALL_H

#include <stdint.h>

/* The normals of one stream. key: of the generator; c2, c3: upper counter words; out: [rows][d], row r of step k0 + r;
 * width: of the vectors, 0 for the widest. */
void fald_normals(uint64_t key, uint64_t c2, uint64_t c3, uint64_t k0, int64_t rows, int64_t d, double *out, int64_t width);

/* The normals of eight streams side by side. c2, c3: [8]; out: [rows][d][8]. */
void fald_normals_lanes(
    uint64_t key, const uint64_t *c2, const uint64_t *c3, uint64_t k0, int64_t rows, int64_t d, double *out, int64_t width);

/* Random words of one stream: out: [rows][2 blocks]. */
void fald_words(
    uint64_t key, uint64_t c2, uint64_t c3, uint64_t k0, int64_t rows, int64_t blocks, uint64_t *out, int64_t width);

#endif
