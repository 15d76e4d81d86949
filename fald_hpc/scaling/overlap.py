"""Latency hiding: the chains of a rank in several batches, one computing while another's message is under way.

Batches take turns on the core, as in :mod:`fald_hpc.kernels.batches`. A batch has its share of the work of every event and
a message of its own; the work that does not shrink with the chains (``overhead``) is paid by each. With two batches an
event takes about ``max(work + 2 overhead, work/2 + overhead + message)`` instead of ``work + overhead + message``: at best
a factor of two, where work and message are equal.
"""

import numpy as np

from fald_hpc.scaling.costs import Costs
from fald_hpc.scaling.network import Cluster
from fald_hpc.scaling.schedule import Events
from fald_hpc.scaling.work import Point


def simulate(work: np.ndarray, message: np.ndarray, batches: int, overhead: float = 0.0) -> float:
    """Return the seconds of a run.

    Parameters
    ----------
    work : float64[e]
        Seconds of the slowest rank's work before each message, all chains.
    message : float64[e]
        Seconds of a message of one batch.
    batches : int
        1: no overlap.
    overhead : float
        Seconds of each batch's work that do not shrink with its chains.
    """
    core = 0.0
    arrived = [0.0] * batches
    for piece, latency in zip((work / batches + overhead).tolist(), message.tolist(), strict=True):
        for batch in range(batches):
            core = max(core, arrived[batch]) + piece
            arrived[batch] = core + latency
    return max(arrived)


def per_step(
    costs: Costs, point: Point, events: Events, cluster: Cluster, batches: int, delay: float = 0.0
) -> float:
    """Return predicted seconds of an iteration with the chains in batches, without jitter.

    Parameters
    ----------
    costs, point, cluster
        As in :func:`fald_hpc.scaling.predict.predict`.
    events : Events
        The schedule.
    batches : int
        At most as many as a rank has chains, else the result is NaN.
    delay : float
        Seconds that every message takes beside the network's.
    """
    work = point.work
    slowest = int(np.argmax(costs.of_step(work) * work.slow))
    chains = work.chains[slowest]
    step, refresh, own = (
        float((cost(work) * work.slow)[slowest]) for cost in (costs.of_step, costs.of_refresh, costs.of_message)
    )
    fixed = costs.message * float(work.slow[slowest])
    busy = events.steps * step + events.refreshes * refresh + own - fixed
    size = np.where(events.vectors == 2, 2, 1) * point.vector_bytes / batches
    seconds = {float(n): delay + cluster.seconds(point.together, float(n)) for n in np.unique(size)}
    message = np.array([seconds[float(n)] for n in size])
    if batches > chains:
        return float("nan")
    return simulate(busy, message, batches, fixed) / float(events.steps.sum())
