"""The one door for randomness: each draw is a function of (seed, purpose, chain, client, step, coordinate).

A counter-based generator, Philox4x32-10 (Salmon et al., SC 2011), maps a 128-bit counter and a 64-bit key to 128 random
bits. The key is a hash of the seed, the counter holds the address of the draw in fixed bit fields, so no generator
state exists, streams cannot collide, and a draw does not depend on which rank computes it or when.

Counter, from the lowest bit (``LAYOUT_VERSION`` 1): step 40, coordinate block 24, client 20, chain 16, purpose 8,
version 8. A block holds two normals (Box-Muller with a 53-bit radius) or two 64-bit words.
"""

import numpy as np

from fald_hpc.kernels.elementary import cos_sin_turn, log
from fald_hpc.kernels.jit import flatten, jit, stack, swap_halves, wide_vectors

LAYOUT_VERSION = 1
COMMON, PRIVATE, COINS, SUBSET, INIT, PARTITION, CHECK = range(1, 8)

MAX_STEPS = 1 << 40
MAX_COORDINATES = 1 << 25
MAX_CLIENTS = 1 << 20
MAX_CHAINS = 1 << 16

_M0 = np.uint64(0xD2511F53)
_M1 = np.uint64(0xCD9E8D57)
_W0 = np.uint64(0x9E3779B9)
_W1 = np.uint64(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
CHUNK = 512
"""Blocks computed at a time: four vectors of them stay in the first-level cache."""


def key(seed: int) -> np.uint64:
    """Return the 64-bit generator key of a seed in 0..2^64-1 (the finaliser of SplitMix64, a bijection)."""
    z = (int(seed) + 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return np.uint64(z ^ (z >> 31))


@jit(forceinline=True)
def _round(c0, c1, c2, c3, k0, k1):
    """Apply one round."""
    p0 = (c0 & _LOW) * _M0
    p1 = (c2 & _LOW) * _M1
    return (p1 >> _32) ^ c1 ^ k0, p1 & _LOW, (p0 >> _32) ^ c3 ^ k1, p0 & _LOW


@jit(forceinline=True)
def _nine_rounds(c0, c1, c2, c3, k0, k1):
    """Apply the first nine rounds."""
    # written out, since a loop in here would keep the loops that call it from being vectorised
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, k0, k1)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, (k0 + np.uint64(1) * _W0) & _LOW, (k1 + np.uint64(1) * _W1) & _LOW)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, (k0 + np.uint64(2) * _W0) & _LOW, (k1 + np.uint64(2) * _W1) & _LOW)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, (k0 + np.uint64(3) * _W0) & _LOW, (k1 + np.uint64(3) * _W1) & _LOW)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, (k0 + np.uint64(4) * _W0) & _LOW, (k1 + np.uint64(4) * _W1) & _LOW)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, (k0 + np.uint64(5) * _W0) & _LOW, (k1 + np.uint64(5) * _W1) & _LOW)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, (k0 + np.uint64(6) * _W0) & _LOW, (k1 + np.uint64(6) * _W1) & _LOW)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, (k0 + np.uint64(7) * _W0) & _LOW, (k1 + np.uint64(7) * _W1) & _LOW)
    c0, c1, c2, c3 = _round(c0, c1, c2, c3, (k0 + np.uint64(8) * _W0) & _LOW, (k1 + np.uint64(8) * _W1) & _LOW)
    return c0, c1, c2, c3, (k0 + np.uint64(9) * _W0) & _LOW, (k1 + np.uint64(9) * _W1) & _LOW


@jit
def philox(c0, c1, c2, c3, k0, k1):
    """Apply ten rounds of Philox4x32; all arguments and results are 32-bit values held in uint64."""
    c0, c1, c2, c3, k0, k1 = _nine_rounds(c0, c1, c2, c3, k0, k1)
    return _round(c0, c1, c2, c3, k0, k1)


@jit(forceinline=True)
def philox_words(c0, c1, c2, c3, k0, k1):
    """Return the results of :func:`philox` as two 64-bit words: second and first, fourth and third."""
    c0, c1, c2, c3, k0, k1 = _nine_rounds(c0, c1, c2, c3, k0, k1)
    # the tenth round, where the halves of both products are put together in the end: here they stay so
    return swap_halves(c2 * _M1) ^ c1 ^ k0, swap_halves(c0 * _M0) ^ c3 ^ k1


@jit(forceinline=True)
def high_counter(purpose, chain, client):
    """Return the third and fourth counter word."""
    chain = np.uint64(chain)
    c2 = np.uint64(client) | ((chain & np.uint64(0xFFF)) << np.uint64(20))
    c3 = (chain >> np.uint64(12)) | (np.uint64(purpose) << np.uint64(4)) | (np.uint64(LAYOUT_VERSION) << np.uint64(12))
    return c2, c3


@jit
def words(key, purpose, chain, client, step, block):
    """Return the two 64-bit words of one block.

    Parameters
    ----------
    key : uint64
        From :func:`key`.
    purpose : int
        One of the constants of this module.
    chain, client, step, block : int
        The address of the draw.
    """
    c2, c3 = high_counter(purpose, chain, client)
    step = np.uint64(step)
    c1 = (step >> _32) | (np.uint64(block) << np.uint64(8))
    return philox_words(step & _LOW, c1, c2, c3, key & _LOW, key >> _32)


