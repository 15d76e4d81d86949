/* Langevin steps of dense quadratics, eight chains or eight clients at a time; see quadratic_lanes.h.
 *
 * Compiled with -ffp-contract=off, so that multiplications and additions are fused only where it is written. The variant
 * is chosen by the processor; all give the same bits.
 */

#include <stdint.h>

#include "quadratic_lanes_call.h"

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#if defined(__x86_64__)
#define WIDTH 8
#define BLOCK 10
#define TARGET __attribute__((target("avx2,fma,avx512f,avx512vl,avx512dq")))
#define NAME(f) f##_512
#include "quadratic_lanes.h"
#undef WIDTH
#undef BLOCK
#undef TARGET
#undef NAME

#define WIDTH 4
#define BLOCK 10
#define TARGET __attribute__((target("avx2,fma")))
#define NAME(f) f##_256
#include "quadratic_lanes.h"
#undef WIDTH
#undef BLOCK
#undef TARGET
#undef NAME
#endif

/* any processor: where it has no fused multiply-add, the C library computes the same, slowly */
#define WIDTH 2
#define BLOCK 8
#define TARGET
#define NAME(f) f##_128
#include "quadratic_lanes.h"

void fald_quadratic_lanes(
    const double *precision, const double *origin, const double *shift, const double *common, const double *private,
    double *x, double *scratch, int64_t d, int64_t t, int64_t n, int64_t stride, int64_t flags,
    double step_size, double common_scale, double private_scale)
{
    const struct quadratic q = {
        .precision = precision, .origin = origin, .shift = shift, .common = common, .private = private,
        .x = x, .scratch = scratch, .d = d, .t = t, .n = n, .stride = stride,
        .by_clients = flags & 1, .one_origin = flags >> 1 & 1, .has_shift = flags >> 2 & 1, .one_shift = flags >> 3 & 1,
        .step_size = step_size, .common_scale = common_scale, .private_scale = private_scale,
    };
    const int64_t width = flags >> 8;
#if defined(__x86_64__)
    const int has_512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("fma");
    const int has_256 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (has_512 && (width == 0 || width == 8)) { run_512(&q); return; }
    if (has_256 && (width == 0 || width >= 4)) { run_256(&q); return; }
#endif
    run_128(&q);
}
