/* Compiles a body, the file that BODY names, once for each width of vectors (vector_math.h). */

#if defined(__x86_64__)
#define WIDTH 8
#define TARGET TARGET_512
#define NAME(f) f##_512
#include BODY
#undef WIDTH
#undef TARGET
#undef NAME

#define WIDTH 4
#define TARGET TARGET_256
#define NAME(f) f##_256
#include BODY
#undef WIDTH
#undef TARGET
#undef NAME
#endif

/* any processor */
#define WIDTH 2
#define TARGET
#define NAME(f) f##_128
#include BODY
