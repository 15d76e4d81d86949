"""Progress of a run on rank 0: a bar on a terminal, else one flushed line per interval, never a carriage return."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

INTERVAL = 10.0
"""Seconds between two lines where the output is not a terminal."""


def duration(seconds: float) -> str:
    """Return a duration in words that fit a line: ``"7 s"``, ``"3 min 20 s"``, ``"2 h 5 min"``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Lines:
    """One line per interval for logs and batch jobs.

    Parameters
    ----------
    stream : TextIO
        Where to write.
    opening : sequence of str
        Lines to write when sampling starts: validation is over then.
    interval : float
        Seconds between two lines.
    clock : Callable
        Seconds since some start; a test gives its own.
    """

    def __init__(
        self,
        stream: TextIO,
        opening: Sequence[str] = (),
        interval: float = INTERVAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stream, self.opening, self.interval, self.clock = stream, opening, interval, clock
        self.first: tuple[float, int] | None = None
        self.last_line = 0.0

    def __call__(self, step: int, steps: int) -> None:
        """Take note that ``step`` of ``steps`` iterations are done."""
        now = self.clock()
        if self.first is None:
            self.first, self.last_line = (now, step), now
            for line in self.opening:
                self._say(line)
        if now - self.last_line < self.interval:
            return
        self.last_line = now
        begun, first_step = self.first
        left = (now - begun) / (step - first_step) * (steps - step) if step > first_step else None
        remaining = f", about {duration(left)} left" if left is not None else ""
        self._say(f"step {step} of {steps} ({100 * step // steps} %){remaining}")

    def _say(self, line: str) -> None:
        """Write a line; a log that takes no more (its disk is full, its reader has gone) is no reason to end a run."""
        with contextlib.suppress(OSError):
            print(line, file=self.stream, flush=True)

    def close(self) -> None:
        """Do nothing: every line is complete."""


class Bar:
    """A bar on a terminal.

    Parameters
    ----------
    opening : sequence of str
        Lines to write when sampling starts.
    """

    def __init__(self, opening: Sequence[str] = ()) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.bar = Progress(
            TextColumn("sampling"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("steps,"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=Console(stderr=True),
        )
        self.opening = opening
        self.task: Any = None

    def __call__(self, step: int, steps: int) -> None:
        """Take note that ``step`` of ``steps`` iterations are done."""
        if self.task is None:
            for line in self.opening:
                print(line, file=sys.stderr)
            self.bar.start()
            self.task = self.bar.add_task("sampling", total=steps)
        self.bar.update(self.task, completed=step)

    def close(self) -> None:
        """Leave the bar as it stands and give the cursor back."""
        self.bar.stop()


def reporter(opening: Sequence[str] = ()) -> Lines | Bar:
    """Return what fits standard error; results go to standard output."""
    return Bar(opening) if sys.stderr.isatty() else Lines(sys.stderr, opening)
