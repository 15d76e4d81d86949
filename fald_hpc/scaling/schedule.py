"""The messages of a run in order, known from the seed: what every rank computes before each, and its size.

This follows the loops of :mod:`fald_hpc.samplers` event by event, so it also says where the time of a trace went.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from fald_hpc.kernels import coins

AVERAGE, REFERENCE, GRADIENT = range(3)
"""Kinds of messages: the mean of X after a step, the mean of X for a reference, the mean gradient at it."""


class Events(NamedTuple):
    """Messages in order; e of them.

    Attributes
    ----------
    steps : int64[e]
        Local steps since the message before.
    refreshes : int64[e]
        1 where full gradients are computed for this message.
    vectors : int64[e]
        Vectors of a chain that it carries, 1 or 2.
    kind : int64[e]
        ``AVERAGE``, ``REFERENCE`` or ``GRADIENT``.
    """

    steps: np.ndarray
    refreshes: np.ndarray
    vectors: np.ndarray
    kind: np.ndarray


def events(
    key: np.uint64, comm_prob: float, refresh_prob: float | None, steps: int, streams: Iterable[int] = (coins.SHARED,)
) -> Events:
    """Return the messages of iterations 0..steps-1 without the one at the start.

    Parameters
    ----------
    key : uint64
        Generator key.
    comm_prob, refresh_prob : float
        p_c and q_c; None for a sampler without a reference.
    steps : int
        Iterations.
    streams : iterable of int
        Chains with schedules of their own, one after the other, or the shared schedule.
    """
    found: list[tuple[int, int, int, int]] = []
    thresholds = coins.threshold(comm_prob), coins.threshold(refresh_prob or 1.0)
    for stream in streams:
        flips = np.empty(steps, np.uint8)
        coins.fill(key, stream, 0, *thresholds, flips)
        flips &= coins.AVERAGE | (coins.REFRESH if refresh_prob is not None else 0)
        begun, equal_at = 0, 0
        for k in np.flatnonzero(flips).tolist():
            averages, refreshes = bool(flips[k] & coins.AVERAGE), bool(flips[k] & coins.REFRESH)
            equal = equal_at == k
            if refreshes and not equal and not averages:
                found.append((k - begun, 0, 1, REFERENCE))
                begun = k
            if averages:
                found.append((k + 1 - begun, 0, 2 if refreshes and not equal else 1, AVERAGE))
                begun = equal_at = k + 1
            if refreshes:
                found.append((k + 1 - begun, 1, 1, GRADIENT))
                begun = k + 1
    table = np.array(found, np.int64).reshape(-1, 4)
    return Events(*table.T)


def rates(p: float, q: float | None) -> tuple[float, float]:
    """Return expected messages and refreshes an iteration: the table of specification section 2 with random coins."""
    if q is None:
        return p, 0.0
    # a lone refresh costs one message if the previous iteration averaged, which has probability p
    return p * (1.0 - q) + q * (1.0 - p) * (2.0 - p) + 2.0 * p * q, q
