"""The position of the next event on the schedule of coins, looked up block by block."""

import numpy as np

from fald_hpc.kernels.coins import SHARED, fill
from fald_hpc.kernels.jit import jit
from fald_hpc.kernels.state import COIN_BLOCK


@jit(internal=True)
def _draw(key, chain, first, average_threshold, refresh_threshold, coins, coins_at):
    """Draw the block of coins that begins with iteration ``first``; apart, with no record, since it is seldom called."""
    fill(key, chain, first, average_threshold, refresh_threshold, coins)
    coins_at[0] = chain
    coins_at[1] = first


@jit(forceinline=True, internal=True)
def coins_of(settings, work, chain, k):
    """Return the coins of iteration k (bits of :mod:`fald_hpc.kernels.coins`) of a chain or of ``SHARED``."""
    first = k - k % COIN_BLOCK
    if work.coins_at[0] != chain or work.coins_at[1] != first:
        _draw(
            settings.key, chain, first, settings.average_threshold, settings.refresh_threshold, work.coins, work.coins_at
        )
    return work.coins[k - first]


@jit(forceinline=True, internal=True)
def next_event(settings, work, chain, mask, k, stop):
    """Return the first iteration in k..stop-1 with a coin of the mask, or stop."""
    while k < stop:
        coins_of(settings, work, chain, k)
        first = work.coins_at[1]
        end = min(stop - first, np.int64(COIN_BLOCK))
        for r in range(k - first, end):
            if work.coins[r] & mask:
                return first + r
        k = first + end
    return stop


@jit(internal=True)
def stream(shared, first_chain, chain):
    """Return the chain number of the coins: ``SHARED``, or the global number of a local chain."""
    return SHARED if shared else first_chain + chain
