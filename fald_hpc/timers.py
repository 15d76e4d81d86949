"""The wall time of a run by phase."""

import time
from dataclasses import dataclass, field


@dataclass
class Timers:
    """Wall seconds of the phases of a run on rank 0; they add up to the total."""

    phases: dict[str, float] = field(default_factory=dict)
    begun: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        """Start the first phase now."""
        self._last = time.perf_counter()

    def lap(self, phase: str) -> float:
        """Add the time since the last lap to a phase and return it."""
        now = time.perf_counter()
        elapsed, self._last = now - self._last, now
        self.phases[phase] = self.phases.get(phase, 0.0) + elapsed
        return elapsed
