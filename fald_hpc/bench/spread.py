"""Repeated measurements: medians with their spread, taken in turns so that a change of the machine meets all of them."""

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Spread:
    """Seconds per unit of work (or bytes, for memory), one number a repeat, in the order measured."""

    repeats: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse a measurement without a repeat."""
        if not self.repeats:
            raise ValueError("no repeat was measured")

    @property
    def median(self) -> float:
        """The median."""
        return float(np.median(self.repeats))

    @property
    def quartiles(self) -> tuple[float, float]:
        """The lower and the upper quartile."""
        low, high = np.quantile(self.repeats, (0.25, 0.75))
        return float(low), float(high)

    @property
    def best(self) -> float:
        """The smallest."""
        return min(self.repeats)

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON holds."""
        low, high = self.quartiles
        return {"median": self.median, "quartiles": [low, high], "best": self.best, "repeats": list(self.repeats)}


Clock = Callable[[], float]

WALL: Clock = time.perf_counter
PROCESSOR: Clock = time.thread_time
"""Seconds that this thread was on a core. On an idle machine it is the wall time of a rank; where other work has the core
half of the time, a measurement that is longer than the scheduler's slices would be charged for it, and a short one not."""


def timed(action: Callable[[], object], clock: Clock = PROCESSOR) -> float:
    """Return the seconds of one call, by a clock."""
    begun = clock()
    action()
    return clock() - begun


def in_turns(measurements: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, Spread]:
    """Take measurements one after another, so many rounds; the first, unrecorded round warms caches and clocks.

    Parameters
    ----------
    measurements : mapping
        Each returns seconds per unit of its own work.
    repeats : int
        Recorded rounds.
    """
    found: dict[str, list[float]] = {name: [] for name in measurements}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for round_ in range(repeats + 1):
            for name, measure in measurements.items():
                value = measure()
                if round_ > 0:
                    found[name].append(value)
    finally:
        if collecting:
            gc.enable()
    return {name: Spread(tuple(values)) for name, values in found.items()}


def ratio(first: Spread, second: Spread) -> Spread:
    """Return the ratios of the rounds of two measurements that were taken in turns."""
    return Spread(tuple(a / b for a, b in zip(first.repeats, second.repeats, strict=True)))


def difference(first: Spread, second: Spread, scale: float = 1.0) -> Spread:
    """Return the differences of the rounds of two measurements that were taken in turns, times a scale."""
    return Spread(tuple(scale * (a - b) for a, b in zip(first.repeats, second.repeats, strict=True)))
