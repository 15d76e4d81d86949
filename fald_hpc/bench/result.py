"""One line of the benchmark: a time per unit of work, the limit that was measured beside it, and what must be reached."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fald_hpc.bench.spread import Spread


@dataclass(frozen=True)
class Result:
    """A measured case of a workload.

    Attributes
    ----------
    workload : str
        "W1", ..., or the name of a question ("schedule", "recording", "exact sums", "chains").
    case : str
        What was measured.
    unit : str
        What a time is of: "chain-step", "normal", "event", ...; or "bytes" where the numbers are memory.
    seconds : Spread
        Seconds per unit (bytes, where the unit is that).
    limit : dict
        Parts of the limit by name, in seconds per unit; they add up to the least that this machine could need. Empty
        where no limit is known.
    target : str
        What must be reached, in words.
    value : float or None
        The number that the target is about, if it is a ratio other than the one to the limit.
    compile_seconds : float or None
        Compilation or loading from the disk cache, apart.
    facts : dict
        Further numbers for the JSON.
    """

    workload: str
    case: str
    unit: str
    seconds: Spread
    limit: Mapping[str, float] = field(default_factory=dict)
    target: str = ""
    value: float | None = None
    compile_seconds: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """The median over the limit; None where no limit is known."""
        total = sum(self.limit.values())
        return self.seconds.median / total if total > 0.0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON holds."""
        return {
            "workload": self.workload,
            "case": self.case,
            "unit": self.unit,
            "bytes" if self.unit == "bytes" else "seconds": self.seconds.to_dict(),
            "limit": {name: float(seconds) for name, seconds in self.limit.items()},
            "ratio_to_limit": self.ratio,
            "target": self.target,
            "value": self.value,
            "compile_seconds": self.compile_seconds,
            "facts": dict(self.facts),
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "Result":
        """Return the result that :meth:`to_dict` wrote."""
        key = "bytes" if found["unit"] == "bytes" else "seconds"
        return cls(
            found["workload"], found["case"], found["unit"], Spread(tuple(found[key]["repeats"])), found["limit"],
            found["target"], found["value"], found["compile_seconds"], found["facts"],
        )  # fmt: skip
