"""The time that the ranks of a run wait for each other, by the clock of the compiled messages.

The shortest message of a rank is taken for what a message itself costs; what the others take longer is waiting, for ranks
that are slower or for the network. The rank that waits least is the one that the others wait for. Times are no results:
they are kept in the manifest, a record for each part of a run that was stopped and resumed.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fald_hpc.comm import Serial
from fald_hpc.kernels import _collectives


def start() -> None:
    """Start the clock of this rank."""
    _collectives.start_clock()


def measure(communicator: Serial, first: int, k: int) -> dict[str, Any] | None:
    """Return the record of iterations first..k-1 since :func:`start`, on rank 0; all ranks call it.

    None elsewhere, and where there were no messages: one rank for each group of chains, or no compiled loop.
    """
    parts = communicator.gather(np.array(_collectives.read_clock(), np.float64))
    return None if parts is None else record(np.array(parts), first, k)


def record(clocks: np.ndarray, first: int, k: int) -> dict[str, Any] | None:
    """Return the record from the clocks of all ranks: float64[ranks, 3] of messages, seconds in them, the shortest one."""
    messages, inside, shortest = clocks.T
    if len(clocks) == 1 or not messages.any():
        return None
    waiting = np.maximum(inside - messages * shortest, 0.0)
    return {
        "steps": [first, k],
        "ranks": len(clocks),
        "messages": int(messages.max()),
        "in_messages": _summary(inside),
        "waiting": _summary(waiting),
        "slowest_rank": int(np.argmin(waiting)),
    }


def earlier(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the records in the manifest of a run that is continued; none where somebody has edited them."""
    drift = manifest.get("drift")
    parts = drift.get("waiting") if isinstance(drift, dict) else None
    try:
        total(parts or [])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return []
    return parts or []


def _summary(seconds: np.ndarray) -> dict[str, float]:
    return {
        "least": float(seconds.min()),
        "mean": math.fsum(seconds) / len(seconds),
        "largest": float(seconds.max()),
    }


def total(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the sums over the parts of a run, and the slowest rank of the last one; None without any."""
    if not parts:
        return None
    last = parts[-1]
    return {
        "parts": len(parts),
        "ranks": last["ranks"],
        **{
            kind: {key: math.fsum(part[kind][key] for part in parts) for key in ("least", "mean", "largest")}
            for kind in ("in_messages", "waiting")
        },
        "slowest_rank": last["slowest_rank"],
    }
