"""The full gradients of dense quadratics at the references of a refresh, in the lanes that their steps have."""

import llvmlite.binding
from numba import types

from fald_hpc.kernels import _quadratic
from fald_hpc.kernels.collectives import pointer
from fald_hpc.kernels.jit import DISABLED, flatten, placeholder
from fald_hpc.kernels.quadratic import CHAINS, PLAIN, TOGETHER, lanes_of
from fald_hpc.kernels.quadratic_sums import BY_CLIENTS, add_to_message, clear, not_added
from fald_hpc.kernels.state import ADD, STORE

if not DISABLED:
    llvmlite.binding.add_symbol("fald_quadratic_gradients", _quadratic.gradients())
    _array, _integers = types.CPointer(types.float64), types.CPointer(types.int64)
    _gradients = types.ExternalFunction("fald_quadratic_gradients", types.void(*[_array] * 6, _integers, *[types.int64] * 6))

plain = placeholder("plain")


def full_gradients(problem, settings, state, work, k, lo, hi, ends):
    """Compute ∇U^i(Y) of all clients and of chains lo..hi-1 in the way that fits the shape; a template.

    ``ends``: to work.gradient (``STORE``), to the message (``ADD``), or both, as the steps.
    """
    c, s, d = work.gradient.shape
    way = lanes_of(settings, d)
    by_chains = way == CHAINS
    if way == PLAIN:
        plain(problem, settings, state, work, k, lo, hi, ends)
        return
    precision = flatten(problem.precision) if by_chains else flatten(problem.precision_lanes)
    mean = flatten(problem.mean) if by_chains else flatten(problem.mean_lanes)
    kind = 0 if by_chains else BY_CLIENTS
    again = True
    while again:
        outside = 0
        size = TOGETHER if by_chains else 1
        for first in range(lo, hi, size):
            n = min(size, hi - first)
            if ends & ADD:
                clear(work.lanes_bins)
            _gradients(
                pointer(precision), pointer(mean), pointer(state.reference[first]), pointer(work.gradient[0, first]),
                pointer(work.lanes_bins), pointer(work.lanes_scratch), pointer(state.gradient_window[first:]),
                c, n, d, s * d, settings.width, ends | kind,
            )  # fmt: skip
            if ends & ADD:
                outside += add_to_message(work.lanes_bins, state.gradient_window, first, n, d, kind, work.message, lo)
        again = not_added(work, lo, ends & ADD != 0, outside, ends, k)
        ends = STORE
