"""Progress of a run on rank 0: a bar on a terminal, else one flushed line per interval, never a carriage return."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
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
    interval : float
        Seconds between two lines.
    clock : Callable
        Seconds since some start; a test gives its own.
    """

    def __init__(
        self, stream: TextIO, interval: float = INTERVAL, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.stream, self.interval, self.clock = stream, interval, clock
        self.first: tuple[float, int] | None = None
        self.last_line = clock()

    def __call__(self, step: int, steps: int) -> None:
        """Take note that ``step`` of ``steps`` iterations are done."""
        now = self.clock()
        if self.first is None:
            self.first = (now, step)
        if now - self.last_line < self.interval:
            return
        self.last_line = now
        begun, first_step = self.first
        left = (now - begun) / (step - first_step) * (steps - step) if step > first_step else None
        remaining = f", about {duration(left)} left" if left is not None else ""
        print(f"step {step} of {steps} ({100 * step // steps} %){remaining}", file=self.stream, flush=True)

    def close(self) -> None:
        """Do nothing: every line is complete."""


class Bar:
    """A bar on a terminal."""

    def __init__(self) -> None:
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
        self.task: Any = None

    def __call__(self, step: int, steps: int) -> None:
        """Take note that ``step`` of ``steps`` iterations are done."""
        if self.task is None:
            self.bar.start()
            self.task = self.bar.add_task("sampling", total=steps)
        self.bar.update(self.task, completed=step)

    def close(self) -> None:
        """Leave the bar as it stands and give the cursor back."""
        self.bar.stop()


def reporter(stream: TextIO | None = None) -> Lines | Bar:
    """Return what fits the stream, standard error by default: results go to standard output."""
    target = stream or sys.stderr
    return Bar() if target.isatty() else Lines(target)
