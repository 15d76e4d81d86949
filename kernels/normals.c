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

#define MANTISSA_OF_ROOT_TWO 0x6A09E667F3BCDull /* of 1.4142135623730951 */
#define LN2_HIGH 0.693147180369123816490
#define LN2_LOW 1.90821492927058770002e-10
#define TWO_PI 6.283185307179586

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

#if defined(__x86_64__)
#define CALL(function, ...) \
    switch (best_width(width)) { \
    case 8: function##_512(__VA_ARGS__); break; \
    case 4: function##_256(__VA_ARGS__); break; \
    default: function##_128(__VA_ARGS__); \
    }
#else
#define CALL(function, ...) \
    (void)width; \
    function##_128(__VA_ARGS__);
#endif

void fald_normals(uint64_t key, uint64_t c2, uint64_t c3, uint64_t k0, int64_t rows, int64_t d, double *out, int64_t width)
{
    const struct keys keys = schedule(key);
    CALL(normals, &keys, c2, c3, k0, rows, d, out)
}

void fald_normals_lanes(
    uint64_t key, const uint64_t *c2, const uint64_t *c3, uint64_t k0, int64_t rows, int64_t d, double *out, int64_t width)
{
    const struct keys keys = schedule(key);
    CALL(lanes, &keys, c2, c3, k0, rows, d, out)
}

void fald_words(
    uint64_t key, uint64_t c2, uint64_t c3, uint64_t k0, int64_t rows, int64_t blocks, uint64_t *out, int64_t width)
{
    const struct keys keys = schedule(key);
    CALL(raw_words, &keys, c2, c3, k0, rows, 2 * blocks, (double *)out)
}
