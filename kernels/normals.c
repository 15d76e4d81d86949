/* Normals and random words, of one stream or of eight side by side (fald_hpc.kernels.normals). */

#include <string.h>

#include "vector_width.h"
#include "normals_call.h"

#define LANES 8
/* vectors of blocks at a time: as one waits for its next round, another computes. A multiple of LANES/WIDTH. */
#define VECTORS 4
#define ROUNDS 10

#define M0 0xD2511F53u
#define M1 0xCD9E8D57u
#define W0 0x9E3779B9u
#define W1 0xBB67AE85u
#define LOW 0xFFFFFFFFu

/* The key of each round. */
struct keys {
    uint64_t k0[ROUNDS], k1[ROUNDS];
};

static struct keys schedule(uint64_t key)
{
    struct keys k;
    for (uint32_t r = 0; r < ROUNDS; ++r) {
        /* modulo 2^32 */
        k.k0[r] = (uint32_t)key + r * W0;
        k.k1[r] = (uint32_t)(key >> 32) + r * W1;
    }
    return k;
}

#define BODY "normals.h"
#include "all_widths.h"

void fald_normals(uint64_t key, uint64_t c2, uint64_t c3, uint64_t k0, int64_t rows, int64_t d, double *out, int64_t width)
{
    const struct keys keys = schedule(key);
    CALL_FOR(width, normals, &keys, c2, c3, k0, rows, d, out)
}

void fald_normals_lanes(
    uint64_t key, const uint64_t *c2, const uint64_t *c3, uint64_t k0, int64_t rows, int64_t d, double *out, int64_t width)
{
    const struct keys keys = schedule(key);
    CALL_FOR(width, lanes, &keys, c2, c3, k0, rows, d, out)
}

void fald_words(
    uint64_t key, uint64_t c2, uint64_t c3, uint64_t k0, int64_t rows, int64_t blocks, uint64_t *out, int64_t width)
{
    const struct keys keys = schedule(key);
    CALL_FOR(width, raw_words, &keys, c2, c3, k0, rows, 2 * blocks, (double *)out)
}
