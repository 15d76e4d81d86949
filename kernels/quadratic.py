"""The local Langevin steps of dense quadratics, eight chains or eight clients side by side in the lanes of a vector.

A fused form of :mod:`fald_hpc.kernels.quadratic_plain`, with the same bits. The arithmetic is in ``quadratic_lanes.c``; noise
comes in lanes already. Which lanes are used depends on the numbers of all chains and clients, never on how many are here.

Between two averagings a client's position is needed nowhere else: its steps begin at the mean and it is added to the sums of
the next message while it is in the first-level cache. It is stored only where theta is wanted: for a distance, for a message
of two vectors, at the end of a segment, or where a value lay outside its window. A refresh needs the mean of before the step
of its iteration, which still has the last Y and C: positions are added, take the step, and are kept in lanes.

What takes the steps of a gap is X^i - Y, or X^i - μ_i: it is made where a gap begins and the position is its sum with Y where
one is wanted. Where a pass ends amid a gap (``GOES_ON``), it is kept, or stored beside theta, and goes on from there.
"""

import llvmlite.binding
from numba import types

from fald_hpc.kernels import _quadratic
from fald_hpc.kernels.collectives import pointer
from fald_hpc.kernels.jit import DISABLED, jit, placeholder
from fald_hpc.kernels.langevin import common_rows
from fald_hpc.kernels.noise import COMMON, PRIVATE
from fald_hpc.kernels.normals import LANES, fill_normals_lanes
from fald_hpc.kernels.quadratic_sums import BY_CLIENTS, add_to_message, clear, not_added
from fald_hpc.kernels.state import ADD, AHEAD, GOES_ON, KEEP, STORE

FEWEST_CHAINS = 6
"""Chains of a run from which on the lanes are chains: vectors of which more than a quarter is empty are slower than clients."""

FEWEST_WITHOUT_CLIENTS = 2
"""The same where clients are few or matrices large: a vector of which a quarter is used is faster than plain steps."""

FEWEST_CLIENTS = 4
"""Clients from which on the lanes are clients where chains are few."""

LARGEST_DIMENSION = 24
"""Of lanes that are clients: eight precision matrices then stay in the first-level cache, one in every lane."""

HAS_REFERENCE, FROM_START, FROM_KEPT, OFFSETS = 2, 4, 64, 512
"""Beside ``BY_CLIENTS``, ``STORE``, ``ADD``, ``KEEP``, ``AHEAD`` and ``GOES_ON``: flags of ``quadratic_lanes_call.h``."""

TOGETHER = 2 * LANES
"""Chains that take their steps together: a client's matrix is read once for all of them."""

if not DISABLED:
    _array, _integers = types.CPointer(types.float64), types.CPointer(types.int64)
    llvmlite.binding.add_symbol("fald_quadratic_steps", _quadratic.steps())
    _steps = types.ExternalFunction(
        "fald_quadratic_steps",
        types.void(*[_array] * 14, _integers, *[types.int64] * 10, *[types.float64] * 3),
    )

uses_reference = placeholder("uses_reference")
plain = placeholder("plain")


@jit(forceinline=True, internal=True)
def _common_lanes(settings, work, k, t, first, groups):
    """Have the common noise of iterations k..k+t-1 of some groups of chains from chain ``first`` on; return its row.

    It is drawn in blocks ahead; a group remembers its first chain and the iteration of its first row. What is left of a
    block that ends too early is dropped: a second pass over all clients would cost more.
    """
    begin = first // LANES
    row = k - work.lanes_at[begin, 1]
    there = row >= 0 and row + t <= work.lanes_common.shape[1]
    for g in range(groups):
        at = work.lanes_at[begin + g]
        if at[0] != first + g * LANES or at[1] != k - row:
            there = False
    if there:
        return row
    for g in range(groups):
        chain = settings.first_chain + first + g * LANES
        fill_normals_lanes(settings.key, COMMON, chain, 0, 1, 0, k, work.lanes_common[begin + g])
        work.lanes_at[begin + g, 0] = first + g * LANES
        work.lanes_at[begin + g, 1] = k
    return 0


@jit(forceinline=True)
def kept_at(work, chain, k):
    """Return in which half of ``work.lanes_x`` the positions, or offsets, of a chain before iteration k are, or -1."""
    if work.lanes_x_at[0, chain] == k:
        return 0
    return 1 if work.lanes_x_at[1, chain] == k else -1


