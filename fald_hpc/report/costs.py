"""What a run cost: wall time by phase, messages and bytes, and effective samples for them."""

from collections.abc import Mapping
from typing import Any

from fald_hpc.kernels.exact_sum import BINS
from fald_hpc.kernels.state import FLAGS
from fald_hpc.report import canvas

_PHASES = {
    "setup": "set-up: data, mode, step size",
    "compile": "compile",
    "start": "start: first states and gradients",
    "sample": "sampling, messages included",
    "drift": "looks of the drift watch",
    "write": "writing",
}


def draw(seconds: Mapping[str, Any]) -> Any:
    """Return the figure: a bar a phase, with its seconds."""
    phases = {k: float(v) for k, v in seconds.items() if k != "total" and isinstance(v, (int, float))}
    order = list(_PHASES)
    phases = dict(sorted(phases.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))
    figure, (axis,) = canvas.grid(1, 1, 0.22 * len(phases) + 0.1)
    labels = [_PHASES.get(name, name) for name in phases]
    bars = axis.barh(labels, list(phases.values()), color=canvas.COLOURS[0], height=0.62)
    total = sum(phases.values()) or 1.0
    axis.bar_label(bars, [f"{v:.3g} s ({100 * v / total:.0f} %)" for v in phases.values()], padding=3, fontsize=7.5)
    axis.invert_yaxis()
    axis.set_xlim(0.0, 1.2 * max(phases.values(), default=1.0))
    axis.set_xticks([])
    axis.spines[["left", "bottom"]].set_visible(False)
    axis.tick_params(axis="y", length=0, labelsize=8)
    return figure


def message_bytes(manifest: Mapping[str, Any]) -> int | None:
    """Return the bytes of a message that carries one vector: exact sums of d numbers and flags for each chain in it."""
    try:
        groups = manifest["layout"]["chain_groups"] if manifest["schedule"] == "shared" else manifest["chains"]
        batches = manifest.get("chain_batches", {}).get("used", 1)
        chains = -(-manifest["chains"] // (groups * batches))
        return int(8 * chains * (BINS * len(manifest["parameters"]) + FLAGS))
    except (KeyError, TypeError, ZeroDivisionError):
        return None


def facts(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what there is to say about messages and effective samples, as (name, value)."""
    messages = manifest.get("messages") or {}
    found = [("Averagings, refreshes", f"{summary['communications']:,}, {summary['refreshes']:,}")]
    if "made" in messages:
        repeated = messages.get("repeated", 0)
        more = f", {repeated:,} of them repeated with a wider window" if repeated else ""
        found.append(("Messages (MPI_Allreduce)", f"{messages['made']:,}{more}"))
        one = message_bytes(manifest)
        if one is not None:
            found.append(("Bytes of a rank", f"{one:,} a vector, {size(one * messages['made'])} or more in all"))
        if manifest.get("layout", {}).get("ranks") == 1:
            found.append(("", "One process: these messages were sums in its memory."))
    if messages.get("rows_touched"):
        found.append(("Rows of data touched", f"{messages['rows_touched']:,}"))
    least = [row for row in summary["parameters"] if row["ess"] is not None]
    if least:
        row = min(least, key=lambda row: row["ess"])
        speed = summary.get("seconds", {}).get("ess_per_second", {}).get(row["name"])
        per = [f"{row['ess_per_communication']:.3g} a communication"] if row.get("ess_per_communication") else []
        per += [f"{speed:.3g} a second"] if speed else []
        kind = "Smallest" if len(least) == len(summary["parameters"]) else "Smallest known"
        found.append((f"{kind} ESS ({row['name']})", ", ".join([f"{row['ess']:,.0f}", *per])))
    return found


def size(n: float) -> str:
    """Return a number of bytes in the unit that fits."""
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000.0:
            return f"{n:.3g} {unit}"
        n /= 1000.0
    return f"{n:.3g} TB"
