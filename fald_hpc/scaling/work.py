"""What every rank hosts at a number of ranks, grouped by equal work."""

from dataclasses import dataclass

import numpy as np

from fald_hpc import layout as layouts
from fald_hpc.chains import batch_sizes
from fald_hpc.kernels.exact_sum import BINS
from fald_hpc.kernels.state import FLAGS
from fald_hpc.scaling.costs import Work
from fald_hpc.study import Study


@dataclass(frozen=True)
class Slow:
    """A share of ranks whose cores are slower by a factor."""

    share: float = 0.0
    factor: float = 1.0


@dataclass(frozen=True)
class Point:
    """A number of ranks and what they host.

    Attributes
    ----------
    ranks : int
        All ranks.
    together : int
        Ranks that share a message: those of one chain group.
    work : Work
        Of the ranks of the first chain group.
    vector_bytes : int
        Size of a message with one vector for each of its chains.
    streams : int
        Schedules that follow one another on a rank: 1 with shared coins, else its chains.
    """

    ranks: int
    together: int
    work: Work
    vector_bytes: int
    streams: int


def point(study: Study, ranks: int, fixed: str | None, slow: Slow | None = None, crowding: float = 1.0) -> Point:
    """Return the work at a number of ranks.

    Parameters
    ----------
    study : Study
        Of the configuration itself.
    fixed : str or None
        How the problem grows (:mod:`fald_hpc.scaling.grow`); None for a strong study.
    slow : Slow, optional
        Slow ranks: the last ones of each group of equal work, rounded up.
    crowding : float
        Ranks that share a core.

    Raises
    ------
    UserError
        If no layout exists.
    """
    asked, rows = study.request, study.federation.n_rows
    batch = batch_sizes(rows, study.sampler.batch_size)
    b = len(rows)
    if fixed is None:
        layout = layouts.choose(ranks, b, asked.chains, study.layout.chain_groups if study.layout.chain_groups > 1 else "auto")
        starts = np.array([layout.clients(r).start for r in range(layout.client_groups)] + [b])
        sums = [np.concatenate([[0], np.cumsum(values)])[starts] for values in (rows, batch)]
        table = np.column_stack([np.diff(starts), *(np.diff(one) for one in sums)]).astype(float)
        together, chains = layout.client_groups, len(layout.chains(0))
    else:
        together = 1 if fixed == "chains" else ranks
        shared_rows = float(rows.sum()) / ranks if fixed == "clients" else float(rows.sum())
        full = study.sampler.batch_size == "full"
        table = np.array([[b, shared_rows, shared_rows if full else min(float(batch.sum()), shared_rows)]])
        chains = asked.chains
    values, counts = np.unique(table, axis=0, return_counts=True)
    if fixed is not None:
        counts = np.array([together])
    of_message = chains if asked.schedule.shared else 1
    work = _with_slow(values, counts, of_message, slow or Slow(), crowding)
    size = 8 * of_message * (BINS * study.federation.dimension + FLAGS)
    return Point(ranks, together, work, size, 1 if asked.schedule.shared else chains)


def _with_slow(values: np.ndarray, counts: np.ndarray, chains: int, slow: Slow, crowding: float) -> Work:
    groups = []
    for row, count in zip(values, counts.tolist(), strict=True):
        lagging = min(count, int(np.ceil(slow.share * count)))
        groups += [(*row, crowding, count - lagging), (*row, crowding * slow.factor, lagging)]
    table = np.array([group for group in groups if group[-1] > 0], float)
    return Work(
        clients=table[:, 0], rows=table[:, 1], batch_rows=table[:, 2], chains=np.full(len(table), float(chains)),
        slow=table[:, 3], count=table[:, 4].astype(np.int64),
    )  # fmt: skip
