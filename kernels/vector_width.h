/* Which vectors the processor has, and the few operations on them that C has no word for. */

#ifndef FALD_VECTOR_WIDTH_H
#define FALD_VECTOR_WIDTH_H

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define TARGET_512 __attribute__((target("avx2,fma,avx512f,avx512vl,avx512dq")))
#define TARGET_256 __attribute__((target("avx2,fma")))
#endif

#define INLINE TARGET static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* Doubles in a vector of the widest variant that this processor runs: 8, 4, or 2 where nothing is known. A width that is
 * not 0 asks for that one; where it is missing the next narrower stands in. */
static inline int best_width(int64_t width)
{
#if defined(__x86_64__)
    const int has_512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("fma");
    const int has_256 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (has_512 && (width == 0 || width == 8)) return 8;
    if (has_256 && (width == 0 || width >= 4)) return 4;
#endif
    (void)width;
    return 2;
}

/* Calls the variant of a function for a width, 0 for the widest. */
#if defined(__x86_64__)
#define CALL_FOR(width, function, ...) \
    switch (best_width(width)) { \
    case 8: function##_512(__VA_ARGS__); break; \
    case 4: function##_256(__VA_ARGS__); break; \
    default: function##_128(__VA_ARGS__); \
    }
#else
#define CALL_FOR(width, function, ...) \
    (void)(width); \
    function##_128(__VA_ARGS__);
#endif

#endif
