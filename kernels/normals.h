/* Normals by Philox4x32-10 and Box-Muller: one body for all vector widths.
 *
 * A vector holds WIDTH blocks, each with the two words, then the two normals, of one address. Every element is computed as
 * fald_hpc.kernels.noise.words and box_muller do for one block, with the same bits; where operations differ, both are exact.
 */

#include "elementary.h"

/* The 64-bit products of the lower halves. */
INLINE WORDS NAME(product)(WORDS a, WORDS b)
{
#if WIDTH == 8
    return (WORDS)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif WIDTH == 4
    return (WORDS)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
    return (a & LOW) * (b & LOW);
#endif
}

INLINE VECTOR NAME(root)(VECTOR x)
{
#if WIDTH == 8
    return (VECTOR)_mm512_sqrt_pd((__m512d)x);
#elif WIDTH == 4
    return (VECTOR)_mm256_sqrt_pd((__m256d)x);
#else
    return (VECTOR){__builtin_sqrt(x[0]), __builtin_sqrt(x[1])};
#endif
}

/* Integers below 2^53 as doubles. */
INLINE VECTOR NAME(number)(WORDS w)
{
#if WIDTH == 8
    return (VECTOR)_mm512_cvtepu64_pd((__m512i)w);
#else
    /* the halves below the leading bits of 2^84 and 2^52: both differences are exact */
    const VECTOR high = (VECTOR)((w >> 32) | 0x4530000000000000), low = (VECTOR)((w & LOW) | 0x4330000000000000);
    return (high - 19342813118337666422669312.0) + low;
#endif
}

/* x[0], y[0], x[1], y[1], ... */
INLINE void NAME(interleave)(VECTOR x, VECTOR y, double *out)
{
#if WIDTH == 8
    const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    _mm512_storeu_pd(out, _mm512_permutex2var_pd((__m512d)x, low, (__m512d)y));
    _mm512_storeu_pd(out + 8, _mm512_permutex2var_pd((__m512d)x, high, (__m512d)y));
#elif WIDTH == 4
    const __m256d low = _mm256_unpacklo_pd((__m256d)x, (__m256d)y), high = _mm256_unpackhi_pd((__m256d)x, (__m256d)y);
    _mm256_storeu_pd(out, _mm256_permute2f128_pd(low, high, 0x20));
    _mm256_storeu_pd(out + 4, _mm256_permute2f128_pd(low, high, 0x31));
#else
    *(VECTOR *)out = (VECTOR){x[0], y[0]};
    *(VECTOR *)(out + 2) = (VECTOR){x[1], y[1]};
#endif
}

/* Words of a block each. The upper halves of counters may hold anything until the last round: products ignore them. */
INLINE void NAME(philox)(
    const int vectors, const struct keys *keys, const WORDS *step, const WORDS *block, const WORDS *c2, const WORDS *c3,
    WORDS *first, WORDS *second)
{
    const WORDS m0 = NAME(all_words)(M0), m1 = NAME(all_words)(M1);
    WORDS a[VECTORS], b[VECTORS], c[VECTORS], d[VECTORS];
    UNROLL for (int v = 0; v < vectors; ++v) {
        a[v] = step[v];
        b[v] = (step[v] >> 32) | (block[v] << 8);
        c[v] = c2[v];
        d[v] = c3[v];
    }
    UNROLL for (int r = 0; r < ROUNDS - 1; ++r) {
        const WORDS k0 = NAME(all_words)(keys->k0[r]), k1 = NAME(all_words)(keys->k1[r]);
        UNROLL for (int v = 0; v < vectors; ++v) {
            const WORDS p0 = NAME(product)(a[v], m0), p1 = NAME(product)(c[v], m1);
            a[v] = (p1 >> 32) ^ b[v] ^ k0;
            c[v] = (p0 >> 32) ^ d[v] ^ k1;
            b[v] = p1;
            d[v] = p0;
        }
    }
    const WORDS k0 = NAME(all_words)(keys->k0[ROUNDS - 1]), k1 = NAME(all_words)(keys->k1[ROUNDS - 1]);
    UNROLL for (int v = 0; v < vectors; ++v) {
        const WORDS p0 = NAME(product)(a[v], m0), p1 = NAME(product)(c[v], m1);
        first[v] = ((p1 >> 32) | (p1 << 32)) ^ (b[v] & LOW) ^ k0;
        second[v] = ((p0 >> 32) | (p0 << 32)) ^ (d[v] & LOW) ^ k1;
    }
}

