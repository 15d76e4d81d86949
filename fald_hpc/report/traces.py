"""Traces: the draws of each chain in time."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fald_hpc.report import canvas

POINTS = 400
"""Draws of a chain that are drawn at most, evenly spaced."""


def draw(draws: np.ndarray, names: Sequence[str], steps: tuple[int, int]) -> Any:
    """Return the figure.

    Parameters
    ----------
    draws : float64[s, n, d]
        Of the parameters shown.
    names : sequence of str
        Their d names.
    steps : (int, int)
        First and last iteration that was recorded.
    """
    chains, n, _ = draws.shape
    stride = -(-n // POINTS)
    time = np.linspace(*steps, n)[::stride]
    figure, axes = canvas.grid(len(names), 2, 1.35, sharex=True)
    for p, (axis, name) in enumerate(zip(axes, names, strict=True)):
        for i in range(min(chains, canvas.MOST_CHAINS)):
            axis.plot(time, draws[i, ::stride, p], color=canvas.COLOURS[i], linewidth=0.5, alpha=0.8)
        axis.set_title(canvas.plain(name))
        axis.margins(x=0.01)
        axis.locator_params(axis="y", nbins=4)
        axis.locator_params(axis="x", nbins=6)
    last = (len(axes) - 1) // 2 * 2
    for axis in axes[last:]:
        axis.set_xlabel("iteration")
        axis.tick_params(labelbottom=True)
    canvas.legend(figure, [f"chain {i + 1}" for i in range(min(chains, canvas.MOST_CHAINS))], dashed=False)
    return figure


def stride(draws: np.ndarray) -> int:
    """Return the number of draws of which one is drawn."""
    return -(-draws.shape[1] // POINTS)
