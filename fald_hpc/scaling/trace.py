"""Where the time of a traced run went: local work, waiting for the slowest rank, and the messages themselves.

A message cannot end before its last rank has entered it, and that rank waits for nobody. So the shortest stay of any
rank is the message, and what the others stayed longer is waiting. Only durations are compared between ranks, so hosts
need no common clock.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fald_hpc.scaling.schedule import AVERAGE, Events

FEWEST = 20
"""Messages below which nothing is said."""


def shares(times: Sequence[np.ndarray], events: Events | None) -> dict[str, float | None] | None:
    """Return seconds, summed over the trace: averages over ranks.

    Parameters
    ----------
    times : sequence of float64[e + 1, 2]
        For each rank: when it entered and left the message before the first event, and those of the events.
    events : Events or None
        What the messages were, where they are known; else averaging and refresh are not told apart.

    Returns
    -------
    dict or None
        ``span``, ``averaging`` and ``refresh messages`` (seconds of messages), ``waiting``, ``refresh work``; None if
        there are too few messages or ranks recorded different numbers of them.
    """
    n = len(times[0]) - 1
    if n < FEWEST or any(len(part) != n + 1 for part in times):
        return None
    table = np.array(times)
    stay = table[:, 1:, 1] - table[:, 1:, 0]
    message = stay.min(axis=0)
    result: dict[str, float | None] = {
        "span": float((table[:, -1, 1] - table[:, 0, 1]).mean()),
        "messages": float(message.sum()),
        "waiting": float((stay - message).sum(axis=1).mean()),
        "averaging": None,
        "refresh messages": None,
        "refresh work": None,
    }
    if events is None or len(events.kind) < n:
        return result
    part = Events(*(column[:n] for column in events))
    averaging = part.kind == AVERAGE
    result["averaging"] = float(message[averaging].sum())
    result["refresh messages"] = float(message[~averaging].sum())
    fits = [work_costs(work, part) for work in table[:, 1:, 0] - table[:, :-1, 1]]
    result["refresh work"] = float(np.mean([fit[1] for fit in fits]) * part.refreshes.sum())
    return result


def work_costs(work: np.ndarray, events: Events) -> tuple[float, float, float]:
    """Return seconds of a step, of a refresh and of a rank's own part of a message, from the gaps between messages.

    Least squares without negative costs; gaps far above their fit (interruptions, ends of segments) are left out.
    """
    from scipy.optimize import nnls

    table = np.column_stack([events.steps, events.refreshes, np.ones(len(work))]).astype(float)
    used = np.ones(len(work), bool)
    found = np.zeros(3)
    for _ in range(4):
        found, _ = nnls(table[used], work[used])
        rest = work - table @ found
        spread = 1.4826 * float(np.median(np.abs(rest[used] - np.median(rest[used]))))
        used = rest <= 6.0 * max(spread, 1e-9)
    step, refresh, message = found.tolist()
    return step, refresh, message


def noise(work: np.ndarray, events: Events, boundaries: int) -> tuple[float, float, float]:
    """Return the random part of a rank's work: jitter of a step, and rate and mean length of interruptions.

    Parameters
    ----------
    work : float64[e]
        Seconds between messages on one rank.
    events : Events
        Of the same messages.
    boundaries : int
        Gaps that hold an end of a segment, where Python has the word: so many of the longest are left out.

    Returns
    -------
    jitter : float
        Standard deviation of a step as a share of its mean; steps are taken as independent.
    rate, seconds : float
        Interruptions a second, and their mean length: of gaps above six spreads.
    """
    step, refresh, message = work_costs(work, events)
    if step <= 0.0:
        return 0.0, 0.0, 0.0
    rest = work - (step * events.steps + refresh * events.refreshes + message)
    order = np.argsort(rest)
    kept = order[: max(1, len(order) - boundaries)]
    scaled = rest[kept] / np.sqrt(np.maximum(events.steps[kept], 1))
    spread = 1.4826 * float(np.median(np.abs(scaled - np.median(scaled))))
    far = rest[kept][scaled > 6.0 * max(spread, 1e-9)]
    busy = float(work[kept].sum() - far.sum())
    if far.size == 0 or busy <= 0.0:
        return spread / step, 0.0, 0.0
    return spread / step, far.size / busy, float(far.mean())


def finite(value: float | None) -> float | None:
    """Return a number for JSON."""
    return value if value is not None and math.isfinite(value) else None


def describe(times: Sequence[np.ndarray], events: Events | None, boundaries: int) -> dict[str, Any] | None:
    """Return shares and noise of a trace as JSON."""
    found = shares(times, events)
    if found is None:
        return None
    result: dict[str, Any] = {name: finite(value) for name, value in found.items()}
    if events is not None:
        n = len(times[0]) - 1
        part = Events(*(column[:n] for column in events))
        parts = [noise(one[1:, 0] - one[:-1, 1], part, boundaries) for one in times]
        costs = [work_costs(one[1:, 0] - one[:-1, 1], part) for one in times]
        jitter, rate, seconds = np.mean(parts, axis=0).tolist()
        result["noise"] = {"step_jitter": jitter, "detour_rate": rate, "detour_seconds": seconds}
        result["work"] = [dict(zip(("step", "refresh", "message"), one, strict=True)) for one in costs]
    return result
