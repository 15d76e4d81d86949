"""The local Langevin steps of regressions with short rows, eight clients side by side in the lanes of a vector.

A fused form of :func:`fald_hpc.kernels.langevin.local_steps` for linear, logistic and Poisson regression, with the same bits.
A short step is one chain of operations that wait for each other, most of them in the elementary function: a vector takes
eight clients through it in the time of one. The arithmetic is in ``short_steps.c``; subsets are drawn and chosen here.
"""

from typing import Any

import llvmlite.binding
import numpy as np
from numba import types

from fald_hpc.kernels import _short_steps, aligned
from fald_hpc.kernels.collectives import pointer
from fald_hpc.kernels.jit import DISABLED, jit, placeholder
from fald_hpc.kernels.langevin import common_rows
from fald_hpc.kernels.minibatch import choose, n_words, scaled
from fald_hpc.kernels.noise import PRIVATE, SUBSET
from fald_hpc.kernels.normals import LANES, fill_normals, fill_normals_lanes, fill_words_flat
from fald_hpc.kernels.recording import catch_up
from fald_hpc.kernels.short_rows import MOST, NONE
from fald_hpc.kernels.state import ROWS_TOUCHED, SHORT_BATCH, SHORT_GROUPS

FEWEST_CLIENTS = 2
"""Clients of a run from which on the lanes are clients: one alone would load what nobody needs."""

FEW_STREAMS = 3
"""Clients of a group up to which their noise is drawn one after another, not in eight lanes."""

HAS_REFERENCE = 4

_LINE = aligned.LINE // 8

if not DISABLED:
    llvmlite.binding.add_symbol("fald_short_steps", _short_steps.address())
    _doubles, _integers = types.CPointer(types.float64), types.CPointer(types.int64)
    _advance = types.ExternalFunction(
        "fald_short_steps",
        types.void(
            _doubles, _doubles, _integers, *[_doubles] * 6, *[_integers] * 2, *[types.int64] * 8, *[types.float64] * 3
        ),
    )

uses_reference = placeholder("uses_reference")
plain = placeholder("plain")


