"""Marginal posteriors: a histogram of all draws, and a kernel density estimate of each chain."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fald_hpc.report import canvas

BINS = 40
GRID = 400
FEWEST_EFFECTIVE = 100
"""Effective draws that a chain is given at least: a wider kernel would hide the shape of what it smooths."""


def density(values: np.ndarray, low: float, high: float, effective: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a Gaussian kernel density estimate on a grid: float64[g] points, float64[g] density.

    The bandwidth is Silverman's, 0.9 min(sd, IQR/1.34) n^(-1/5), with the *effective* number of draws as n, so that a
    chain that mixes slowly does not show bumps that are noise.
    """
    edges = np.linspace(low, high, GRID + 1)
    middle = 0.5 * (edges[1:] + edges[:-1])
    lower, upper = np.percentile(values, [25.0, 75.0])
    scale = min(float(values.std()), float(upper - lower) / 1.34) or float(values.std())
    if not scale > 0.0:
        return middle, np.zeros(GRID)
    width = max(0.9 * scale * max(effective, 2.0) ** -0.2, 2.0 * (edges[1] - edges[0]))
    counts = np.histogram(values, edges)[0] / (values.size * (edges[1] - edges[0]))
    away = np.arange(-GRID, GRID + 1) * (edges[1] - edges[0]) / width
    kernel = np.exp(-0.5 * away * away)
    smooth = np.convolve(counts, kernel / kernel.sum(), mode="valid" if counts.size > kernel.size else "same")
    return middle, smooth[(smooth.size - GRID) // 2 :][:GRID]


def draw(draws: np.ndarray, names: Sequence[str], ess: Sequence[float | None]) -> Any:
    """Return the figure.

    Parameters
    ----------
    draws : float64[s, n, d]
        Of the parameters shown.
    names : sequence of str
        Their d names.
    ess : sequence of float or None
        Effective sample sizes over all chains.
    """
    chains, n, _ = draws.shape
    figure, axes = canvas.grid(len(names), 3, 1.7)
    for p, (axis, name) in enumerate(zip(axes, names, strict=True)):
        values = draws[:, :, p]
        axis.set_title(canvas.plain(name))
        axis.set_yticks([])
        axis.spines["left"].set_visible(False)
        low, high = float(values.min()), float(values.max())
        if low == high:
            axis.text(0.5, 0.5, f"always {low:.6g}", ha="center", transform=axis.transAxes, color=canvas.GREY)
            axis.set_xticks([])
            continue
        axis.hist(values.ravel(), BINS, density=True, histtype="stepfilled", color=canvas.PALE)
        effective = min(max((ess[p] or 0.0) / chains, FEWEST_EFFECTIVE), n)
        edge = 0.05 * (high - low)
        for i in range(min(chains, canvas.MOST_CHAINS)):
            points, heights = density(values[i], low - edge, high + edge, effective)
            look = {"color": canvas.COLOURS[i], "linestyle": canvas.STYLES[i % len(canvas.STYLES)]}
            axis.plot(points, heights, linewidth=1.0 if chains <= 4 else 0.8, **look)
        axis.set_ylim(bottom=0.0)
    canvas.legend(figure, [f"chain {i + 1}" for i in range(min(chains, canvas.MOST_CHAINS))])
    return figure
