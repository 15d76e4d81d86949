"""Figures of a study as PNG and PDF: time, efficiency, and where the time goes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fald_hpc.scaling.table import PARTS, Row

BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
"""Palette of Okabe and Ito: distinguishable with any colour vision."""

GREY = "#666666"

STYLE = {
    "font.size": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "lines.linewidth": 1.2,
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
}


def draw(folder: Path, table: Sequence[Row], kind: str, model: dict[int, float] | None = None) -> list[Path]:
    """Write ``time``, ``efficiency`` and ``shares`` into a folder and return the files.

    Parameters
    ----------
    table : sequence of Row
        Of :func:`fald_hpc.scaling.table.rows`.
    kind : str
        "strong" or "weak, ... fixed".
    model : dict, optional
        Predicted seconds of a step by number of ranks.
    """
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figures = {"time": _time(table, kind, model), "efficiency": _efficiency(table, kind, model)}
        if any(row.shares["waiting"] is not None for row in table):
            figures["shares"] = _shares(table)
        return save(folder, figures)


def save(folder: Path, figures: dict[str, Any]) -> list[Path]:
    """Write figures as PNG and PDF without time stamps."""
    written = []
    for name, figure in figures.items():
        for ending, metadata in (("png", {"Software": None}), ("pdf", {"CreationDate": None, "Creator": None})):
            written.append(folder / f"{name}.{ending}")
            figure.savefig(written[-1], metadata=metadata)
    return written


def axes(width: float = 3.6, height: float = 2.7) -> tuple[Any, Any]:
    """Return a figure for one column of a page, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def rank_axis(axis: Any, ranks: Sequence[int], label: str = "ranks") -> None:
    """Make the horizontal axis logarithmic, with the measured numbers of ranks as ticks where they are few."""
    axis.set_xscale("log", base=2)
    axis.set_xlabel(label)
    if len(ranks) <= 10:
        axis.set_xticks(list(ranks), [str(n) for n in ranks])
        axis.minorticks_off()


def _good(table: Sequence[Row]) -> list[Row]:
    return [row for row in table if row.efficiency is not None]


def _time(table: Sequence[Row], kind: str, model: dict[int, float] | None) -> Any:
    figure, axis = axes()
    ranks = [row.ranks for row in table]
    first = table[0]
    ideal = [first.seconds * (1.0 if kind.startswith("weak") else first.ranks / n) * 1e6 for n in ranks]
    axis.plot(ranks, ideal, color=GREY, linestyle=":", label="ideal")
    if model:
        shown = sorted(model)
        axis.plot(shown, [1e6 * model[n] for n in shown], color=VERMILION, linestyle="--", marker="x", label="model")
    _points(axis, table, lambda row: (1e6 * row.seconds, 1e6 * row.low, 1e6 * row.high))
    axis.set_yscale("log")
    values = [1e6 * v for row in table for v in (row.low, row.high)] + ideal
    if max(values) < 50.0 * min(values):
        from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
        axis.yaxis.set_major_formatter(ScalarFormatter())
        axis.yaxis.set_minor_formatter(NullFormatter())
    rank_axis(axis, ranks)
    axis.set_ylabel("µs a step of all chains")
    _legend(figure, axis)
    return figure


def _points(axis: Any, table: Sequence[Row], values: Any) -> None:
    """Draw rows with their spread; those without a result are hollow."""
    flagged = [row for row in table if row.efficiency is None]
    for some, face, label in ((_good(table), BLUE, "measured"), (flagged, "white", "measured, flagged")):
        if not some:
            continue
        middle, low, high = zip(*(values(row) for row in some), strict=True)
        errors = [[m - a for m, a in zip(middle, low, strict=True)], [b - m for m, b in zip(middle, high, strict=True)]]
        axis.errorbar(
            [row.ranks for row in some], middle, errors, color=BLUE, marker="o", markersize=4.5, markerfacecolor=face,
            linestyle="-" if face == BLUE else "none", capsize=2.0, elinewidth=0.8, label=label,
        )  # fmt: skip


def _legend(figure: Any, axis: Any) -> None:
    """Put the legend above the axes, where no point can lie under it."""
    handles, labels = axis.get_legend_handles_labels()
    columns = 4 if sum(map(len, labels)) < 35 else 2
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, columnspacing=1.0)


def _efficiency(table: Sequence[Row], kind: str, model: dict[int, float] | None) -> Any:
    figure, axis = axes()
    first, weak = table[0], kind.startswith("weak")

    def efficiency(ranks: int, seconds: float, base: float) -> float:
        return base / seconds * (1.0 if weak else first.ranks / ranks)

    axis.axhline(1.0, color=GREY, linestyle=":", label="ideal")
    if model and first.ranks in model:
        shown = sorted(n for n in model if n >= first.ranks)
        values = [efficiency(n, model[n], model[first.ranks]) for n in shown]
        axis.plot(shown, values, color=VERMILION, linestyle="--", marker="x", label="model")
    _points(
        axis, table,
        lambda row: tuple(efficiency(row.ranks, seconds, first.seconds) for seconds in (row.seconds, row.high, row.low)),
    )  # fmt: skip
    axis.set_ylim(0.0, max(1.15, axis.get_ylim()[1]))
    rank_axis(axis, [row.ranks for row in table])
    axis.set_ylabel("efficiency")
    _legend(figure, axis)
    return figure


def _shares(table: Sequence[Row]) -> Any:
    figure, axis = axes(height=3.0)
    shown = [row for row in table if row.shares["waiting"] is not None]
    names = ("local steps", *PARTS)
    colours, hatches = (SKY, ORANGE, GREEN, VERMILION), ("", "//", "..", "xx")
    parts = {name: [100.0 * (row.shares[name] or 0.0) for row in shown] for name in PARTS}
    parts["local steps"] = [100.0 - sum(parts[name][i] for name in PARTS) for i in range(len(shown))]
    bottom = [0.0] * len(shown)
    places = list(range(len(shown)))
    for name, colour, hatch in zip(names, colours, hatches, strict=True):
        axis.bar(places, parts[name], 0.6, bottom, color=colour, hatch=hatch, edgecolor="white", linewidth=0.5, label=name)
        bottom = [a + b for a, b in zip(bottom, parts[name], strict=True)]
    axis.set_xticks(places, [str(row.ranks) for row in shown])
    axis.set_xlabel("ranks")
    axis.set_ylabel("share of the sampling time, %")
    axis.set_ylim(0.0, 100.0)
    _legend(figure, axis)
    return figure
