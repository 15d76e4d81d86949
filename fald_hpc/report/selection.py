"""Which parameters a report shows: all of few, else the first ones and those with the worst R-hat."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

FIRST = 12
"""Parameters shown from the start of the list."""

WORST = 3
"""Parameters shown besides, those with the largest R-hat."""


def choose(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the indices of the parameters to show, in order.

    Parameters
    ----------
    rows : sequence of dict
        ``parameters`` of a summary. An R-hat that is missing where others are given is infinite: it counts as worst.
    """
    if len(rows) <= FIRST + WORST:
        return list(range(len(rows)))
    given = [row["r_hat"] is not None for row in rows]
    if not any(given):
        return list(range(FIRST))
    size = [row["r_hat"] if known else math.inf for row, known in zip(rows, given, strict=True)]
    worst = sorted(range(FIRST, len(rows)), key=lambda p: -size[p])[:WORST]
    return [*range(FIRST), *sorted(worst)]


def sentence(rows: Sequence[Mapping[str, Any]], shown: Sequence[int]) -> str:
    """Return what is left out, or nothing."""
    if len(shown) == len(rows):
        return ""
    more = f" and the {WORST} others with the largest R-hat" if len(shown) > FIRST else ""
    return f"Shown are the first {FIRST} of {len(rows)} parameters{more}; summary.json holds all."
