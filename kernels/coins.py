"""The coins of averaging (B) and refresh (B'): functions of seed and step, so every rank knows the whole schedule."""

import numpy as np

from fald_hpc.kernels.jit import jit, stack
from fald_hpc.kernels.noise import COINS
from fald_hpc.kernels.normals import fill_words_flat

SHARED = -1
"""Chain number that stands for the one schedule of all chains."""

AVERAGE = 1
REFRESH = 2
_CHUNK = 512
_WORDS = 2 * _CHUNK


def threshold(probability: float) -> np.uint64:
    """Return the word below or at which a coin fires: floor(p·2^64) - 1 for p in (0, 1]."""
    if not 0.0 < probability <= 1.0:
        raise ValueError(f"a coin's probability must lie in (0, 1], not {probability}")
    numerator, denominator = float(probability).as_integer_ratio()
    return np.uint64(max((numerator << 64) // denominator, 1) - 1)


@jit
def fill(key, chain, k0, average_threshold, refresh_threshold, out):
    """Fill the coins of iterations k0, k0 + 1, ...

    Parameters
    ----------
    key : uint64
        Generator key.
    chain : int
        Chain with a schedule of its own, or ``SHARED``.
    k0 : int
        First iteration.
    average_threshold, refresh_threshold : uint64
        From :func:`threshold`.
    out : uint8[t]
        Bit 0 (``AVERAGE``): iteration k0 + r ends with averaging; bit 1 (``REFRESH``): it refreshes the reference.
    """
    # the shared schedule lies beside those of the chains: client field 1 instead of 0
    client = 1 if chain == SHARED else 0
    stream = 0 if chain == SHARED else chain
    pair = stack(np.uint64, _WORDS)
    for first in range(0, out.size, _CHUNK):
        m = min(_CHUNK, out.size - first)
        fill_words_flat(key, COINS, stream, client, k0 + first, 1, pair[: 2 * m])
        for r in range(m):
            coin = AVERAGE if pair[2 * r] <= average_threshold else 0
            if pair[2 * r + 1] <= refresh_threshold:
                coin |= REFRESH
            out[first + r] = coin


@jit
def tally(coins, previous_averaged, refreshes_used):
    """Count the events and messages of consecutive iterations (message table of the specification, section 2).

    Parameters
    ----------
    coins : uint8[t]
        From :func:`fill`.
    previous_averaged : bool
        Whether all clients' parameters are equal before the first of these iterations.
    refreshes_used : bool
        False for samplers without a reference point: refresh coins then count for nothing.

    Returns
    -------
    averages, refreshes, messages : int
    previous_averaged : bool
        The same after the last of these iterations.
    """
    averages = 0
    refreshes = 0
    messages = 0
    for r in range(coins.size):
        average = (coins[r] & AVERAGE) != 0
        refresh = refreshes_used and (coins[r] & REFRESH) != 0
        averages += average
        refreshes += refresh
        if refresh:
            messages += 2 if average or not previous_averaged else 1
        elif average:
            messages += 1
        previous_averaged = average
    return averages, refreshes, messages, previous_averaged
