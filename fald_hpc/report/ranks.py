"""Rank plots: for each chain a histogram of the ranks of its draws among those of all chains.

Source: Vehtari, Gelman, Simpson, Carpenter, Bürkner, Rank-normalization, folding, and localization: an improved R-hat,
Bayesian Analysis 16 (2021), section 4. Chains of one law have uniform ranks; a tilt shows a shift, a bulge or a dip
another spread. How far a bin may be off by chance is taken from the autocorrelation of the ranks within chains.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fald_hpc.kernels.long_run import long_run_variance
from fald_hpc.report import canvas

BINS = 20
FEWEST_A_BIN = 8
"""Expected draws of a chain in a bin; fewer draws get fewer bins."""

MOST_DRAWS = 4000
"""Draws of a chain that are looked at; of more, evenly spaced ones."""

NEED = 10.0
"""Autocorrelation times of the ranks below which no band is drawn."""

UNIFORM = 0.45
"""Height of the expected number in a chain's row of height 1."""


class Ranks(NamedTuple):
    """Heights float64[s, bins] of a histogram, 1 where ranks are uniform, and their standard error (NaN: not known)."""

    heights: np.ndarray
    error: float


def count(values: np.ndarray) -> Ranks:
    """Return the rank histograms of the draws float64[s, n] of one parameter; ties have an order of their own."""
    values = values[:, :: -(-values.shape[1] // MOST_DRAWS)]
    chains, n = values.shape
    bins = max(2, min(BINS, n // FEWEST_A_BIN))
    flat = np.empty(values.size, np.int64)
    flat[np.argsort(values.ravel(), kind="stable")] = np.arange(values.size)
    ranks = flat.reshape(chains, n)
    counts = np.array([np.bincount(row * bins // values.size, minlength=bins) for row in ranks])
    series = ranks / float(values.size)
    long_run, _ = long_run_variance(series, NEED)
    times = max(1.0, long_run / float(np.mean(np.var(series, axis=1)) or 1.0))
    # relative error of a bin's count by chance, (1 - 1/s) since the chain is a part of what it is compared with
    error = np.sqrt((bins - 1) * times / n * (1.0 - 1.0 / chains))
    return Ranks(counts * bins / n, float(error) if np.isfinite(long_run) else np.nan)


def draw(draws: np.ndarray, names: Sequence[str]) -> Any:
    """Return the figure: a panel a parameter, in it a row a chain.

    Parameters
    ----------
    draws : float64[s, n, d]
        Of the parameters shown.
    names : sequence of str
        Their d names.
    """
    shown = min(draws.shape[0], canvas.MOST_CHAINS)
    rows = [float(shown - 1 - i) for i in range(shown)]
    figure, axes = canvas.grid(len(names), 3, 0.55 + 0.27 * shown)
    for p, (axis, name) in enumerate(zip(axes, names, strict=True)):
        found = count(draws[:, :, p])
        edges = np.linspace(0.0, 1.0, found.heights.shape[1] + 1)
        for i, base in enumerate(rows):
            if np.isfinite(found.error):
                low, high = (min(max(UNIFORM * (1.0 + sign * 2.0 * found.error), 0.0), 0.9) for sign in (-1.0, 1.0))
                axis.axhspan(base + low, base + high, color=canvas.PALE, linewidth=0, zorder=1)
            axis.hlines(base + UNIFORM, 0.0, 1.0, color=canvas.GREY, linewidth=0.4, zorder=2)
            heights = np.minimum(found.heights[i] * UNIFORM, 0.95)
            axis.stairs(base + heights, edges, baseline=None, color=canvas.COLOURS[i], linewidth=1.1, zorder=3)
        axis.set_ylim(-0.05, shown)
        axis.set_yticks([base + UNIFORM for base in rows], [str(i + 1) for i in range(shown)])
        axis.tick_params(axis="y", length=0)
        axis.set_xlim(0.0, 1.0)
        axis.set_xticks([0.0, 0.5, 1.0], ["lowest", "rank", "highest"])
        axis.get_xticklabels()[0].set_ha("left")
        axis.get_xticklabels()[-1].set_ha("right")
        axis.set_title(canvas.plain(name))
        axis.spines["left"].set_visible(False)
    for axis in axes[:: 2 if len(axes) == 4 else 3]:
        axis.set_ylabel("chain", color=canvas.GREY)
    return figure
