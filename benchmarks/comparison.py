"""One comparison: a peer and fald_hpc in turns, in one call, on the same problem; ratios round by round."""

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
        Seconds per unit, taken in turns.
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
    least: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> Spread:
        """Their time over ours."""
        return ratio(self.theirs, self.ours)

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
    found = in_turns({"fald": ours, **{name: peer[0] for name, peer in peers.items()}}, repeats)
    return [
        Comparison(workload, case, name, unit, found["fald"], found[name], least, facts)
        for name, (_, least, facts) in peers.items()
    ]
