# cython: language_level=3
"""The addresses of the C functions of exact sums over clients (``exact_add.c``, ``exact_mean.c``)."""

from libc.stdint cimport uintptr_t


cdef extern from "exact_add_call.h":
    void fald_exact_add() nogil


cdef extern from "exact_mean_call.h":
    void fald_exact_mean() nogil


def address():
    """Return the address of ``fald_exact_add``."""
    return <uintptr_t>&fald_exact_add


def mean_address():
    """Return the address of ``fald_exact_mean``."""
    return <uintptr_t>&fald_exact_mean