@jit(forceinline=True, internal=True)
def _beginning(state, chain, k, here, has_reference):
    """Return the flags of where the steps of some chains begin; ``here``: of :func:`kept_at`."""
    flags = HAS_REFERENCE if has_reference else 0
    if state.averaged_at[chain] == k:
        return flags | FROM_START
    if here >= 0:
        flags |= FROM_KEPT
    if state.offset_at[chain] == k:
        flags |= OFFSETS
    return flags


@jit(forceinline=True, internal=True)
def _ending(state, k, stop, chain, ends):
    """Return ``ends`` with ``GOES_ON`` as it holds for iterations k..stop-1: no steps leave all as it is."""
    if k < stop:
        return ends
    return ends | GOES_ON if state.offset_at[chain] == k else ends & ~GOES_ON


def steps_of_chains(problem, settings, state, work, k, stop, lo, hi, ends):
    """Advance all clients of chains lo..hi-1 over iterations k..stop-1, lanes = chains; a template.

    ``ends``: see :mod:`fald_hpc.kernels.batches`.
    """
    c, s, d = state.theta.shape
    most = work.lanes_common.shape[1]
    if settings.private_scale != 0.0:
        most = min(most, work.lanes_private.shape[1])
    # batches may share a group: theirs are never kept
    between = GOES_ON | KEEP if settings.batches == 1 else GOES_ON | STORE
    if ends & KEEP and settings.batches > 1:
        ends = ends & ~KEEP | STORE
    again = True
    while again:
        outside = 0
        begin = k
        ends = _ending(state, k, stop, lo, ends)
        for first in range(lo, hi, TOGETHER):
            n = min(TOGETHER, hi - first)
            groups, group, pair = (n + LANES - 1) // LANES, first // LANES, 2 * (first // TOGETHER * c)
            if ends & ADD:
                clear(work.lanes_bins)
            begin = k
            while True:
                t = min(most, stop - begin)
                last = begin + t == stop
                row = _common_lanes(settings, work, begin, t, first, groups) if settings.common_scale != 0.0 else 0
                written = ends if last else between
                here = kept_at(work, first, begin) if settings.batches == 1 else -1
                flags = written | _beginning(state, first, begin, here, uses_reference())
                there = 1 if here == 0 else 0
                # with private noise one client at a time
                part = c if settings.private_scale == 0.0 else 1
                for i in range(0, c, part):
                    if settings.private_scale != 0.0:
                        for g in range(groups):
                            chain, client = settings.first_chain + first + g * LANES, settings.first_client + i
                            fill_normals_lanes(settings.key, PRIVATE, chain, client, 1, 0, begin, work.lanes_private[g, :t])
                    _steps(
                        pointer(problem.moves[i]), pointer(problem.mean[i]), pointer(state.reference[first]),
                        pointer(state.shift[first]), pointer(work.lanes_common[group, row]), pointer(work.lanes_private),
                        pointer(state.mean[first]), pointer(work.lanes_x[1 - there, pair + 2 * i]), pointer(work.lanes_base),
                        pointer(state.theta[i, first]), pointer(state.offset[i, first]),
                        pointer(work.lanes_x[there, pair + 2 * i]),
                        pointer(work.lanes_bins), pointer(work.lanes_scratch), pointer(state.window[first:]),
                        part, n, d, t, s * d, 2 * d * LANES, work.lanes_common.shape[1] * d * LANES,
                        work.lanes_private.shape[1] * d * LANES, settings.width, flags,
                        settings.step_size, settings.common_scale, settings.private_scale,
                    )  # fmt: skip
                for chain in range(first, first + n):
                    if written & KEEP:
                        work.lanes_x_at[there, chain] = begin + t
                    if written & GOES_ON:
                        state.offset_at[chain] = begin + t
                if last:
                    break
                begin += t
            if ends & ADD:
                outside += add_to_message(work.lanes_bins, state.window, first, n, d, 0, work.message, lo)
        again = not_added(work, lo, ends & ADD != 0, outside, ends, begin)
        k, stop, ends = begin, stop - 1 if ends & AHEAD else stop, STORE


