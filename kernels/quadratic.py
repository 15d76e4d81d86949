"""The local Langevin steps of dense quadratics, eight chains or eight clients side by side in the lanes of a vector.

A fused form of :func:`fald_hpc.kernels.langevin.local_steps` for U^i(x) = (x - μ_i)ᵀ H_i (x - μ_i)/2, with the same bits. The
arithmetic is in ``quadratic_lanes.c``; noise comes in lanes already. Which lanes are used depends on the numbers of all
chains and clients, never on how many are on this rank.
"""

import llvmlite.binding
from numba import types

from fald_hpc.kernels import _quadratic
from fald_hpc.kernels.collectives import pointer
from fald_hpc.kernels.jit import DISABLED, jit, placeholder
from fald_hpc.kernels.langevin import common_rows
from fald_hpc.kernels.noise import COMMON, PRIVATE
from fald_hpc.kernels.normals import LANES, fill_normals_lanes

FEWEST_CHAINS = 4
"""Chains of a run from which on the lanes are chains: a vector of which half is used is as fast as anything else."""

FEWEST_CLIENTS = 4
"""Clients from which on the lanes are clients where chains are few."""

LARGEST_DIMENSION = 24
"""Of lanes that are clients: eight precision matrices then stay in the first-level cache, one in every lane."""

BY_CLIENTS, HAS_REFERENCE = 1, 2

if not DISABLED:
    llvmlite.binding.add_symbol("fald_quadratic_lanes", _quadratic.address())
    _array = types.CPointer(types.float64)
    _lanes = types.ExternalFunction(
        "fald_quadratic_lanes",
        types.void(*[_array] * 7, *[types.int64] * 5, *[types.float64] * 3),
    )
    llvmlite.binding.add_symbol("fald_quadratic_gradients", _quadratic.gradients_address())
    _gradients = types.ExternalFunction(
        "fald_quadratic_gradients",
        types.void(*[_array] * 5, *[types.int64] * 5),
    )

uses_reference = placeholder("uses_reference")
plain = placeholder("plain")


@jit(forceinline=True)
def yes():
    """Return True: bound to ``uses_reference``."""
    return True


@jit(forceinline=True)
def no():
    """Return False."""
    return False


@jit
def _to_lanes(values, first, out):
    """Copy rows first..first+7 of float64[s, d] to out: float64[d, 8]; 0 beyond the last row."""
    for lane in range(LANES):
        inside = first + lane < values.shape[0]
        for j in range(values.shape[1]):
            out[j, lane] = values[first + lane, j] if inside else 0.0


@jit(internal=True)
def _common_lanes(settings, work, k, lo, hi):
    """Have the common noise of chains lo..hi-1 in lanes from iteration k on; return its row.

    It is drawn in blocks ahead; a group remembers its first chain and the iteration of its first row.
    """
    n = (hi - lo + LANES - 1) // LANES
    begin = lo // LANES
    at = work.lanes_at[begin, 1]
    there = 0 <= k - at < work.lanes_common.shape[1]
    for group in range(n):
        if work.lanes_at[begin + group, 0] != lo + group * LANES or work.lanes_at[begin + group, 1] != at:
            there = False
    if there:
        return k - at
    for group in range(n):
        first = lo + group * LANES
        chain = settings.first_chain + first
        fill_normals_lanes(settings.key, COMMON, chain, 0, 1, 0, k, work.lanes_common[begin + group])
        work.lanes_at[begin + group, 0] = first
        work.lanes_at[begin + group, 1] = k
    return 0


