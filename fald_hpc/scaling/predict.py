"""The analytic model: seconds of an iteration on any number of ranks.

Coins are common, so all ranks make the same number of steps between two messages: a geometric gap G. The message waits
for the slowest rank: ``E max_r (G c_r + sqrt(G) sigma_r Z_r + D_r)``, averaged over the law of G, where D_r is an
exponential interruption that hits a rank with probability ``1 - exp(-rate G c_r)``, at most once between two messages.
"""

from dataclasses import dataclass

import numpy as np

from fald_hpc.scaling.costs import Costs
from fald_hpc.scaling.network import Cluster
from fald_hpc.scaling.schedule import rates
from fald_hpc.scaling.slowest import geometric, largest
from fald_hpc.scaling.work import Point


@dataclass(frozen=True)
class Prediction:
    """Seconds of one iteration of all chains.

    Attributes
    ----------
    ranks : int
        All ranks.
    steps, refresh, own : float
        Local steps, full gradients, and a rank's own part of messages: averages over ranks.
    waiting : float
        For the slowest rank: unequal work, slow cores, jitter, interruptions.
    network : float
        Messages.
    messages : float
        Messages an iteration, of one rank.
    """

    ranks: int
    steps: float
    refresh: float
    own: float
    waiting: float
    network: float
    messages: float

    @property
    def total(self) -> float:
        """Seconds of an iteration."""
        return self.steps + self.refresh + self.own + self.waiting + self.network

    @property
    def computation(self) -> float:
        """Seconds of an iteration that are not network or waiting."""
        return self.steps + self.refresh + self.own


def predict(costs: Costs, point: Point, p: float, q: float | None, cluster: Cluster) -> Prediction:
    """Return the prediction of a point.

    Parameters
    ----------
    costs : Costs
        Of one core.
    point : Point
        Ranks and their work.
    p, q : float
        p_c, and q_c or None.
    cluster : Cluster
        Network.
    """
    work = point.work
    messages, refreshes = rates(p, q)
    step = costs.of_step(work) * work.slow
    refresh = costs.of_refresh(work) * work.slow
    own = costs.of_message(work) * work.slow
    share = work.count / work.count.sum()
    mean = {name: float(share @ value) for name, value in (("step", step), ("refresh", refresh), ("own", own))}
    # a core is interrupted whether others wait for it or not
    busy = 1.0 + costs.detour_rate * costs.detour_seconds
    waiting = _waiting(costs, point, p, q, step, refresh, own) if point.together > 1 else 0.0
    # bytes of the mean message: those that carry two vectors are p q (1 - p) an iteration
    doubled = 0.0 if q is None else p * q * (1.0 - p)
    size = point.vector_bytes * (1.0 + doubled / messages)
    network = messages * cluster.seconds(point.together, size)
    n = point.streams
    return Prediction(
        point.ranks, n * busy * mean["step"], n * busy * refreshes * mean["refresh"], n * busy * messages * mean["own"],
        n * waiting, n * network, n * messages,
    )  # fmt: skip


def _waiting(
    costs: Costs, point: Point, p: float, q: float | None, step: np.ndarray, refresh: np.ndarray, own: np.ndarray
) -> float:
    """Return the expected waiting of an iteration, averaged over ranks."""
    count = point.work.count
    share = count / count.sum()
    sigma = costs.step_jitter * step

    def wait(steps: float, refreshes: float) -> float:
        mean = steps * step + refreshes * refresh + own
        average = float(share @ mean)
        hit = -np.expm1(-costs.detour_rate * mean)
        slowest = largest(mean, count, np.sqrt(steps) * sigma, hit, costs.detour_seconds)
        return slowest - average - costs.detour_seconds * float(share @ hit)

    if q is None:
        gaps, weights = geometric(p)
        return p * sum(weight * wait(gap, 0.0) for gap, weight in zip(gaps.tolist(), weights.tolist(), strict=True))
    event = p + q - p * q
    averages, both, lone = p * (1.0 - q) / event, p * q / event, q * (1.0 - p) / event
    gaps, weights = geometric(event)
    after_step, alone = wait(1.0, 1.0), wait(0.0, 1.0)
    total = both * alone + lone * after_step
    for gap, weight in zip(gaps.tolist(), weights.tolist(), strict=True):
        total += weight * (averages + both) * wait(gap, 0.0)
        # a lone refresh averages X before its own step, unless the iteration before it averaged
        total += weight * lone * wait(gap - 1.0, 0.0) * (1.0 - p / event if gap < 1.5 else 1.0)
    return event * total


def crossover(predictions: list[Prediction]) -> int | None:
    """Return the smallest number of ranks where messages and waiting take more than the computation."""
    over = [one.ranks for one in predictions if one.network + one.waiting > one.computation]
    return min(over) if over else None