/* The radius: the root of -2 log u, u from the upper 53 bits. */
INLINE VECTOR NAME(radius)(WORDS word)
{
    const VECTOR scale = NAME(all)(0x1p-53);
    return NAME(root)(-2.0 * NAME(logarithm)(NAME(fused)(NAME(number)(word >> 11), scale, scale)));
}

/* Two normals, or two words, of each block. */
INLINE void NAME(draw)(
    const int vectors, const int raw, const struct keys *keys, const WORDS *step, const WORDS *block, const WORDS *c2,
    const WORDS *c3, VECTOR *x, VECTOR *y)
{
    WORDS first[VECTORS], second[VECTORS];
    NAME(philox)(vectors, keys, step, block, c2, c3, first, second);
    if (raw) {
        UNROLL for (int v = 0; v < vectors; ++v) {
            x[v] = (VECTOR)first[v];
            y[v] = (VECTOR)second[v];
        }
        return;
    }
    VECTOR radius[VECTORS];
    UNROLL for (int v = 0; v < vectors; ++v) radius[v] = NAME(radius)(first[v]);
    UNROLL for (int v = 0; v < vectors; ++v) {
        NAME(cos_sin_turn)(second[v], &x[v], &y[v]);
        x[v] *= radius[v];
        y[v] *= radius[v];
    }
}

/* Consecutive blocks of a stream, numbered row by row: step and block of each, WIDTH further with every advance. */
struct NAME(place) {
    WORDS step, block, n, block_stride, step_stride;
};

INLINE struct NAME(place) NAME(start)(uint64_t k0, uint64_t n)
{
    struct NAME(place) p = {.n = NAME(all_words)(n), .block_stride = NAME(all_words)(WIDTH % n), .step_stride = NAME(all_words)(WIDTH / n)};
    uint64_t step = k0, block = 0;
    for (int l = 0; l < WIDTH; ++l) {
        p.step[l] = step;
        p.block[l] = block;
        if (++block == n) {
            block = 0;
            ++step;
        }
    }
    return p;
}

INLINE void NAME(advance)(struct NAME(place) *p)
{
    p->step += p->step_stride;
    p->block += p->block_stride;
    const WORDS over = (WORDS)((INTEGERS)p->block >= (INTEGERS)p->n);
    p->block -= p->n & over;
    p->step -= over;
}

/* One group of a stream: its pairs, behind one another. */
INLINE void NAME(group)(
    const int vectors, const int raw, const struct keys *keys, struct NAME(place) *place, WORDS c2, WORDS c3, double *pairs)
{
    WORDS step[VECTORS], block[VECTORS], c2s[VECTORS], c3s[VECTORS];
    VECTOR x[VECTORS], y[VECTORS];
    UNROLL for (int v = 0; v < vectors; ++v) {
        step[v] = place->step;
        block[v] = place->block;
        c2s[v] = c2;
        c3s[v] = c3;
        NAME(advance)(place);
    }
    NAME(draw)(vectors, raw, keys, step, block, c2s, c3s, x, y);
    UNROLL for (int v = 0; v < vectors; ++v) NAME(interleave)(x[v], y[v], pairs + 2 * v * WIDTH);
}

