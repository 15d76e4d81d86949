"""The one door for randomness: each draw is a function of (seed, purpose, chain, client, step, coordinate).

A counter-based generator, Philox4x32-10 (Salmon et al., SC 2011), maps a 128-bit counter and a 64-bit key to 128 random
bits. The key is a hash of the seed, the counter holds the address of the draw in fixed bit fields, so no generator
state exists, streams cannot collide, and a draw does not depend on which rank computes it or when.

Counter, from the lowest bit (``LAYOUT_VERSION`` 1): step 40, coordinate block 24, client 20, chain 16, purpose 8,
version 8. A block holds two normals (Box-Muller with a 53-bit radius) or two 64-bit words.

Here is one draw at a time; :mod:`fald_hpc.kernels.normals` makes many at once, with the same bits.
"""

import numpy as np

from fald_hpc.kernels.elementary import cos_sin_turn, log
from fald_hpc.kernels.jit import jit, swap_halves

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


@jit(forceinline=True)
def box_muller(first, second):
    """Return two independent normals from two 64-bit words (radius from 53 bits of the first)."""
    uniform = (np.float64(first >> np.uint64(11)) + 1.0) * 1.1102230246251565e-16
    radius = np.sqrt(-2.0 * log(uniform))
    c, s = cos_sin_turn(second)
    return radius * c, radius * s
