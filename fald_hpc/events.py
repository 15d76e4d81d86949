"""The events of a run: known from the seed before the first step."""

import numpy as np

from fald_hpc.chains import Schedule
from fald_hpc.kernels import coins
from fald_hpc.samplers.base import Sampler


def expected_events(
    sampler: Sampler, schedule: Schedule, key: np.uint64, chains: range, first: int, last: int, averaged: bool = True
) -> np.ndarray:
    """Return (averagings, refreshes, messages) of iterations first..last-1, known from the seed.

    With independent coins every chain sends its own messages; the counts are then sums over ``chains``.
    """
    total = np.zeros(3, np.int64)
    thresholds = coins.threshold(sampler.comm_prob), coins.threshold(getattr(sampler, "refresh_prob", 1.0))
    for chain in [coins.SHARED] if schedule.shared else chains:
        equal = averaged
        for k in range(first, last, 1 << 20):
            out = np.empty(min(1 << 20, last - k), np.uint8)
            coins.fill(key, chain, k, *thresholds, out)
            *counts, equal = coins.tally(out, equal, sampler.uses_reference)
            total += np.array(counts, np.int64)
    return total