def packed(rows: np.ndarray, weight: np.ndarray, offset: np.ndarray, target: np.ndarray, family: int) -> np.ndarray:
    """Return rows with all that belongs to them in whole lines of the cache.

    Parameters
    ----------
    rows : float64[n, d]
        Of all clients, one after another.
    weight, offset, target : float64[n]
        Of each row.
    family : int
        Of :data:`fald_hpc.kernels.short_rows.FAMILIES`, or its ``NONE``.

    Returns
    -------
    packed : float64[n, p]
        Features, weight, offset, target, and zeros. p = 0 where rows are long, for another family, or where nothing is compiled.
    """
    n, d = rows.shape
    if d > MOST or family == NONE or DISABLED:
        return aligned.zeros((n, 0))
    out = aligned.zeros((n, -(-(d + 3) // _LINE) * _LINE))
    out[:, :d] = rows
    out[:, d], out[:, d + 1], out[:, d + 2] = weight, offset, target
    return out


def with_rows_in_lines(problem: Any, places: int, n_clients: int) -> Any:
    """Return clients as of :mod:`fald_hpc.kernels.glm` with their rows once more as :func:`packed`, if steps read them so.

    ``places`` of a step's rows (:func:`places`), ``n_clients`` of all ranks: where steps are not short, the problem as it is.
    """
    if places == 0 or n_clients < FEWEST_CLIENTS:
        return problem
    return problem._replace(
        packed=packed(problem.rows, problem.weight, problem.offset, problem.target, problem.family)
    )


def places(d: int, batch_size: int | str) -> int:
    """Return how many rows a step's subset has room for: the minibatch, one or an even number; 0 if steps are not short."""
    if d > MOST or batch_size == "full" or int(batch_size) > SHORT_BATCH:
        return 0
    return 1 if batch_size == 1 else 2 * ((int(batch_size) + 1) // 2)


# these take what they need, not whole records: every field of a record that a call copies is compiled


@jit(internal=True)
def _choose_rows(key, chain, first_client, k, t, n_rows, batch, start, words, mark, subset, out):
    """Write the rows of all clients in iterations k..k+t-1 to out: int64[g, >= t, places, 8], the first n_i places of a lane."""
    for i in range(batch.size):
        n, m, first, group, lane = n_rows[i], batch[i], start[i], i // LANES, i % LANES
        w = n_words(n, m)
        if w > 0:
            fill_words_flat(key, SUBSET, chain, first_client + i, k, w // 2, words[: t * w])
        if m == 1 and w > 0:
            for r in range(t):
                out[group, r, 0, lane] = first + scaled(words[r * w], n)
            continue
        for r in range(t):
            choose(words[r * w : (r + 1) * w], n, m, mark, subset[:m])
            for j in range(m):
                out[group, r, j, lane] = first + subset[j]


@jit(internal=True)
def _private_lanes(key, chain, client, together, k, noise, out):
    """Write the private noise of so many clients from a global index on, iterations k..k+t-1, to out: float64[t, d, 8]."""
    if together > FEW_STREAMS:
        fill_normals_lanes(key, PRIVATE, chain, client, 0, 1, k, out)
        return
    t, d, _ = out.shape
    for lane in range(together):
        fill_normals(key, PRIVATE, chain, client + lane, k, noise[:t])
        for r in range(t):
            for j in range(d):
                out[r, j, lane] = noise[r, j]


def steps(problem, settings, state, work, k, stop, lo, hi, ends):
    """Advance all clients of chains lo..hi-1 over iterations k..stop-1 in the way that fits the shape; a template.

    The positions are stored, whatever ``ends`` asks for (:mod:`fald_hpc.kernels.batches`).
    """
    c, s, d = state.theta.shape
    block, (_, _, ahead, places, _) = work.common.shape[1], work.lanes_rows.shape
    if problem.packed.shape[1] == 0 or places == 0 or settings.n_clients < FEWEST_CLIENTS:
        plain(problem, settings, state, work, k, stop, lo, hi, ends)
        return
    catch_up(state, k, lo, hi)
    # the subsets of all chains are chosen in blocks ahead, as the common noise is drawn; of many chains, those of a gap
    every_chain = work.lanes_rows.shape[0] == s
    flags = problem.family | (HAS_REFERENCE if uses_reference() else 0)
    for chain in range(lo, hi):
        number, slot = settings.first_chain + chain, chain if every_chain else 0
        k0 = k
        while k0 < stop:
            row = common_rows(settings, work, k0, 1, chain, chain + 1) if settings.common_scale != 0.0 else 0
            if not every_chain or not 0 <= k0 - work.rows_at[slot] < ahead:
                _choose_rows(
                    settings.key, number, settings.first_client, k0, ahead if every_chain else min(ahead, stop - k0),
                    work.n_rows, work.batch, problem.start, work.words[0], work.mark, work.rows[0, 0], work.lanes_rows[slot],
                )  # fmt: skip
                work.rows_at[slot] = k0
            place = k0 - work.rows_at[slot]
            t = min(block - row, ahead - place, stop - k0)
            for first in range(0, c, SHORT_GROUPS * LANES):
                together = min(SHORT_GROUPS * LANES, c - first)
                if settings.private_scale != 0.0:
                    for group in range((together + LANES - 1) // LANES):
                        client = settings.first_client + first + group * LANES
                        out = work.lanes_private[group, :t]
                        _private_lanes(settings.key, number, client, together - group * LANES, k0, work.private[0], out)
                _advance(
                    pointer(problem.packed), pointer(state.kept[chain]), pointer(work.lanes_rows[slot, first // LANES, place]),
                    pointer(work.common[chain, row]), pointer(work.lanes_private), pointer(state.reference[chain]),
                    pointer(state.shift[chain]), pointer(state.theta[first, chain]), pointer(problem.prior[first:]),
                    pointer(work.n_rows[first:]), pointer(work.batch[first:]), ahead * places, ahead, s * d,
                    d, t, together, places, flags, settings.step_size, settings.common_scale, settings.private_scale,
                )  # fmt: skip
            for i in range(c):
                state.tally[ROWS_TOUCHED] += t * work.batch[i]
            k0 += t
