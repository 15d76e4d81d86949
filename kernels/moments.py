"""Streaming moments and nested batch sums of the recorded draws: memory that does not grow with the steps.

Everything is accumulated one record after the other, about the chain's first record, in explicit loops. So the bits
depend on the records alone: neither on how a run was cut into segments nor on the processor's vector length.

Batch sums are *nested*: a chain keeps at most ``2 * n_batches`` of them; when all are full, neighbours are merged and
the batch size doubles. After any number of records between ``n_batches`` and ``2 * n_batches`` batches are complete
(all records one by one while they are fewer), which is what the diagnostics need.
"""

from typing import NamedTuple

import numpy as np

from fald_hpc.kernels.jit import jit

MOST_BATCHES = 8192
"""Batches kept at least, where memory allows: the relative error of an ESS is about 2 / sqrt(batches)."""

FEWEST_BATCHES = 32
"""Batches kept at least, however large the problem."""

BATCH_BYTES = 1 << 25
"""Memory of the batch sums of all chains, in bytes, above which fewer batches are kept."""


TOGETHER = 4
"""Records whose products are added to their sums together."""


class Accumulators(NamedTuple):
    """Moments of the records of some chains; every array has the chain as its first axis and is updated in place.

    Attributes
    ----------
    count : int64[s]
        Records absorbed.
    origin : float64[s, d]
        The chain's first record; all sums are of ``x - origin``. Parameter units.
    total : float64[s, d]
        Sums.
    squares : float64[s, d]
        Sums of squares.
    cross : float64[s, d, d] or float64[s, 0, 0]
        Sums of products, lower triangle; empty when only variances are kept.
    size : int64[s]
        Records in a batch, a power of two.
    batches : float64[s, 2 * n_batches, d]
        Sums over batches of ``size`` records in a row, the last one possibly incomplete.
    """

    count: np.ndarray
    origin: np.ndarray
    total: np.ndarray
    squares: np.ndarray
    cross: np.ndarray
    size: np.ndarray
    batches: np.ndarray


def n_batches(chains: int, dimension: int) -> int:
    """Return the number of batches to keep: a power of two that depends on the global shape only.

    Parameters
    ----------
    chains : int
        All chains of the run, not those of this rank.
    dimension : int
        d.
    """
    kept = MOST_BATCHES
    while kept > FEWEST_BATCHES and 2 * kept * chains * dimension * 8 > BATCH_BYTES:
        kept //= 2
    return kept


def new(chains: int, dimension: int, n_batches: int, full_covariance: bool) -> Accumulators:
    """Return empty accumulators for ``chains`` local chains (shapes: :class:`Accumulators`)."""
    side = dimension if full_covariance else 0
    return Accumulators(
        count=np.zeros(chains, np.int64),
        origin=np.zeros((chains, dimension)),
        total=np.zeros((chains, dimension)),
        squares=np.zeros((chains, dimension)),
        cross=np.zeros((chains, side, side)),
        size=np.ones(chains, np.int64),
        batches=np.zeros((chains, 2 * n_batches, dimension)),
    )


@jit
def halve(batches):
    """Merge neighbouring sums of one chain's ``batches`` (float64[k, d], k even) in place; the rest becomes zero."""
    slots, d = batches.shape
    for j in range(slots // 2):
        for a in range(d):
            batches[j, a] = batches[2 * j, a] + batches[2 * j + 1, a]
    for j in range(slots // 2, slots):
        for a in range(d):
            batches[j, a] = 0.0


@jit(allocates=True)
def absorb(acc, records, counts):
    """Add records to the accumulators.

    Parameters
    ----------
    acc : Accumulators
        Of s chains; changed in place.
    records : float64[s, r, d]
        Records in time order; parameter units.
    counts : int64[s]
        ``records[i, :counts[i]]`` are valid.
    """
    d = records.shape[2]
    slots = acc.batches.shape[1]
    full = acc.cross.shape[1] > 0
    shifted = np.empty((TOGETHER, d))
    for i in range(records.shape[0]):
        for first in range(0, counts[i], TOGETHER):
            last = min(first + TOGETHER, counts[i])
            for r in range(first, last):
                before = acc.count[i]
                if before == 0:
                    for a in range(d):
                        acc.origin[i, a] = records[i, r, a]
                if before == slots * acc.size[i]:
                    halve(acc.batches[i])
                    acc.size[i] *= 2
                j = before // acc.size[i]
                for a in range(d):
                    x = records[i, r, a] - acc.origin[i, a]
                    acc.total[i, a] += x
                    acc.squares[i, a] += x * x
                    acc.batches[i, j, a] += x
                acc.count[i] = before + 1
            if not full:
                continue
            for m in range(last - first):
                for a in range(d):
                    shifted[m, a] = records[i, first + m, a] - acc.origin[i, a]
            if last - first == TOGETHER:
                # the sums are read and written once for four records, which are added in their order
                for a in range(d):
                    x0, x1, x2, x3 = shifted[0, a], shifted[1, a], shifted[2, a], shifted[3, a]
                    for b in range(a + 1):
                        c = acc.cross[i, a, b] + x0 * shifted[0, b]
                        c += x1 * shifted[1, b]
                        c += x2 * shifted[2, b]
                        acc.cross[i, a, b] = c + x3 * shifted[3, b]
            else:
                for m in range(last - first):
                    for a in range(d):
                        x = shifted[m, a]
                        for b in range(a + 1):
                            acc.cross[i, a, b] += x * shifted[m, b]


def to_arrays(acc: Accumulators) -> dict[str, np.ndarray]:
    """Return the accumulators by name, each with the chain as its first axis: to gather, or for a checkpoint."""
    return {f"moments_{name}": array for name, array in acc._asdict().items()}


def from_arrays(arrays: dict[str, np.ndarray]) -> Accumulators:
    """Return accumulators from a copy of what :func:`to_arrays` gave; other entries are ignored.

    Raises
    ------
    KeyError
        An array is missing.
    """
    return Accumulators(*(np.array(arrays[f"moments_{name}"], order="C") for name in Accumulators._fields))
