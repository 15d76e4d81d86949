"""The iterations after which the drift watch looks: few, fixed, and the same on any layout and however a run is cut.

Looks are due ``first`` iterations after burn-in, then at twice, four times, ... as many, and from ``stride`` on every
``stride`` iterations. Where all clients have to agree first a look is taken at the next averaging. ``first`` and
``stride`` follow from the numbers of rows, so that looks touch about 2 % of the rows that the run touches, or fewer.
"""

from dataclasses import dataclass

EARLIEST = 64
"""Iterations after burn-in before the first look, at least."""

SHORTEST = 131072
"""Stride at least: a look leaves the compiled loop and takes microseconds a client, as long as thousands of fast iterations."""

SHARE = 1.0 / 64.0
"""Share of the rows that a run touches for its first look, at most; later ones get by with half of that."""


@dataclass(frozen=True)
class Grid:
    """When looks are due.

    Attributes
    ----------
    burn_in : int
        Iterations that are not recorded; there is no look among them.
    first, stride : int
        Powers of two, in iterations.
    """

    burn_in: int
    first: int
    stride: int

    def after(self, k: int) -> int:
        """Return the first due iteration that is larger than k."""
        past = k - self.burn_in
        if past < self.first:
            return self.burn_in + self.first
        if past < self.stride:
            return self.burn_in + (1 << past.bit_length())
        return self.burn_in + (past // self.stride + 1) * self.stride


def grid(burn_in: int, look_rows: float, step_rows: float) -> Grid:
    """Return the grid for a look and an iteration that touch so many rows, of all clients."""
    cost = look_rows / step_rows if step_rows > 0.0 else 0.0
    first = _power_of_two(max(EARLIEST, cost / SHARE))
    return Grid(burn_in, first, max(first, _power_of_two(max(SHORTEST, 2.0 * cost / SHARE))))


def _power_of_two(value: float) -> int:
    """Return the smallest power of two that is not smaller."""
    power = 1
    while power < value:
        power *= 2
    return power
