# cython: language_level=3, boundscheck=False, wraparound=False
"""What this processor, its memory and its MPI library can do, as small C loops: the limits that a benchmark compares with.

Each function does a given amount of work and returns a number that depends on it, so that no compiler leaves it out. The
caller measures the time. The vector loops are compiled for AVX-512, AVX2 and plain processors where the compiler can
(gcc 12 or newer with glibc), and the loader picks.
"""

from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.string cimport memset

cdef extern from *:
    """
    #include <stdint.h>
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
    #define FALD_CLONES __attribute__((noinline, target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
    #else
    #define FALD_CLONES __attribute__((noinline))
    #endif

    #define FALD_ACCUMULATORS 16

    /* sixteen independent chains of fused multiply-adds hide the latency of the units; one variant for each width,
       since a processor may run 256-bit vectors at a higher clock or on more units */
    #define FALD_MULTIPLY_ADDS(NAME, WIDTH)                                                     \\
    typedef double NAME##_vector __attribute__((vector_size(8 * WIDTH)));                       \\
    FALD_CLONES static double NAME(int64_t n, double factor) {                                  \\
        NAME##_vector a[FALD_ACCUMULATORS], f, g, total;                                        \\
        double sum = 0.0;                                                                       \\
        for (int l = 0; l < WIDTH; l++) { f[l] = factor; g[l] = 1.0 - factor; total[l] = 0.0; } \\
        for (int m = 0; m < FALD_ACCUMULATORS; m++) a[m] = f * (double)(m + 1);                 \\
        for (int64_t i = 0; i < n; i++) {                                                       \\
            _Pragma("GCC unroll 16")                                                            \\
            for (int m = 0; m < FALD_ACCUMULATORS; m++) a[m] = a[m] * f + g;                    \\
        }                                                                                       \\
        for (int m = 0; m < FALD_ACCUMULATORS; m++) total += a[m];                              \\
        for (int l = 0; l < WIDTH; l++) sum += total[l];                                        \\
        return sum;                                                                             \\
    }
    FALD_MULTIPLY_ADDS(fald_multiply_adds_4, 4)
    FALD_MULTIPLY_ADDS(fald_multiply_adds_8, 8)

    /* 32 by 32 bit products, the work of Philox */
    typedef uint64_t fald_words __attribute__((vector_size(64)));
    FALD_CLONES static uint64_t fald_products(int64_t n, uint64_t factor) {
        fald_words a[8], f, low, total;
        uint64_t sum = 0;
        for (int l = 0; l < 8; l++) { f[l] = factor & 0xFFFFFFFFu; low[l] = 0xFFFFFFFFu; total[l] = 0; }
        for (int m = 0; m < 8; m++) a[m] = f + (uint64_t)m;
        for (int64_t i = 0; i < n; i++) {
            _Pragma("GCC unroll 8")
            for (int m = 0; m < 8; m++) a[m] = (a[m] & low) * f;
        }
        for (int m = 0; m < 8; m++) total ^= a[m];
        for (int l = 0; l < 8; l++) sum ^= total[l];
        return sum;
    }

    /* rows of a table in a given order; unaligned loads, as a minibatch reads them */
    typedef double fald_loaded __attribute__((vector_size(64), aligned(8)));
    typedef double fald_sums __attribute__((vector_size(64)));
    FALD_CLONES static double fald_read_rows(const double *table, const int64_t *order, int64_t n, int64_t width) {
        fald_sums a = {0}, b = {0}, c = {0}, d = {0};
        double sum = 0.0;
        for (int64_t i = 0; i < n; i++) {
            const double *row = table + order[i] * width;
            int64_t j = 0;
            for (; j + 32 <= width; j += 32) {
                a += *(const fald_loaded *)(row + j);
                b += *(const fald_loaded *)(row + j + 8);
                c += *(const fald_loaded *)(row + j + 16);
                d += *(const fald_loaded *)(row + j + 24);
            }
            for (; j + 8 <= width; j += 8) a += *(const fald_loaded *)(row + j);
            for (; j < width; j++) sum += row[j];
        }
        a += b; c += d; a += c;
        for (int l = 0; l < 8; l++) sum += a[l];
        return sum;
    }

    /* the mean over clients of a plain reduction, which depends on the order: what exact sums are compared with */
    FALD_CLONES static void fald_plain_sum(const double *values, int64_t clients, int64_t d, double *out) {
        for (int64_t j = 0; j < d; j++) out[j] = 0.0;
        for (int64_t i = 0; i < clients; i++)
            for (int64_t j = 0; j < d; j++) out[j] += values[i * d + j];
    }
    """
    double fald_multiply_adds_4(int64_t n, double factor) noexcept nogil
    double fald_multiply_adds_8(int64_t n, double factor) noexcept nogil
    uint64_t fald_products(int64_t n, uint64_t factor) noexcept nogil
    double fald_read_rows(const double *table, const int64_t *order, int64_t n, int64_t width) noexcept nogil
    void fald_plain_sum(const double *values, int64_t clients, int64_t d, double *out) noexcept nogil

ctypedef int64_t (*reduction)(const double *, double *, int64_t, int64_t, int64_t) noexcept nogil

cdef enum:
    MAX_DOUBLES = 8192


def multiply_adds(int64_t n, int lanes):
    """Do 16 · lanes · n fused multiply-adds in vectors of 4 or 8 doubles."""
    if lanes == 4:
        return fald_multiply_adds_4(n, 0.999)
    return fald_multiply_adds_8(n, 0.999)


def products(int64_t n):
    """Do 64 · n products of 32-bit integers."""
    return fald_products(n, <uint64_t>0xD2511F53)


def read_rows(const double[:, ::1] table, const int64_t[::1] order):
    """Read the rows of a table that ``order`` names, in that order: 8 · order.size · table.shape[1] bytes."""
    if order.shape[0] == 0 or table.shape[1] == 0:
        return 0.0
    return fald_read_rows(&table[0, 0], &order[0], order.shape[0], table.shape[1])


def plain_sums(const double[:, ::1] values, double[::1] out, int64_t repeats):
    """Sum float64[c, d] over its first axis, so many times."""
    cdef int64_t r
    for r in range(repeats):
        fald_plain_sum(&values[0, 0], values.shape[0], values.shape[1], &out[0])


def reductions(uintptr_t function, int64_t communicator, int64_t doubles, int64_t repeats, int64_t work):
    """Call ``MPI_Allreduce`` of so many doubles from C, each call after the same arithmetic on every rank.

    Parameters
    ----------
    function : int
        Address of ``fald_allreduce`` (:mod:`fald_hpc.kernels._collectives`); 0 for the arithmetic alone.
    communicator : int
        Number of a registered communicator.
    doubles : int
        Length of the message, at most 8192.
    repeats : int
        Calls.
    work : int
        Rounds of 64 fused multiply-adds before each call.

    Returns
    -------
    error : int
        The first MPI error code, 0 for success.
    """
    cdef double send[MAX_DOUBLES]
    cdef double receive[MAX_DOUBLES]
    cdef double kept = 0.0
    cdef int64_t error = 0, r
    if doubles > MAX_DOUBLES:
        raise ValueError(f"at most {MAX_DOUBLES} doubles")
    memset(send, 0, sizeof(send))
    with nogil:
        for r in range(repeats):
            if work > 0:
                kept += fald_multiply_adds_4(work, 0.999)
            if function != 0:
                error = (<reduction><void *>function)(send, receive, doubles, communicator, 0)
                if error != 0:
                    break
    return error if kept == kept else -1
