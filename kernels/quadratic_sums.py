"""Sums over clients that dense quadratics leave in lanes, on their way to a message (``quadratic_lanes.c``)."""

import llvmlite.binding
from numba import types

from fald_hpc.kernels import _quadratic
from fald_hpc.kernels.collectives import pointer
from fald_hpc.kernels.jit import DISABLED, flatten, jit
from fald_hpc.kernels.normals import LANES
from fald_hpc.kernels.state import STORE

BY_CLIENTS = 1
"""A flag of ``quadratic_lanes_call.h``: the lanes are clients of one chain, else chains."""

if not DISABLED:
    llvmlite.binding.add_symbol("fald_quadratic_sums", _quadratic.sums())
    _array, _integers = types.CPointer(types.float64), types.CPointer(types.int64)
    _sums = types.ExternalFunction("fald_quadratic_sums", types.int64(_array, _integers, *[types.int64] * 4, _array))


@jit(forceinline=True, internal=True)
def clear(bins):
    """Set bins: float64[g, 3 d + 1, LANES] to zero."""
    values = flatten(bins)
    for j in range(values.size):
        values[j] = 0.0


@jit(internal=True)
def add_to_message(bins, window, first, n, d, flags, message, lo):
    """Write the sums of n chains from ``first`` on to the message of the chains from lo on; return 0 if they are valid."""
    outside = 0
    for g in range((n + LANES - 1) // LANES):
        chain = first + g * LANES
        row = message[lo + chain]
        outside += _sums(
            pointer(bins[g]), pointer(window[chain:]), min(LANES, first + n - chain), d, message.shape[1], flags,
            pointer(row),
        )  # fmt: skip
    return outside


@jit(forceinline=True, internal=True)
def not_added(work, lo, sums, outside, ends, begin):
    """Say what became of a message's vectors and return whether they must be computed again, to be stored."""
    if not sums:
        return False
    if outside == 0:
        work.added[lo, 0] = 1
        work.added[lo, 1] = -1 if ends & STORE else begin
        return False
    return ends & STORE == 0
