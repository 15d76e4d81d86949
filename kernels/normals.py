"""Normals and random words of many addresses at once: what :mod:`fald_hpc.kernels.noise` gives one by one, with the same bits.

The arithmetic is in ``normals.c``, in the widest vectors that the processor has.
"""

import llvmlite.binding
import numpy as np
from numba import types

from fald_hpc.kernels import _normals
from fald_hpc.kernels.jit import DISABLED, flatten, jit, stack
from fald_hpc.kernels.noise import box_muller, high_counter, words

LANES = 8
"""Streams side by side in :func:`fill_normals_lanes`: a vector of 512 bits."""

if DISABLED:

    def fill_normals(key, purpose, chain, client, k0, out):
        """Fill an array with normals, one block after another."""
        t, d = out.shape
        for r in range(t):
            for j in range(0, d, 2):
                pair = box_muller(*words(key, purpose, chain, client, k0 + r, j // 2))
                out[r, j : j + 2] = pair[: d - j]

    def fill_normals_lanes(key, purpose, chain, client, next_chain, next_client, k0, out):
        """Fill an array with the normals of eight streams side by side, one stream after another."""
        for lane in range(LANES):
            fill_normals(key, purpose, chain + lane * next_chain, client + lane * next_client, k0, out[:, :, lane])

    def fill_words_flat(key, purpose, chain, client, k0, n_blocks, flat):
        """Fill an array with random words, one block after another."""
        for i in range(flat.size // 2):
            flat[2 * i : 2 * i + 2] = words(key, purpose, chain, client, k0 + i // n_blocks, i % n_blocks)
else:
    for _name, _address in _normals.addresses().items():
        llvmlite.binding.add_symbol(_name, _address)
    _doubles, _words = types.CPointer(types.float64), types.CPointer(types.uint64)
    _counter = (types.uint64, types.uint64, types.uint64)
    _shape = (types.int64, types.int64)
    _normals_of = types.ExternalFunction(
        "fald_normals", types.void(types.uint64, *_counter, *_shape, _doubles, types.int64)
    )
    _normals_lanes_of = types.ExternalFunction(
        "fald_normals_lanes",
        types.void(types.uint64, _words, _words, types.uint64, *_shape, _doubles, types.int64),
    )
    _words_of = types.ExternalFunction("fald_words", types.void(types.uint64, *_counter, *_shape, _words, types.int64))

    @jit
    def fill_normals(key, purpose, chain, client, k0, out):
        """Fill an array with normals: row r holds coordinates 0..d-1 of step k0 + r.

        Parameters
        ----------
        key, purpose, chain, client
            As in :func:`fald_hpc.kernels.noise.words`.
        k0 : int
            Step of the first row.
        out : float64[t, d]
            C-contiguous; coordinates 2j and 2j+1 come from block j.
        """
        c2, c3 = high_counter(purpose, chain, client)
        _normals_of(key, c2, c3, k0, out.shape[0], out.shape[1], out.ctypes, 0)

    @jit
    def fill_normals_lanes(key, purpose, chain, client, next_chain, next_client, k0, out):
        """Fill an array with the normals of eight streams side by side.

        Each is what :func:`fill_normals` gives.

        Parameters
        ----------
        key, purpose, k0
            As in :func:`fill_normals`.
        chain, client : int
            Of lane 0.
        next_chain, next_client : int
            What to add from one lane to the next: (1, 0) for eight chains, (0, 1) for eight clients.
        out : float64[t, d, 8]
            C-contiguous.
        """
        c2, c3 = stack(np.uint64, LANES), stack(np.uint64, LANES)
        for lane in range(LANES):
            c2[lane], c3[lane] = high_counter(purpose, chain + lane * next_chain, client + lane * next_client)
        _normals_lanes_of(key, c2.ctypes, c3.ctypes, k0, out.shape[0], out.shape[1], out.ctypes, 0)

    @jit
    def fill_words_flat(key, purpose, chain, client, k0, n_blocks, flat):
        """Do the work of :func:`fill_words` on one row after another: uint64[t · 2 nb]."""
        if n_blocks > 0:
            c2, c3 = high_counter(purpose, chain, client)
            _words_of(key, c2, c3, k0, flat.size // (2 * n_blocks), n_blocks, flat.ctypes, 0)


@jit
def fill_words(key, purpose, chain, client, k0, out):
    """Fill an array with random words: row r holds the words of blocks 0..nb-1 of step k0 + r.

    Parameters
    ----------
    key, purpose, chain, client, k0
        As in :func:`fill_normals`.
    out : uint64[t, 2 nb]
        C-contiguous.
    """
    fill_words_flat(key, purpose, chain, client, k0, out.shape[1] // 2, flatten(out))
