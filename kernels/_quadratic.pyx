# cython: language_level=3
"""The address of the C function that makes the Langevin steps of dense quadratics (``quadratic_lanes.c``)."""

from libc.stdint cimport uintptr_t


cdef extern from "quadratic_lanes_call.h":
    void fald_quadratic_lanes() nogil


def address():
    """Return the address of ``fald_quadratic_lanes``."""
    return <uintptr_t>&fald_quadratic_lanes
