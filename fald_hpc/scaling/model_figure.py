"""The figure of a prediction: time and its parts over the number of ranks."""

from collections.abc import Sequence
from pathlib import Path

from fald_hpc.scaling import figures
from fald_hpc.scaling.forecast import Line


def draw(folder: Path, lines: Sequence[Line], weak: bool) -> list[Path]:
    """Write ``model.png`` and ``model.pdf`` into a folder and return the files."""
    import matplotlib

    with matplotlib.rc_context(figures.STYLE):
        figure, axis = figures.axes(4.2, 3.0)
        ranks = [line.prediction.ranks for line in lines]
        first = lines[0].prediction
        ideal = [1e6 * first.total * (1.0 if weak else first.ranks / n) for n in ranks]
        axis.plot(ranks, ideal, color=figures.GREY, linestyle=":", label="ideal")
        parts = (
            ("total", lambda one: one.total, figures.BLUE, "-"),
            ("computing", lambda one: one.computation, figures.SKY, "--"),
            ("waiting", lambda one: one.waiting, figures.VERMILION, "-."),
            ("network", lambda one: one.network, figures.GREEN, (0, (1, 1))),
        )
        for name, part, colour, style in parts:
            values = [1e6 * part(line.prediction) for line in lines]
            if max(values) > 0.0:
                axis.plot(ranks, [v if v > 0.0 else None for v in values], color=colour, linestyle=style, label=name)
        simulated = [(line.prediction.ranks, 1e6 * line.simulated) for line in lines if line.simulated is not None]
        if simulated:
            axis.plot(*zip(*simulated, strict=True), color="black", marker="o", markersize=3.5, markerfacecolor="none",
                      linestyle="none", label="total, simulated")  # fmt: skip
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("ranks")
        axis.set_ylabel("µs a step of all chains")
        figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=3, columnspacing=1.0)
        return figures.save(folder, {"model": figure})
