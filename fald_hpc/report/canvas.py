"""The look of all figures, and figures as SVG text that can stand beside others in one page."""

import re
from collections.abc import Sequence
from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#7F7F7F")
"""Palette of Okabe and Ito: distinguishable with any colour vision."""

STYLES: tuple[Any, ...] = ("-", "--", "-.", (0, (2.5, 1.0)))
"""Line styles that go along with the colours, for print without colour."""

MOST_CHAINS = len(COLOURS)
"""Chains drawn one by one; of more, the first ones."""

WIDTH = 7.6
"""Width of a figure in inches: the width of the page's text."""

GREY, PALE = "#666666", "#D9D9D9"

_STYLE = {
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.linewidth": 0.6,
    "axes.formatter.limits": (-4, 5),
    "axes.formatter.useoffset": False,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    "svg.fonttype": "path",
    "path.simplify_threshold": 0.3,
}


def style() -> Any:
    """Return the context in which figures are made and saved."""
    import matplotlib

    return matplotlib.rc_context(_STYLE)


def grid(panels: int, columns: int, height: float, width: float = WIDTH, **options: Any) -> tuple[Any, list[Any]]:
    """Return a figure and its axes, row by row; ``height`` is that of a row in inches."""
    from matplotlib.figure import Figure

    columns = 2 if panels == 4 else min(columns, panels)
    rows = -(-panels // columns)
    figure = Figure(figsize=(width, rows * height + 0.3), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options).ravel()
    for spare in axes[panels:]:
        spare.remove()
    return figure, list(axes[:panels])


def plain(text: str, most: int = 40) -> str:
    """Return a name as it is, without matplotlib reading formulas in it, and cut where it is too long."""
    short = text if len(text) <= most else text[: most - 3] + "..."
    return short.replace("$", r"\$")


def legend(figure: Any, labels: Sequence[str], dashed: bool = True) -> None:
    """Put a legend of the chains above all panels."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=COLOURS[i], linestyle=STYLES[i % len(STYLES)] if dashed else "-", label=label)
        for i, label in enumerate(labels)
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=MOST_CHAINS, fontsize=7.5, handlelength=2.2)


def svg(figure: Any, name: str) -> str:
    """Return a figure as an SVG element whose ids start with ``name``: the same text for the same figure."""
    import io

    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", text)
