"""Minibatches: uniform subsets of rows without replacement, drawn through the one door for randomness."""

import numpy as np

from fald_hpc.kernels.jit import jit
from fald_hpc.kernels.noise import SUBSET
from fald_hpc.kernels.normals import fill_words

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


@jit(forceinline=True)
def scaled(word, n):
    """Return floor(word·n / 2^64): an index in 0..n-1, uniform up to n/2^64 (n < 2^31)."""
    n = np.uint64(n)
    return np.int64(((word >> _32) * n + (((word & _LOW) * n) >> _32)) >> _32)


@jit(forceinline=True)
def n_words(n_rows, batch):
    """Return how many 64-bit words a subset takes, a multiple of two (a block); 0 when the subset is every row."""
    if batch >= n_rows:
        return 0
    return 2 * ((min(batch, n_rows - batch) + 1) // 2)


@jit(forceinline=True)
def choose(words, n_rows, batch, mark, out):
    """Choose a uniform subset by Floyd's method.

    Parameters
    ----------
    words : uint64[n_words(n_rows, batch)]
        Random words.
    n_rows, batch : int
        Rows of the client and of the minibatch, 0 <= batch <= n_rows.
    mark : uint8[n_rows]
        Scratch, all zero before and after.
    out : int64[batch]
        The subset, in an order that depends on the words alone.
    """
    if batch >= n_rows:
        for j in range(n_rows):
            out[j] = j
        return
    if batch == 1:
        out[0] = scaled(words[0], n_rows)
        return
    complement = 2 * batch > n_rows
    drawn = n_rows - batch if complement else batch
    if drawn <= 16 and not complement:
        # few rows: comparing with those already drawn is cheaper than marking
        for j in range(drawn):
            top = n_rows - drawn + j
            candidate = scaled(words[j], top + 1)
            for i in range(j):
                if out[i] == candidate:
                    candidate = top
                    break
            out[j] = candidate
        return
    count = 0
    for j in range(drawn):
        top = n_rows - drawn + j
        candidate = scaled(words[j], top + 1)
        if mark[candidate] != 0:
            candidate = top
        mark[candidate] = 1
        if not complement:
            out[count] = candidate
            count += 1
    if complement:
        for row in range(n_rows):
            if mark[row] == 0:
                out[count] = row
                count += 1
            mark[row] = 0
    else:
        for j in range(count):
            mark[out[j]] = 0


@jit(allocates=True)
def subset(key, chain, client, step, n_rows, batch, out):
    """Fill the minibatch of one iteration: a uniform subset of {0..n_rows-1} without replacement.

    Parameters
    ----------
    key : uint64
        Generator key.
    chain, client, step : int
        The address of the draw.
    n_rows, batch : int
        Rows of the client and of the minibatch, 0 <= batch <= n_rows.
    out : int64[batch]
        The row indices.
    """
    words = np.empty((1, n_words(n_rows, batch)), np.uint64)
    fill_words(key, SUBSET, chain, client, step, words)
    mark = np.zeros(n_rows, np.uint8)
    choose(words[0], n_rows, batch, mark, out)