/* All pairs of a stream; where rows are odd their last pair gives one number. */
#define STREAM(STREAM_NAME, RAW) \
TARGET static void NAME(STREAM_NAME)( \
    const struct keys *keys, uint64_t c2, uint64_t c3, uint64_t k0, int64_t rows, int64_t d, double *out) \
{ \
    const int64_t n = (d + 1) / 2, total = rows * n; \
    if (total == 0) return; \
    const WORDS c2s = NAME(all_words)(c2), c3s = NAME(all_words)(c3); \
    struct NAME(place) place = NAME(start)(k0, (uint64_t)n); \
    double aside[2 * VECTORS * WIDTH]; \
    int64_t block = 0; \
    for (int64_t i = 0; i < total; i += VECTORS * WIDTH) { \
        const int64_t m = total - i < VECTORS * WIDTH ? total - i : VECTORS * WIDTH; \
        const int direct = d == 2 * n && m == VECTORS * WIDTH; \
        double *pairs = direct ? out : aside; \
        if (m > WIDTH) NAME(group)(VECTORS, RAW, keys, &place, c2s, c3s, pairs); \
        else NAME(group)(1, RAW, keys, &place, c2s, c3s, pairs); \
        if (d == 2 * n) { \
            if (!direct) memcpy(out, aside, (size_t)(2 * m) * sizeof *out); \
            out += 2 * m; \
            continue; \
        } \
        for (int64_t j = 0; j < m; ++j) { \
            *out++ = aside[2 * j]; \
            if (++block == n) block = 0; \
            else *out++ = aside[2 * j + 1]; \
        } \
    } \
}

STREAM(normals, 0)
STREAM(raw_words, 1)

/* Vectors first..first + vectors - 1 of eight streams: LANES/WIDTH of them to a block. */
INLINE void NAME(lanes_group)(
    const int vectors, const struct keys *keys, const WORDS *c2, const WORDS *c3, uint64_t *step, uint64_t *block, int64_t d,
    double **out)
{
    const int parts = LANES / WIDTH;
    WORDS steps[VECTORS], blocks[VECTORS], c2s[VECTORS], c3s[VECTORS];
    VECTOR x[VECTORS], y[VECTORS];
    uint64_t of[VECTORS];
    UNROLL for (int v = 0; v < vectors; ++v) {
        of[v] = *block;
        steps[v] = NAME(all_words)(*step);
        blocks[v] = NAME(all_words)(*block);
        c2s[v] = c2[v % parts];
        c3s[v] = c3[v % parts];
        if (v % parts == parts - 1 && 2 * (int64_t)++*block >= d) {
            *block = 0;
            ++*step;
        }
    }
    NAME(draw)(vectors, 0, keys, steps, blocks, c2s, c3s, x, y);
    UNROLL for (int v = 0; v < vectors; ++v) {
        const int both = 2 * (int64_t)of[v] + 1 < d;
        *(VECTOR *)(*out + v % parts * WIDTH) = x[v];
        if (both) *(VECTOR *)(*out + LANES + v % parts * WIDTH) = y[v];
        if (v % parts == parts - 1) *out += both ? 2 * LANES : LANES;
    }
}

TARGET static void NAME(lanes)(
    const struct keys *keys, const uint64_t *c2, const uint64_t *c3, uint64_t k0, int64_t rows, int64_t d, double *out)
{
    int64_t left = rows * ((d + 1) / 2) * (LANES / WIDTH);
    uint64_t step = k0, block = 0;
    WORDS c2s[LANES / WIDTH], c3s[LANES / WIDTH];
    memcpy(c2s, c2, sizeof c2s);
    memcpy(c3s, c3, sizeof c3s);
    for (; left >= VECTORS; left -= VECTORS) NAME(lanes_group)(VECTORS, keys, c2s, c3s, &step, &block, d, &out);
    for (; left > 0; left -= LANES / WIDTH) NAME(lanes_group)(LANES / WIDTH, keys, c2s, c3s, &step, &block, d, &out);
}
