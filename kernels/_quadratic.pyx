# cython: language_level=3
"""The addresses of the C functions for dense quadratics (``quadratic_lanes.c``)."""

from libc.stdint cimport uintptr_t


cdef extern from "quadratic_lanes_call.h":
    void fald_quadratic_steps() nogil
    void fald_quadratic_gradients() nogil
    void fald_quadratic_sums() nogil


def steps():
    """Return the address of ``fald_quadratic_steps``: the Langevin steps."""
    return <uintptr_t>&fald_quadratic_steps


def gradients():
    """Return the address of ``fald_quadratic_gradients``: full gradients."""
    return <uintptr_t>&fald_quadratic_gradients


def sums():
    """Return the address of ``fald_quadratic_sums``: sums over clients, for a message."""
    return <uintptr_t>&fald_quadratic_sums
