"""The normals of eight chains or eight clients side by side, for steps that keep them in the lanes of a vector."""

import numpy as np

from fald_hpc.kernels.jit import flatten, jit, stack, wide_vectors
from fald_hpc.kernels.noise import CHUNK, addresses, high_counter, philox_words, transform

LANES = 8
"""Streams side by side: a vector of 512 bits."""

_LANE_BITS = np.uint64(3)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


@jit
def _generate_lanes(key, c2, c3, first_words, second_words):
    """Replace steps and blocks by the two words at their addresses, with upper counter words of their own."""
    wide_vectors()
    low, high = key & _LOW, key >> _32
    for i in range(first_words.size):
        step = first_words[i]
        c1 = (step >> _32) | (second_words[i] << np.uint64(8))
        first_words[i], second_words[i] = philox_words(step & _LOW, c1, c2[i], c3[i], low, high)


@jit
def fill_normals_lanes(key, purpose, chain, client, next_chain, next_client, k0, out):
    """Fill an array with the normals of eight streams side by side.

    Each is what :func:`fald_hpc.kernels.noise.fill_normals` gives.

    Parameters
    ----------
    key, purpose, k0
        As in :func:`fald_hpc.kernels.noise.fill_normals`.
    chain, client : int
        Of lane 0.
    next_chain, next_client : int
        What to add from one lane to the next: (1, 0) for eight chains, (0, 1) for eight clients.
    out : float64[t, d, 8]
        C-contiguous.
    """
    t, d = out.shape[0], out.shape[1]
    c2, c3 = stack(np.uint64, CHUNK), stack(np.uint64, CHUNK)
    first_words, second_words = stack(np.uint64, CHUNK), stack(np.uint64, CHUNK)
    x, y = stack(np.float64, CHUNK), stack(np.float64, CHUNK)
    for lane in range(LANES):
        c2[lane], c3[lane] = high_counter(purpose, chain + lane * next_chain, client + lane * next_client)
    for i in range(LANES, CHUNK):
        c2[i], c3[i] = c2[i - LANES], c3[i - LANES]
    n_blocks = (d + 1) // 2
    flat = flatten(out)
    total = t * n_blocks
    row, block = 0, 0
    for first in range(0, total, CHUNK // LANES):
        m = min(CHUNK // LANES, total - first)
        p = LANES * m
        addresses(k0, n_blocks, first, _LANE_BITS, first_words[:p], second_words[:p])
        _generate_lanes(key, c2[:p], c3[:p], first_words[:p], second_words[:p])
        transform(first_words[:p], second_words[:p], x[:p], y[:p])
        for i in range(m):
            place = (row * d + 2 * block) * LANES
            for lane in range(LANES):
                flat[place + lane] = x[i * LANES + lane]
            if 2 * block + 1 < d:
                for lane in range(LANES):
                    flat[place + LANES + lane] = y[i * LANES + lane]
            block += 1
            if block == n_blocks:
                block = 0
                row += 1
