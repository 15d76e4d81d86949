"""The drift of the clients as lines of text, from a run's summary."""

from collections.abc import Mapping
from typing import Any

from fald_hpc.drift.numbers import COLUMNS

DAMAGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
"""What comes of reading numbers from a file that somebody has edited."""

HEADS = {
    "distance": "distance",
    "heterogeneity": "heterogeneity",
    "corrected": "corrected",
    "variance_ratio": "variance ratio",
}


def lines(summary: Mapping[str, Any]) -> list[str]:
    """Return the table of the clients that drift most, and what the ranks waited; nothing for runs without a watch."""
    found = summary.get("drift")
    if not isinstance(found, Mapping):
        return []
    try:
        return _lines(found, summary)
    except DAMAGE:
        return ["drift: not what a run writes; finish or repeat the run."]


def _lines(found: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str]:
    of_all = found["all_clients"]
    n = found["clients"]
    head = f"drift of {n} {'client' if n == 1 else 'clients'}, {found['averagings']} averagings, {found['looks']} looks"
    if of_all["distance_in_sd"] is not None:
        head += f"; distance {100.0 * of_all['distance_in_sd']:.3g} % of the posterior's spread"
    shown = [name for name in COLUMNS if name not in found["missing"]]
    result = [head]
    if shown:
        rows = [["client", *(HEADS[name] for name in shown)]]
        if len(found["worst"]) < n:
            rows.append(["all", *(_text(of_all[name]) for name in shown)])
        rows += [[str(row["client"]), *(_text(row[name]) for name in shown)] for row in found["worst"]]
        widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
        for row in rows:
            cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            result.append("  ".join([row[0].ljust(widths[0]), *cells]))
    if of_all["variance_ratio"] is not None and of_all["variance_ratio"] > 1.0:
        result.append(
            "warning: minibatches are noisier with the reference point than without (variance ratio above 1): refresh it "
            "more often (refresh_prob)"
        )
    waited = waiting(summary.get("seconds", {}).get("waiting"))
    return [*result, *([waited] if waited else [])]


def waiting(total: Mapping[str, Any] | None) -> str:
    """Return what the ranks waited as a sentence, empty where nobody could."""
    if not total:
        return ""
    wait, inside = total["waiting"], total["in_messages"]
    parts = f", {total['parts']} parts of the run" if total["parts"] > 1 else ""
    return (
        f"waiting of {total['ranks']} ranks: {wait['least']:.3g} to {wait['largest']:.3g} s, {wait['mean']:.3g} s on average, "
        f"of {inside['mean']:.3g} s in messages{parts}; least on rank {total['slowest_rank']}, for which the others wait"
    )


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
