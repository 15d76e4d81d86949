# cython: language_level=3
"""The addresses of the C functions that make normals and random words (``normals.c``)."""

from libc.stdint cimport uintptr_t


cdef extern from "normals_call.h":
    void fald_normals() nogil
    void fald_normals_lanes() nogil
    void fald_words() nogil


def addresses():
    """Return the functions' addresses by name."""
    return {
        "fald_normals": <uintptr_t>&fald_normals,
        "fald_normals_lanes": <uintptr_t>&fald_normals_lanes,
        "fald_words": <uintptr_t>&fald_words,
    }
