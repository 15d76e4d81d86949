"""The table of a study: medians over repeats, speed-up and efficiency, and flags where a number is not a result."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

SUPER_LINEAR = 0.03
"""Efficiency above 1 by more than this and by more than the spread of the repeats is flagged."""

BUSY = 0.5
"""Other load on the machine, in cores beyond those free, from which a point is flagged."""


@dataclass(frozen=True)
class Row:
    """A number of ranks.

    Attributes
    ----------
    seconds, low, high : float
        Seconds of an iteration of all chains: median, least and largest over the repeats.
    speed_up, efficiency : float or None
        Against the row with fewest ranks; None where a flag says that it would be none.
    shares : dict
        Parts of the sampling loop, as shares of its time; None where they were not measured.
    size : float
        Bytes that a rank gives to messages in an iteration.
    """

    ranks: int
    repeats: int
    seconds: float
    low: float
    high: float
    speed_up: float | None
    efficiency: float | None
    shares: dict[str, float | None]
    size: float
    flags: list[str] = field(default_factory=list)


PARTS = ("averaging", "refresh", "waiting")


def rows(records: Sequence[dict[str, Any]]) -> list[Row]:
    """Return the rows of a study in the order of ranks."""
    by_ranks: dict[int, list[dict[str, Any]]] = {}
    for record in records:
        by_ranks.setdefault(record["ranks"], []).append(record)
    weak = records[0]["study"]["kind"].startswith("weak")
    base_ranks = min(by_ranks)
    base = _times(by_ranks[base_ranks])
    found = []
    for ranks in sorted(by_ranks):
        some = by_ranks[ranks]
        times = _times(some)
        gain = median(base) / median(times)
        efficiency = gain if weak else gain * base_ranks / ranks
        speed_up = efficiency * ranks / base_ranks if weak else gain
        spread = (max(times) - min(times)) / median(times) + (max(base) - min(base)) / median(base)
        flags, void = _flags(some, ranks)
        if not void and ranks > base_ranks and efficiency > 1.0 + max(SUPER_LINEAR, spread):
            flags.append("super-linear: look for cache effects, a disturbed first row or unequal placement")
            void = True
        found.append(
            Row(
                ranks, len(some), median(times), min(times), max(times),
                None if void else speed_up, None if void else efficiency, shares(some),
                median(r["bytes_per_rank"] / r["steps"] for r in some), flags,
            )
        )  # fmt: skip
    return found


def _times(records: Sequence[dict[str, Any]]) -> list[float]:
    return [record["seconds_per_step"] for record in records]


def _flags(records: Sequence[dict[str, Any]], ranks: int) -> tuple[list[str], bool]:
    """Return what a reader must know, and whether speed-up and efficiency mean nothing."""
    flags, void = [], False
    crowded = oversubscribed(records[0]["hosts"], records[0]["cores"])
    if crowded:
        flags.append(f"oversubscribed: {crowded}")
        void = True
    if records[0]["delay_ms"] > 0.0:
        flags.append(f"emulated network: {records[0]['delay_ms']:g} ms a message")
    free = len({core for cores in records[0]["cores"] for core in cores})
    busy = max(r["load_before"] for r in records)
    if len(set(records[0]["hosts"])) == 1 and busy > free - ranks + BUSY:
        flags.append(f"others were using this machine (load {busy:.1f} before the runs)")
    return flags, void


def oversubscribed(hosts: Sequence[str], cores: Sequence[Sequence[int]]) -> str:
    """Return a sentence where a host has more ranks than cores for them, else an empty one."""
    for host, count in Counter(hosts).items():
        there = {core for name, some in zip(hosts, cores, strict=True) if name == host for core in some}
        if count > len(there):
            return f"{count} ranks on the {len(there)} cores that they may use on {host}"
    return ""


def shares(records: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """Return medians over repeats of the parts of the loop's time (see :mod:`fald_hpc.scaling.trace`)."""
    traces = [record["trace"] for record in records if record.get("trace")]
    result: dict[str, float | None] = dict.fromkeys(PARTS)
    if traces:
        result["waiting"] = median(t["waiting"] / t["span"] for t in traces)
        result["averaging"] = median((t["averaging"] or 0.0) / t["span"] for t in traces)
        if all(t["averaging"] is None for t in traces):
            result["averaging"] = median(t["messages"] / t["span"] for t in traces)
        known = [t for t in traces if t["refresh work"] is not None]
        if known:
            result["refresh"] = median((t["refresh messages"] + t["refresh work"]) / t["span"] for t in known)
    result["statistics"] = median(
        r["seconds"].get("write", 0.0) / (r["seconds"].get("write", 0.0) + r["seconds"]["sample"]) for r in records
    )
    return result


HEADER = (
    "ranks", "us a step", "spread", "speed-up", "efficiency", "averaging", "refresh", "waiting", "statistics",
    "bytes a step",
)  # fmt: skip


def text(table: Sequence[Row], kind: str) -> str:
    """Return the table as plain text, flags below."""
    lines = [list(HEADER)]
    for row in table:
        lines.append(
            [
                f"{row.ranks}",
                f"{1e6 * row.seconds:.4g}",
                f"{1e6 * row.low:.4g}-{1e6 * row.high:.4g}",
                _number(row.speed_up, ".2f"),
                _number(row.efficiency, ".2f"),
                *(_number(row.shares[name], ".1%") for name in (*PARTS, "statistics")),
                f"{row.size:.0f}",
            ]
        )
    widths = [max(len(line[c]) for line in lines) for c in range(len(HEADER))]
    shown = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    notes = [f"{row.ranks} ranks: {flag}" for row in table for flag in row.flags]
    first = table[0]
    about = [f"{kind} scaling; median of {first.repeats} repeats, spread: least and largest; speed-up against {first.ranks}"]
    return "\n".join([*about, *shown, *notes])


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
