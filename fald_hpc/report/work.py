"""ESS and MCSE against work: the diagnostics of ever longer parts of the run, from its beginning."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fald_hpc.kernels import moments
from fald_hpc.metrics import diagnostics
from fald_hpc.report import canvas

PARTS = 20
"""Parts of the run after which the diagnostics are taken."""

FEW = 5
"""Parameters that get a colour and a label each; of more, those with the smallest and the largest ESS."""


class Growth(NamedTuple):
    """Diagnostics after each part: float64[t] shares of the recorded run, float64[t, d] ESS and MCSE (NaN: too few)."""

    share: np.ndarray
    ess: np.ndarray
    mcse: np.ndarray


def growth(draws: np.ndarray) -> Growth:
    """Return ESS and MCSE of the first 1/20, 2/20, ... of the draws float64[s, n, d]."""
    chains, n, d = draws.shape
    parts = min(PARTS, n)
    acc = moments.new(chains, d, moments.n_batches(chains, d), False)
    ends = [n * (t + 1) // parts for t in range(parts)]
    ess, mcse, begun = [], [], 0
    for end in ends:
        block = np.ascontiguousarray(draws[:, begun:end])
        moments.absorb(acc, block, np.full(chains, end - begun))
        error, effective = diagnostics.mcse_and_ess(acc)
        ess.append(effective)
        mcse.append(error)
        begun = end
    return Growth(np.array(ends) / n, np.array(ess), np.array(mcse))


def draw(found: Growth, names: Sequence[str], sds: Sequence[float | None], steps: int, communications: float) -> Any:
    """Return the figure: ESS on the left, MCSE in posterior sds on the right.

    Parameters
    ----------
    found : Growth
        Of the parameters shown.
    names, sds : sequences
        Their names and posterior standard deviations.
    steps : int
        Iterations after burn-in.
    communications : float
        Averagings of a chain in them.
    """
    figure, (left, right) = canvas.grid(2, 2, 2.9)
    x = found.share * steps
    relative = found.mcse / np.array([sd or np.nan for sd in sds])
    final = found.ess[-1]
    every = list(range(len(names)))
    known = [p for p in every if np.isfinite(final[p])]
    marked = every if len(every) <= FEW else [min(known, key=lambda p: final[p]), max(known, key=lambda p: final[p])]
    for axis, values in ((left, found.ess), (right, relative)):
        for p in every:
            if p not in marked:
                axis.plot(x, values[:, p], color=canvas.PALE, linewidth=0.9)
        for i, p in enumerate(marked):
            look = {"color": canvas.COLOURS[i], "linestyle": canvas.STYLES[i % len(canvas.STYLES)]}
            axis.plot(x, values[:, p], label=canvas.plain(names[p], 20), **look)
        axis.set_xlabel("iterations of a chain after burn-in")
        axis.set_xlim(left=0.0, right=steps * 1.01)
        axis.set_ylim(bottom=0.0)
        axis.locator_params(axis="x", nbins=5)
        if communications > 0.0:
            _second_axis(axis, communications / steps)
    left.set_ylabel("effective sample size, all chains")
    right.set_ylabel("MCSE / posterior sd")
    last = np.nanmax(relative[-1][marked])
    ideal = last * np.sqrt(1.0 / found.share)
    right.plot(x, ideal, color=canvas.GREY, linestyle=(0, (1, 2)), linewidth=0.9, label="1/√iterations")
    top_value = np.nanmax(relative)
    right.set_ylim(0.0, 1.1 * top_value)
    left.legend(loc="upper left", fontsize=7.0)
    right.legend(loc="upper right", fontsize=7.0)
    return figure


def _second_axis(axis: Any, rate: float) -> None:
    """Write communications, ``rate`` an iteration, along the top of a panel."""
    top = axis.secondary_xaxis("top", functions=(lambda v: v * rate, lambda v: v / rate))
    top.set_xlabel("communications of a chain after burn-in")
    top.locator_params(axis="x", nbins=5)
    top.spines["top"].set_visible(True)
