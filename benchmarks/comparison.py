"""One comparison: a peer and fald_hpc in turns, in one call, on the same problem; ratios round by round."""

import time
from dataclasses import dataclass, field
from typing import Any

from fald_hpc.bench.spread import Spread, in_turns, ratio


@dataclass(frozen=True)
class Comparison:
    """A peer's time over ours.

    Attributes
    ----------
    workload, case, peer, unit : str
        What was compared with what, per which unit.
    ours, theirs : Spread
        Wall seconds per unit, taken in turns.
    our_cores, their_cores : Spread
        Cores in use on average: seconds of all threads on a core, over wall seconds. Below 1 where other work had the core.
    least : float or None
        The ratio that must be reached.
    facts : dict
        More, for the JSON.
    """

    workload: str
    case: str
    peer: str
    unit: str
    ours: Spread
    theirs: Spread
    our_cores: Spread
    their_cores: Spread
    least: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> Spread:
        """Their wall time over ours."""
        return ratio(self.theirs, self.ours)

    @property
    def work_ratio(self) -> Spread:
        """Their time on cores over ours: what other work on the machine does not change."""
        pairs = zip(self.ratio.repeats, self.their_cores.repeats, self.our_cores.repeats, strict=True)
        return Spread(tuple(seconds * theirs / ours for seconds, theirs, ours in pairs))

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON holds."""
        return {
            "workload": self.workload,
            "case": self.case,
            "peer": self.peer,
            "unit": self.unit,
            "fald_seconds": self.ours.to_dict(),
            "peer_seconds": self.theirs.to_dict(),
            "ratio": self.ratio.to_dict(),
            "fald_cores": self.our_cores.to_dict(),
            "peer_cores": self.their_cores.to_dict(),
            "work_ratio": self.work_ratio.to_dict(),
            "must_reach": self.least,
            "facts": self.facts,
        }


def compare(workload, case, ours, peers, repeats, unit="chain-step"):
    """Measure us and some peers in turns.

    Parameters
    ----------
    workload, case : str
        Labels.
    ours : callable
        Returns our seconds per unit.
    peers : dict
        Name -> (callable that returns its seconds per unit, least ratio or None, facts).
    repeats : int
        Rounds.
    """
    cores: dict[str, list[float]] = {}
    found = in_turns(
        {name: _watched(measure, cores.setdefault(name, []))
         for name, measure in [("fald", ours), *((name, peer[0]) for name, peer in peers.items())]},
        repeats,
    )  # fmt: skip
    used = {name: Spread(tuple(values[-repeats:])) for name, values in cores.items()}
    return [
        Comparison(workload, case, name, unit, found["fald"], found[name], used["fald"], used[name], least, facts)
        for name, (_, least, facts) in peers.items()
    ]


def _watched(measure, cores):
    """Return the measurement, which also notes how many cores the process had on average."""

    def watched():
        wall, processor = time.perf_counter(), time.process_time()
        seconds = measure()
        cores.append((time.process_time() - processor) / (time.perf_counter() - wall))
        return seconds

    return watched
