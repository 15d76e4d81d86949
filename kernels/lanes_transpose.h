/* Rows of numbers to lanes and back: blocks of 8 x 8 turned in registers (AVX-512), or of 4 x 4 (AVX2). */

#ifndef FALD_LANES_TRANSPOSE_H
#define FALD_LANES_TRANSPOSE_H

#include <stdint.h>

#include "vector_width.h"

TARGET_512 static inline __attribute__((always_inline)) void transpose_8(__m512d r[8])
{
    const __m512d a0 = _mm512_unpacklo_pd(r[0], r[1]), a1 = _mm512_unpackhi_pd(r[0], r[1]);
    const __m512d a2 = _mm512_unpacklo_pd(r[2], r[3]), a3 = _mm512_unpackhi_pd(r[2], r[3]);
    const __m512d a4 = _mm512_unpacklo_pd(r[4], r[5]), a5 = _mm512_unpackhi_pd(r[4], r[5]);
    const __m512d a6 = _mm512_unpacklo_pd(r[6], r[7]), a7 = _mm512_unpackhi_pd(r[6], r[7]);
    const __m512d b0 = _mm512_shuffle_f64x2(a0, a2, 0x88), b1 = _mm512_shuffle_f64x2(a0, a2, 0xdd);
    const __m512d b2 = _mm512_shuffle_f64x2(a1, a3, 0x88), b3 = _mm512_shuffle_f64x2(a1, a3, 0xdd);
    const __m512d b4 = _mm512_shuffle_f64x2(a4, a6, 0x88), b5 = _mm512_shuffle_f64x2(a4, a6, 0xdd);
    const __m512d b6 = _mm512_shuffle_f64x2(a5, a7, 0x88), b7 = _mm512_shuffle_f64x2(a5, a7, 0xdd);
    r[0] = _mm512_shuffle_f64x2(b0, b4, 0x88);
    r[4] = _mm512_shuffle_f64x2(b0, b4, 0xdd);
    r[2] = _mm512_shuffle_f64x2(b1, b5, 0x88);
    r[6] = _mm512_shuffle_f64x2(b1, b5, 0xdd);
    r[1] = _mm512_shuffle_f64x2(b2, b6, 0x88);
    r[5] = _mm512_shuffle_f64x2(b2, b6, 0xdd);
    r[3] = _mm512_shuffle_f64x2(b3, b7, 0x88);
    r[7] = _mm512_shuffle_f64x2(b3, b7, 0xdd);
}

TARGET_256 static inline __attribute__((always_inline)) void transpose_4(__m256d r[4])
{
    const __m256d a0 = _mm256_unpacklo_pd(r[0], r[1]), a1 = _mm256_unpackhi_pd(r[0], r[1]);
    const __m256d a2 = _mm256_unpacklo_pd(r[2], r[3]), a3 = _mm256_unpackhi_pd(r[2], r[3]);
    r[0] = _mm256_permute2f128_pd(a0, a2, 0x20);
    r[1] = _mm256_permute2f128_pd(a1, a3, 0x20);
    r[2] = _mm256_permute2f128_pd(a0, a2, 0x31);
    r[3] = _mm256_permute2f128_pd(a1, a3, 0x31);
}

/* The first n numbers of eight, none where n <= 0. */
static inline __attribute__((always_inline)) __mmask8 first_of(int64_t n)
{
    return (__mmask8)(n >= 8 ? 0xff : n <= 0 ? 0 : 0xff >> (8 - n));
}

/* x[2][8] = the n <= 8 pairs that lie one behind the other; zeros in the other lanes. */
TARGET_512 static inline __attribute__((always_inline)) void pairs_to_lanes(const double *from, int64_t n, double *x)
{
    const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    const __m512d a = _mm512_maskz_loadu_pd(first_of(2 * n), from), b = _mm512_maskz_loadu_pd(first_of(2 * n - 8), from + 8);
    _mm512_storeu_pd(x, _mm512_permutex2var_pd(a, even, b));
    _mm512_storeu_pd(x + 8, _mm512_permutex2var_pd(a, odd, b));
}

/* The inverse. */
TARGET_512 static inline __attribute__((always_inline)) void lanes_to_pairs(const double *x, int64_t n, double *to)
{
    const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    const __m512d a = _mm512_loadu_pd(x), b = _mm512_loadu_pd(x + 8);
    _mm512_mask_storeu_pd(to, first_of(2 * n), _mm512_permutex2var_pd(a, low, b));
    _mm512_mask_storeu_pd(to + 8, first_of(2 * n - 8), _mm512_permutex2var_pd(a, high, b));
}

/* x[d][8] = the n <= 8 rows from + l stride of d numbers; zeros in the other lanes. */
TARGET_512 static inline __attribute__((always_inline)) void rows_to_lanes(
    const double *from, int64_t stride, int64_t n, int64_t d, double *x)
{
    __m512d r[8];
    for (int64_t j = 0; j < d; j += 8) {
        const int64_t m = d - j < 8 ? d - j : 8;
        const __mmask8 inside = (__mmask8)(0xff >> (8 - m));
        for (int l = 0; l < 8; ++l)
            r[l] = l < n ? _mm512_maskz_loadu_pd(inside, from + l * stride + j) : _mm512_setzero_pd();
        transpose_8(r);
        for (int k = 0; k < 8; ++k)
            if (k < m) _mm512_storeu_pd(x + (j + k) * 8, r[k]);
    }
}

/* The inverse. */
TARGET_512 static inline __attribute__((always_inline)) void lanes_to_rows(
    const double *x, int64_t stride, int64_t n, int64_t d, double *to)
{
    __m512d r[8];
    for (int64_t j = 0; j < d; j += 8) {
        const int64_t m = d - j < 8 ? d - j : 8;
        const __mmask8 inside = (__mmask8)(0xff >> (8 - m));
        for (int k = 0; k < 8; ++k) r[k] = k < m ? _mm512_loadu_pd(x + (j + k) * 8) : _mm512_setzero_pd();
        transpose_8(r);
        for (int l = 0; l < 8; ++l)
            if (l < n) _mm512_mask_storeu_pd(to + l * stride + j, inside, r[l]);
    }
}

#endif
