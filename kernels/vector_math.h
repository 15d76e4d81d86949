/* Vectors of WIDTH numbers: included at the head of a body that is compiled once for each width, with
 *   WIDTH   numbers in a vector: 8, 4 or 2
 *   TARGET  the function attribute that lets the compiler use such vectors
 *   NAME(f) f with a suffix for the variant
 */

#define VECTOR NAME(vector)
#define WORDS NAME(words)
#define INTEGERS NAME(integers)
typedef double VECTOR __attribute__((vector_size(8 * WIDTH), aligned(8), may_alias));
typedef uint64_t WORDS __attribute__((vector_size(8 * WIDTH), aligned(8), may_alias));
typedef int64_t INTEGERS __attribute__((vector_size(8 * WIDTH), aligned(8), may_alias));

INLINE VECTOR NAME(all)(double x)
{
#if WIDTH == 8
    return (VECTOR)_mm512_set1_pd(x);
#elif WIDTH == 4
    return (VECTOR)_mm256_set1_pd(x);
#else
    return (VECTOR){x, x};
#endif
}

INLINE WORDS NAME(all_words)(uint64_t x)
{
#if WIDTH == 8
    return (WORDS)_mm512_set1_epi64((long long)x);
#elif WIDTH == 4
    return (WORDS)_mm256_set1_epi64x((long long)x);
#else
    return (WORDS){x, x};
#endif
}

/* a b + c with one rounding: where the processor has no such instruction, the C library computes the same, slowly. */
INLINE VECTOR NAME(fused)(VECTOR a, VECTOR b, VECTOR c)
{
#if WIDTH == 8
    return (VECTOR)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif WIDTH == 4
    return (VECTOR)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    return (VECTOR){__builtin_fma(a[0], b[0], c[0]), __builtin_fma(a[1], b[1], c[1])};
#endif
}

/* p a + c, for the next coefficient c of a polynomial in a. */
INLINE VECTOR NAME(horner)(VECTOR p, VECTOR a, double c)
{
    return NAME(fused)(p, a, NAME(all)(c));
}

/* Whether any bit is set. */
INLINE int NAME(any)(WORDS x)
{
#if WIDTH == 8
    return _mm512_test_epi64_mask((__m512i)x, (__m512i)x) != 0;
#else
    uint64_t all = 0;
    for (int i = 0; i < WIDTH; ++i) all |= x[i];
    return all != 0;
#endif
}

/* yes where a < b; no elsewhere, and where one of them is not a number. */
INLINE VECTOR NAME(where_less)(VECTOR a, VECTOR b, VECTOR yes, VECTOR no)
{
#if WIDTH == 8
    return (VECTOR)_mm512_mask_blend_pd(_mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LT_OQ), (__m512d)no, (__m512d)yes);
#elif WIDTH == 4
    return (VECTOR)_mm256_blendv_pd((__m256d)no, (__m256d)yes, _mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_LT_OQ));
#else
    const INTEGERS mask = a < b;
    return (VECTOR)(((INTEGERS)yes & mask) | ((INTEGERS)no & ~mask));
#endif
}

/* The first m numbers at a place, zeros behind them. */
INLINE VECTOR NAME(load)(const double *place, int64_t m)
{
    if (m >= WIDTH) return *(const VECTOR *)place;
#if WIDTH == 8
    return (VECTOR)_mm512_maskz_loadu_pd((__mmask8)((1 << m) - 1), place);
#else
    VECTOR r = {0};
    for (int64_t l = 0; l < m; ++l) r[l] = place[l];
    return r;
#endif
}

/* Writes the first m numbers of x to a place. */
INLINE void NAME(store)(double *place, VECTOR x, int64_t m)
{
    if (m >= WIDTH) {
        *(VECTOR *)place = x;
        return;
    }
#if WIDTH == 8
    _mm512_mask_storeu_pd(place, (__mmask8)((1 << m) - 1), (__m512d)x);
#else
    for (int64_t l = 0; l < m; ++l) place[l] = x[l];
#endif
}
