# cython: language_level=3
"""The address of the C function for the Langevin steps of regressions with short rows (``short_steps.c``)."""

from libc.stdint cimport uintptr_t


cdef extern from "short_steps_call.h":
    void fald_short_steps() nogil


def address():
    """Return the address of ``fald_short_steps``."""
    return <uintptr_t>&fald_short_steps
