"""Copies by the C library: a loop over a short row costs more, since the compiler prepares it for any length."""

from numba import types

from fald_hpc.kernels.jit import DISABLED, jit

if DISABLED:

    def copy_row(source, target):
        """Copy a row."""
        target[:] = source
else:
    _pointer = types.CPointer(types.float64)
    _memcpy = types.ExternalFunction("memcpy", types.voidptr(_pointer, _pointer, types.int64))

    @jit(forceinline=True, internal=True)
    def copy_row(source, target):
        """Copy float64[n] to float64[n]: C-contiguous, not overlapping."""
        _memcpy(target.ctypes, source.ctypes, 8 * source.size)
