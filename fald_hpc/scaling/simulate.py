"""Discrete-event simulation of a run: the actual schedule of the seed, every rank with its own jitter.

An allreduce ends on all ranks together, so the clock of the run after an event is that before, plus the longest work of
any rank, plus the message. Vectorised over ranks; 10^4 ranks times 10^4 events take seconds.
"""

from dataclasses import dataclass

import numpy as np

from fald_hpc.kernels.noise import CHECK
from fald_hpc.kernels.normals import fill_normals, fill_words
from fald_hpc.scaling.costs import Costs
from fald_hpc.scaling.network import Cluster
from fald_hpc.scaling.schedule import Events
from fald_hpc.scaling.work import Point

_BLOCK = 1 << 21
"""Ranks times events that are simulated at once."""


@dataclass(frozen=True)
class Simulation:
    """Seconds of all events.

    Attributes
    ----------
    total, network, waiting : float
        Of the run; waiting is an average over ranks.
    steps : int
        Iterations up to the last event.
    error : float
        Standard error of ``total`` for another draw of the jitter and the same schedule.
    """

    total: float
    network: float
    waiting: float
    steps: int
    error: float


def simulate(costs: Costs, point: Point, events: Events, cluster: Cluster, key: np.uint64) -> Simulation:
    """Return the simulated times of a run's events.

    Parameters
    ----------
    costs, point, cluster
        As in :func:`fald_hpc.scaling.predict.predict`.
    events : Events
        The schedule.
    key : uint64
        Of the jitter's random numbers.
    """
    work = point.work
    spread = lambda values: np.repeat(values * work.slow, work.count)  # noqa: E731
    step, refresh, own = spread(costs.of_step(work)), spread(costs.of_refresh(work)), spread(costs.of_message(work))
    n, ranks = len(events.steps), len(step)
    message = {v: cluster.seconds(point.together, point.vector_bytes * v) if point.together > 1 else 0.0 for v in (1, 2)}
    network = float(sum(message[v] * int((events.vectors == v).sum()) for v in (1, 2)))
    slowest, mean = np.empty(n), np.empty(n)
    for first in range(0, n, max(1, _BLOCK // ranks)):
        part = slice(first, min(n, first + max(1, _BLOCK // ranks)))
        busy = np.outer(events.steps[part], step) + np.outer(events.refreshes[part], refresh) + own
        if costs.step_jitter > 0.0:
            jitter = np.empty(busy.shape)
            fill_normals(key, CHECK, 0, 0, first, jitter)
            jitter *= np.outer(np.sqrt(events.steps[part]), costs.step_jitter * step)
            busy += jitter
        if costs.detour_rate > 0.0:
            busy += _detours(costs, busy, key, first)
        slowest[part], mean[part] = busy.max(axis=1), busy.mean(axis=1)
    total = float(slowest.sum()) + network
    gaps = np.maximum(events.steps, 1)
    rest = slowest - gaps * (slowest.sum() / gaps.sum())
    return Simulation(total, network, float((slowest - mean).sum()), int(events.steps.sum()), float(rest.std() * np.sqrt(n)))


def _detours(costs: Costs, busy: np.ndarray, key: np.uint64, first: int) -> np.ndarray:
    """Return interruptions: at most one a rank and event, exponential, with the rate times the busy time."""
    words = np.empty((len(busy), 2 * busy.shape[1]), np.uint64)
    fill_words(key, CHECK, 1, 0, first, words)
    uniform = ((words >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53
    hit = uniform[:, ::2] < -np.expm1(-costs.detour_rate * np.maximum(busy, 0.0))
    return np.where(hit, -costs.detour_seconds * np.log(uniform[:, 1::2]), 0.0)