def steps_of_chains(problem, settings, state, work, k, stop, lo, hi):
    """Advance all clients of chains lo..hi-1 over iterations k..stop-1, lanes = chains; a template."""
    c, _, d = state.theta.shape
    block = work.common.shape[1]
    begin = lo // LANES
    k0 = k
    while k0 < stop:
        row = _common_lanes(settings, work, k0, lo, hi) if settings.common_scale != 0.0 else 0
        t = min(block - row, stop - k0)
        if uses_reference():
            for group in range((hi - lo + LANES - 1) // LANES):
                first = lo + group * LANES
                _to_lanes(state.reference[:hi], first, work.lanes_reference[group])
                _to_lanes(state.shift[:hi], first, work.lanes_shift[group])
        for i in range(c):
            for group in range((hi - lo + LANES - 1) // LANES):
                first = lo + group * LANES
                if settings.private_scale != 0.0:
                    chain, client = settings.first_chain + first, settings.first_client + i
                    fill_normals_lanes(settings.key, PRIVATE, chain, client, 1, 0, k0, work.lanes_private[:t])
                origin = work.lanes_reference[group] if uses_reference() else problem.mean[i : i + 1]
                _lanes(
                    pointer(problem.precision[i]), pointer(origin), pointer(work.lanes_shift[group]),
                    pointer(work.lanes_common[begin + group, row]), pointer(work.lanes_private),
                    pointer(state.theta[i, first]), pointer(work.lanes_scratch), d, t, min(LANES, hi - first), d,
                    HAS_REFERENCE if uses_reference() else 0,
                    settings.step_size, settings.common_scale, settings.private_scale,
                )  # fmt: skip
        k0 += t


def steps_of_clients(problem, settings, state, work, k, stop, lo, hi):
    """Advance all clients of chains lo..hi-1 over iterations k..stop-1, lanes = clients; a template."""
    c, s, d = state.theta.shape
    block = work.common.shape[1]
    k0 = k
    while k0 < stop:
        row = common_rows(settings, work, k0, lo, hi) if settings.common_scale != 0.0 else 0
        t = min(block - row, stop - k0)
        for chain in range(lo, hi):
            number = settings.first_chain + chain
            # without private noise all clients at once
            part = c if settings.private_scale == 0.0 else LANES
            for first in range(0, c, part):
                group = first // LANES
                if settings.private_scale != 0.0:
                    client = settings.first_client + first
                    fill_normals_lanes(settings.key, PRIVATE, number, client, 0, 1, k0, work.lanes_private[:t])
                origin = state.reference[chain : chain + 1] if uses_reference() else problem.mean_lanes[group]
                _lanes(
                    pointer(problem.precision_lanes[group]), pointer(origin), pointer(state.shift[chain]),
                    pointer(work.common[chain, row]), pointer(work.lanes_private), pointer(state.theta[first, chain]),
                    pointer(work.lanes_scratch), d, t, min(part, c - first), s * d,
                    BY_CLIENTS | (HAS_REFERENCE if uses_reference() else 0),
                    settings.step_size, settings.common_scale, settings.private_scale,
                )  # fmt: skip
        k0 += t


chain_lanes = placeholder("chain_lanes")
client_lanes = placeholder("client_lanes")


def steps(problem, settings, state, work, k, stop, lo, hi):
    """Advance all clients of chains lo..hi-1 over iterations k..stop-1 in the way that fits the shape; a template."""
    d = state.theta.shape[2]
    if settings.side_by_side >= FEWEST_CHAINS:
        chain_lanes(problem, settings, state, work, k, stop, lo, hi)
    elif settings.n_clients >= FEWEST_CLIENTS and d <= LARGEST_DIMENSION:
        client_lanes(problem, settings, state, work, k, stop, lo, hi)
    else:
        plain(problem, settings, state, work, k, stop, lo, hi)


def full_gradients(problem, settings, state, work, k, lo, hi):
    """Write ∇U^i(Y) of all clients and of chains lo..hi-1 to work.gradient in the way that fits the shape; a template."""
    c, s, d = work.gradient.shape
    if settings.side_by_side >= FEWEST_CHAINS:
        for i in range(c):
            for first in range(lo, hi, LANES):
                _gradients(
                    pointer(problem.precision[i]), pointer(problem.mean[i]), pointer(state.reference[first]),
                    pointer(work.gradient[i, first]), pointer(work.lanes_scratch), d, min(LANES, hi - first), d, d, 0,
                )  # fmt: skip
    elif settings.n_clients >= FEWEST_CLIENTS and d <= LARGEST_DIMENSION:
        for chain in range(lo, hi):
            _gradients(
                pointer(problem.precision_lanes), pointer(problem.mean_lanes), pointer(state.reference[chain]),
                pointer(work.gradient[0, chain]), pointer(work.lanes_scratch), d, c, 0, s * d, BY_CLIENTS,
            )  # fmt: skip
    else:
        plain(problem, settings, state, work, k, lo, hi)
