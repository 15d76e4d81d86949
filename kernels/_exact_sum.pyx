# cython: language_level=3
"""The address of the C function that adds clients to an exact sum (``exact_add.c``)."""

from libc.stdint cimport uintptr_t


cdef extern from "exact_add_call.h":
    void fald_exact_add() nogil


def address():
    """Return the address of ``fald_exact_add``."""
    return <uintptr_t>&fald_exact_add