def steps_of_clients(problem, settings, state, work, k, stop, lo, hi, ends):
    """Advance all clients of chains lo..hi-1 over iterations k..stop-1, lanes = clients; a template.

    ``ends``: see :mod:`fald_hpc.kernels.batches`.
    """
    c, s, d = state.theta.shape
    private = settings.private_scale != 0.0
    most = min(work.common.shape[1], work.lanes_private.shape[1]) if private else work.common.shape[1]
    again = True
    while again:
        outside = 0
        begin = k
        ends = _ending(state, k, stop, lo, ends)
        for chain in range(lo, hi):
            number, place = settings.first_chain + chain, chain * ((c + LANES - 1) // LANES)
            if ends & ADD:
                clear(work.lanes_bins[:1])
            begin = k
            while True:
                t = min(most, stop - begin)
                last = begin + t == stop
                row = common_rows(settings, work, begin, t, chain, chain + 1) if settings.common_scale != 0.0 else 0
                written = ends if last else GOES_ON | KEEP
                here = kept_at(work, chain, begin)
                flags = written | BY_CLIENTS | _beginning(state, chain, begin, here, uses_reference())
                there = 1 if here == 0 else 0
                # without private noise all clients at once
                part = LANES if private else c
                for first in range(0, c, part):
                    group = first // LANES
                    if private:
                        client = settings.first_client + first
                        fill_normals_lanes(settings.key, PRIVATE, number, client, 0, 1, begin, work.lanes_private[0, :t])
                    _steps(
                        pointer(problem.moves_lanes[group]), pointer(problem.mean_lanes[group]),
                        pointer(state.reference[chain]), pointer(state.shift[chain]), pointer(work.common[chain, row]),
                        pointer(work.lanes_private), pointer(state.mean[chain]),
                        pointer(work.lanes_x[1 - there, place + group]), pointer(work.lanes_base),
                        pointer(state.theta[first, chain]), pointer(state.offset[first, chain]),
                        pointer(work.lanes_x[there, place + group]),
                        pointer(work.lanes_bins), pointer(work.lanes_scratch), pointer(state.window[chain:]),
                        min(part, c - first), 1, d, t, s * d, 0, 0, 0, settings.width, flags,
                        settings.step_size, settings.common_scale, settings.private_scale,
                    )  # fmt: skip
                if written & KEEP:
                    work.lanes_x_at[there, chain] = begin + t
                if written & GOES_ON:
                    state.offset_at[chain] = begin + t
                if last:
                    break
                begin += t
            if ends & ADD:
                outside += add_to_message(work.lanes_bins, state.window, chain, 1, d, BY_CLIENTS, work.message, lo)
        again = not_added(work, lo, ends & ADD != 0, outside, ends, begin)
        k, stop, ends = begin, stop - 1 if ends & AHEAD else stop, STORE


chain_lanes = placeholder("chain_lanes")
client_lanes = placeholder("client_lanes")


PLAIN, CHAINS, CLIENTS = range(3)


@jit(forceinline=True)
def lanes_of(settings, d):
    """Return what lies in the lanes: ``CHAINS``, ``CLIENTS``, or nothing (``PLAIN``)."""
    if settings.side_by_side >= FEWEST_CHAINS:
        return CHAINS
    if settings.n_clients >= FEWEST_CLIENTS and d <= LARGEST_DIMENSION:
        return CLIENTS
    return CHAINS if settings.side_by_side >= FEWEST_WITHOUT_CLIENTS else PLAIN


@jit(forceinline=True)
def steps_ahead(settings, d):
    """Return whether steps can go one iteration beyond what they add to a message (``AHEAD``)."""
    way = lanes_of(settings, d)
    return way == CLIENTS or (way == CHAINS and settings.batches == 1)


def steps(problem, settings, state, work, k, stop, lo, hi, ends):
    """Advance all clients of chains lo..hi-1 over iterations k..stop-1 in the way that fits the shape; a template."""
    way = lanes_of(settings, state.theta.shape[2])
    if way == CHAINS:
        chain_lanes(problem, settings, state, work, k, stop, lo, hi, ends)
    elif way == CLIENTS:
        client_lanes(problem, settings, state, work, k, stop, lo, hi, ends)
    else:
        plain(problem, settings, state, work, k, stop, lo, hi, ends)
