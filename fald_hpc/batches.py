"""In how many batches the chains of a rank are taken: one computes while the messages of the others are under way.

What a batch is: :mod:`fald_hpc.kernels.batches`. The number changes messages and time, never a result, so "auto" may
measure: where the ranks that share chains are on one node it is 1; where messages travel between nodes, segments of the
run itself are taken with 1 and with 2 batches in turn, and the faster of the two is kept.
"""

from collections.abc import Callable
from typing import Any

from fald_hpc.chains import Schedule
from fald_hpc.layout import Layout

AUTO = "auto"
TRIAL_SECONDS = 0.5
"""Time that each number of batches is tried for, at least; a segment is taken with one of them."""

WORTH = 0.97
"""Time of an iteration with 2 batches, over that with 1, below which 2 are taken."""


def possible(asked: int, layout: Layout, schedule: Schedule) -> int:
    """Return how many of the asked batches there can be: with chains in them, and with messages between ranks."""
    if layout.client_groups == 1 or not schedule.shared:
        return 1
    return min(asked, len(layout.chains(0)))


class Batches:
    """The number of batches through a run.

    Parameters
    ----------
    asked : int or "auto"
        As configured.
    layout, schedule
        Of the run.
    between_nodes : callable
        Returns whether messages travel between nodes, equal on all ranks; called for "auto" alone, by all ranks.

    Attributes
    ----------
    number : int
        Batches of the next segment.
    spans : list of (int, int)
        First iterations and the number of batches from there on.
    """

    def __init__(self, asked: int | str, layout: Layout, schedule: Schedule, between_nodes: Callable[[], bool]) -> None:
        self.asked = asked
        most = possible(2 if asked == AUTO else int(asked), layout, schedule)
        self.number = 1 if asked == AUTO else most
        self.spans: list[tuple[int, int]] = []
        self._tried = {1: [0.0, 0], 2: [0.0, 0]}
        self._trying = asked == AUTO and most > 1 and between_nodes()

    def take(self, number: int, k: int) -> None:
        """Use a number of batches from iteration k on."""
        self.number = number
        if not self.spans or self.spans[-1][1] != number:
            self.spans.append((k, number))

    def next(self, steps: int, seconds: float) -> int:
        """Return rank 0's number for the next segment, from the iterations and the time of the last one."""
        if not self._trying:
            return self.number
        tried = self._tried[self.number]
        tried[0] += seconds
        tried[1] += steps
        if any(spent < TRIAL_SECONDS for spent, _ in self._tried.values()):
            return 3 - self.number
        self._trying = False
        return 2 if self.seconds(2) < WORTH * self.seconds(1) else 1

    def seconds(self, number: int) -> float:
        """Return the seconds of an iteration that were measured with a number of batches."""
        spent, steps = self._tried[number]
        return spent / steps

    def describe(self) -> dict[str, Any]:
        """Return what was asked for, what the run ended with, and what was measured for it."""
        measured = {str(number): self.seconds(number) for number, (_, steps) in self._tried.items() if steps > 0}
        return {"asked": self.asked, "used": self.number, **({"seconds_per_step": measured} if measured else {})}
