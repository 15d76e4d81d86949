# cython: language_level=3
"""The addresses of the C functions for dense quadratics (``quadratic_lanes.c``)."""

from libc.stdint cimport uintptr_t


cdef extern from "quadratic_lanes_call.h":
    void fald_quadratic_lanes() nogil
    void fald_quadratic_gradients() nogil


def address():
    """Return the address of ``fald_quadratic_lanes``: the Langevin steps."""
    return <uintptr_t>&fald_quadratic_lanes


def gradients_address():
    """Return the address of ``fald_quadratic_gradients``: full gradients."""
    return <uintptr_t>&fald_quadratic_gradients
