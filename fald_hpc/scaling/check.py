"""Predicted against measured: the model at the points of a study on this machine."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from fald_hpc.scaling import overlap, schedule
from fald_hpc.scaling.costs import Costs
from fald_hpc.scaling.network import PRESETS, Cluster, Network
from fald_hpc.scaling.predict import predict
from fald_hpc.scaling.table import oversubscribed
from fald_hpc.scaling.work import point
from fald_hpc.study import Study


@dataclass(frozen=True)
class Compared:
    """A point: seconds of an iteration. ``best`` and ``middle`` are over the repeats; ``crowding`` ranks share a core."""

    ranks: int
    batches: int
    delay_ms: float
    crowding: float
    best: float
    middle: float
    predicted: float

    @property
    def error(self) -> float:
        """Relative error of the prediction against the best run, as the costs are those of the best pieces."""
        return self.predicted / self.best - 1.0


def compare(study: Study, alone: Costs, busy: Costs, records: Sequence[dict[str, Any]]) -> list[Compared]:
    """Return all points of a study on this machine beside their predictions.

    Parameters
    ----------
    study : Study
        The configuration of the records.
    alone, busy : Costs
        Of one core with the others idle (for the points on one rank) and at work (for all others).
    records : sequence of dict
        Of one study.
    """
    kind = records[0]["study"]["kind"]
    fixed = None if kind == "strong" else kind.removeprefix("weak, ").removesuffix(" fixed")
    late = overslept()
    found = []
    for ranks in sorted({record["ranks"] for record in records}):
        some = [record for record in records if record["ranks"] == ranks]
        first = some[0]
        cores = len({core for one in first["cores"] for core in one})
        crowding = ranks / cores if oversubscribed(first["hosts"], first["cores"]) else 1.0
        delay = first["delay_ms"]
        network = PRESETS["shared-memory"]
        if delay > 0.0:
            # the whole delay is in one call, so it does not grow with the stages once more
            network = Network("emulated", 0.0, network.bandwidth, "a sleep in front of each message")
        cluster = Cluster(network)
        costs = alone if ranks == 1 else busy
        q = getattr(study.sampler, "refresh_prob", None)
        here, p = point(study, ranks, fixed, crowding=crowding), study.sampler.comm_prob
        batches = int(first.get("chain_batches", 1))
        waited = 1e-3 * delay + late if delay > 0.0 else 0.0
        if batches == 1:
            one = predict(costs, here, p, q, cluster)
            seconds = one.total + one.messages * waited
        else:
            flipped = schedule.events(study.key, p, q, int(first["steps"]))
            seconds = overlap.per_step(costs, here, flipped, cluster, batches, waited)
        times = [record["seconds_per_step"] for record in some]
        found.append(Compared(ranks, batches, delay, crowding, min(times), median(times), seconds))
    return found


def overslept(nominal: float = 1e-3, repeats: int = 50) -> float:
    """Return by how many seconds a sleep is longer than asked for: the timer's slack, median."""
    late = []
    for _ in range(repeats):
        begun = time.perf_counter()
        time.sleep(nominal)
        late.append(time.perf_counter() - begun - nominal)
    return median(late)


def text(found: Sequence[Compared]) -> str:
    """Return a table."""
    lines = ["ranks  batches  a core  delay ms  best us  median us  predicted us   error"]
    lines += [
        f"{one.ranks:5d}  {one.batches:7d}  {one.crowding:6.1f}  {one.delay_ms:8.3g}  {1e6 * one.best:7.5g}  "
        f"{1e6 * one.middle:9.5g}  {1e6 * one.predicted:12.5g}  {one.error:+6.1%}"
        for one in found
    ]
    return "\n".join(lines)
