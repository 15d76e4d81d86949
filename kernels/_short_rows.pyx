# cython: language_level=3
"""The address of the C function for full gradients of regressions with short rows (``short_rows.c``)."""

from libc.stdint cimport uintptr_t


cdef extern from "short_rows_call.h":
    void fald_short_rows() nogil


def address():
    """Return the address of ``fald_short_rows``."""
    return <uintptr_t>&fald_short_rows