@jit
def addresses(k0, n_blocks, first, shift, steps, blocks):
    """Write step and block of consecutive blocks, numbered row by row with ``n_blocks`` a step, from ``first`` on.

    Each is written 2^shift times in a row.
    """
    row = first // n_blocks
    start = np.uint64(first - row * n_blocks)
    step0 = np.uint64(k0 + row)
    n = np.uint64(n_blocks)
    if n_blocks == 1:
        for i in range(steps.size):
            steps[i] = step0 + (np.uint64(i) >> shift)
            blocks[i] = np.uint64(0)
    elif n_blocks < CHUNK:
        # index // n without a division, which would stop the vectoriser: exact while index·n < 2^32
        reciprocal = ((np.uint64(1) << _32) + n - np.uint64(1)) // n
        for i in range(steps.size):
            index = start + (np.uint64(i) >> shift)
            # the masks let the compiler use the 32-bit multiplier, the only one that vectors have on all processors
            quotient = ((index & _LOW) * (reciprocal & _LOW)) >> _32
            steps[i] = step0 + quotient
            blocks[i] = index - (quotient & _LOW) * (n & _LOW)
    else:
        # a piece is not longer than a row
        for i in range(steps.size):
            index = start + (np.uint64(i) >> shift)
            next_row = index >= n
            steps[i] = step0 + np.uint64(1) if next_row else step0
            blocks[i] = index - n if next_row else index


@jit
def _generate(key, c2, c3, first_words, second_words):
    """Replace steps and blocks by the two words at their addresses."""
    wide_vectors()
    low, high = key & _LOW, key >> _32
    for i in range(first_words.size):
        step = first_words[i]
        c1 = (step >> _32) | (second_words[i] << np.uint64(8))
        first_words[i], second_words[i] = philox_words(step & _LOW, c1, c2, c3, low, high)


@jit
def _blocks(key, c2, c3, k0, n_blocks, first, first_words, second_words):
    """Fill the words of consecutive blocks, numbered as in :func:`addresses`."""
    addresses(k0, n_blocks, first, np.uint64(0), first_words, second_words)
    _generate(key, c2, c3, first_words, second_words)


@jit(forceinline=True)
def box_muller(first, second):
    """Return two independent normals from two 64-bit words (radius from 53 bits of the first)."""
    uniform = (np.float64(first >> np.uint64(11)) + 1.0) * 1.1102230246251565e-16
    radius = np.sqrt(-2.0 * log(uniform))
    c, s = cos_sin_turn(second)
    return radius * c, radius * s


@jit(forceinline=True)
def _padded(m):
    """Return m rounded up to whole vectors: what is left over would be computed one by one, as slowly as a vector."""
    return (m + 7) & -8


@jit
def transform(first_words, second_words, x, y):
    """Turn words into normals; loops of their own for each stage are what the vectoriser handles best."""
    for i in range(x.size):
        x[i], y[i] = box_muller(first_words[i], second_words[i])


@jit
def _interleave(x, y, out):
    """Write x[0], y[0], x[1], y[1], ..."""
    for i in range(x.size):
        out[2 * i] = x[i]
        out[2 * i + 1] = y[i]


@jit
def fill_normals(key, purpose, chain, client, k0, out):
    """Fill an array with normals: row r holds coordinates 0..d-1 of step k0 + r.

    Parameters
    ----------
    key, purpose, chain, client
        As in :func:`words`.
    k0 : int
        Step of the first row.
    out : float64[t, d]
        C-contiguous; coordinates 2j and 2j+1 come from block j.
    """
    t, d = out.shape
    c2, c3 = high_counter(purpose, chain, client)
    n_blocks = (d + 1) // 2
    first_words, second_words = stack(np.uint64, CHUNK), stack(np.uint64, CHUNK)
    x, y = stack(np.float64, CHUNK), stack(np.float64, CHUNK)
    flat = flatten(out)
    total = t * n_blocks
    for first in range(0, total, CHUNK):
        m = min(CHUNK, total - first)
        p = _padded(m)
        _blocks(key, c2, c3, k0, n_blocks, first, first_words[:p], second_words[:p])
        transform(first_words[:p], second_words[:p], x[:p], y[:p])
        if d == 2 * n_blocks:
            _interleave(x[:m], y[:m], flat[2 * first : 2 * (first + m)])
        else:
            # an odd row ends with the first normal of its last block
            row = first // n_blocks
            block = first - row * n_blocks
            for i in range(m):
                flat[row * d + 2 * block] = x[i]
                block += 1
                if block == n_blocks:
                    block = 0
                    row += 1
                else:
                    flat[row * d + 2 * block - 1] = y[i]


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


@jit
def fill_words_flat(key, purpose, chain, client, k0, n_blocks, flat):
    """Do the work of :func:`fill_words` on one row after another: uint64[t · 2 nb]."""
    if n_blocks == 0:
        return
    t = flat.size // (2 * n_blocks)
    c2, c3 = high_counter(purpose, chain, client)
    first_words, second_words = stack(np.uint64, CHUNK), stack(np.uint64, CHUNK)
    total = t * n_blocks
    for first in range(0, total, CHUNK):
        m = min(CHUNK, total - first)
        p = _padded(m)
        _blocks(key, c2, c3, k0, n_blocks, first, first_words[:p], second_words[:p])
        _interleave(first_words[:m], second_words[:m], flat[2 * first : 2 * (first + m)])
