"""Times as Slurm writes them: ``90`` (minutes), ``1:30`` (minutes:seconds), ``2:00:00``, ``1-12`` (days-hours)."""

import re

from fald_hpc.errors import UserError

UNLIMITED = ("UNLIMITED", "INFINITE", "NOT_SET")


def parse(text: str) -> int:
    """Return a time in seconds.

    Raises
    ------
    UserError
        The text is no time, or zero.
    """
    days, dash, rest = text.strip().rpartition("-")
    parts = rest.split(":")
    fits = re.fullmatch(r"\d+", days) if dash else days == ""
    if not fits or len(parts) > 3 or not all(re.fullmatch(r"\d+", part) for part in parts):
        raise _wrong(text)
    numbers = [int(part) for part in parts]
    units = (3600, 60, 1) if dash else {1: (60, 0, 0), 2: (60, 1, 0), 3: (3600, 60, 1)}[len(numbers)]
    seconds = 86400 * int(days or 0) + sum(n * unit for n, unit in zip(numbers, units, strict=False))
    if seconds <= 0:
        raise _wrong(text)
    return seconds


def _wrong(text: str) -> UserError:
    return UserError(
        f"--time {text}: give a time as Slurm takes it, for instance 90 (minutes), 2:00:00 or 1-12:00:00 (days-hours)"
    )


def limit(text: str) -> float:
    """Return a partition's time limit in seconds, infinity where it has none."""
    return float("inf") if text.strip().upper() in UNLIMITED else float(parse(text))


def slurm(seconds: int) -> str:
    """Return seconds as ``D-HH:MM:SS`` or ``HH:MM:SS``."""
    days, rest = divmod(int(seconds), 86400)
    clock = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else clock
