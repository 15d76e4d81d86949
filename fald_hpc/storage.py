"""The draws of a run: thinned under a cap of bytes, readable at every moment, the same bytes however they arrived.

*Thinning.* Record r of a chain (counted from 0 after burn-in) is kept if ``r % thin == 0``. When more than ``capacity``
draws a chain would be kept, ``thin`` doubles: so what is kept depends on the number of records (of the shortest chain),
the first ``thin`` and the cap, not on how the records arrived. The attribute ``thin`` of ``theta`` tells the final one.

*Tail.* Only full chunks are written during a run; the draws after them, the tail, are in the checkpoint
(:meth:`DrawStore.export`) until :meth:`DrawStore.close`. Chains with more records than the shortest wait there too.

*Killed at any moment.* Chunks are written first, then the shape that makes them visible. A doubling writes a second
generation of chunks and then switches (:mod:`fald_hpc.zarr_draws`); it also writes the part of a chunk that it has, so
that a resume from a checkpoint older than the doubling finds every draw that it needs at the larger stride.
"""

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fald_hpc.errors import UserError
from fald_hpc.zarr_draws import ZarrDraws

FEWEST_DRAWS = 10
"""Smallest capacity, in draws a chain, that is accepted."""


def capacity(chains: int, dimension: int, megabytes: float) -> int:
    """Return the number of draws a chain that fit under the cap.

    Raises
    ------
    UserError
        Fewer than :data:`FEWEST_DRAWS`.
    """
    draw = 8 * chains * dimension
    fit = int(megabytes * 1e6) // draw
    if fit < FEWEST_DRAWS:
        raise UserError(
            f"[output] draws_megabytes = {megabytes:g} holds {fit} draws of {chains} chains x {dimension} parameters; "
            f"set it to {1.01 * FEWEST_DRAWS * draw / 1e6:.3g} or more"
        )
    return fit


def thinning(records: int, start: int, capacity: int) -> int:
    """Return the stride in force after a number of records: ``start``, doubled until at most ``capacity`` are kept."""
    thin = start
    while -(-records // thin) > capacity:
        thin *= 2
    return thin


def pick(records: np.ndarray, counts: np.ndarray, first: np.ndarray, thin: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the records that a stride keeps.

    Parameters
    ----------
    records : float64[s, r, d]
        ``records[i, :counts[i]]`` are valid, in time order.
    counts : int64[s]
        Valid records.
    first : int64[s]
        Index, since burn-in, of a chain's first record here.
    thin : int
        Stride.

    Returns
    -------
    draws : float64[s, k, d]
        ``draws[i, :kept[i]]`` are valid, the rest is zero. Of one chain a view of its records.
    kept : int64[s]
        Their numbers.
    """
    parts = [records[i, int(-f % thin) : int(n) : thin] for i, (f, n) in enumerate(zip(first, counts, strict=True))]
    kept = np.array([len(part) for part in parts], np.int64)
    return _stack(parts, records.shape[2]), kept


def _stack(parts: Sequence[np.ndarray], dimension: int) -> np.ndarray:
    """Return arrays float64[<= k, d] as one float64[s, k, d], filled up with zeros; of one array a view."""
    if len(parts) == 1:
        return parts[0][np.newaxis]
    stacked = np.zeros((len(parts), max((len(part) for part in parts), default=0), dimension))
    for i, part in enumerate(parts):
        stacked[i, : len(part)] = part
    return stacked


def _longer(tail: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Return ``more`` behind ``tail``, float64[m, d] and float64[n, d], in the array that the tail begins if it has the room.

    New memory for every segment would cost more than the copy: the system clears it page by page.
    """
    n, room = len(tail) + len(more), tail.base
    if room is None or len(room) < n:
        room = np.empty((2 * n, tail.shape[1]))
        room[: len(tail)] = tail
    room[len(tail) : n] = more
    return room[:n]


class DrawStore:
    """The sink of the draws, on rank 0; build it with :meth:`create` or :meth:`resume`.

    Attributes
    ----------
    thin, start : int
        The stride in force and the first one.
    seen : int64[s]
        Records of each chain so far, kept or not.
    """

    def __init__(self, path: str | os.PathLike[str] | None, names: Sequence[str], chains: int, capacity: int) -> None:
        if len(set(names)) < len(names):
            double = next(name for name in names if list(names).count(name) > 1)
            raise UserError(f"two parameters are called {double!r}: give the features different names")
        self.names, self.capacity = tuple(names), capacity
        self.start = self.thin = 1
        self.seen = np.zeros(chains, np.int64)
        self._files = ZarrDraws(path, self.names, chains)
        self._full = 0  # chunks of the present generation that are full and visible
        self._tail = [np.zeros((0, len(self.names)))] * chains

    @classmethod
    def create(
        cls, path: str | os.PathLike[str] | None, names: Sequence[str], chains: int, *, capacity: int, thin: int = 1
    ) -> "DrawStore":
        """Start an empty store, replacing what lies at ``path``.

        Parameters
        ----------
        path : path or None
            The store's folder, ``DIR/draws.zarr``; None keeps the draws in memory.
        names : sequence of str
            The d parameters.
        chains : int
            All chains of the run.
        capacity : int
            Draws a chain to keep at most.
        thin : int
            First stride.
        """
        store = cls(path, names, chains, capacity)
        store.start = store.thin = thin
        store._files.start(thin)
        return store

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str] | None,
        names: Sequence[str],
        *,
        capacity: int,
        state: Mapping[str, np.ndarray],
    ) -> "DrawStore":
        """Continue from a checkpoint, whatever was written after it.

        Draws written after the checkpoint are written again, with the same bytes. If the stride has doubled since,
        the store goes on with the larger one, which the run will reach again.

        Parameters
        ----------
        path, names, capacity
            As for :meth:`create`. A smaller capacity thins further; with a larger one the stride rests longer.
        state : dict of arrays
            What :meth:`export` gave; other entries are ignored.

        Raises
        ------
        UserError
            The store lacks draws that the checkpoint counts on (or was kept in memory).
        """
        store = cls(path, names, len(state["draws_seen"]), capacity)
        store.seen = np.array(state["draws_seen"])
        store.start, store.thin = (int(v) for v in state["draws_thin"])
        counts = state["draws_tail_counts"]
        store._tail = [np.array(tail[:n]) for tail, n in zip(state["draws_tail"], counts, strict=True)]
        store._full = store._common() // store._files.chunk_draws
        try:
            store._take_over(store._files.reopen())
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise UserError(
                f"the draws in {path} do not fit the checkpoint beside them ({error}): restore the folder "
                "from a backup, or start the run again with --overwrite"
            ) from error
        return store

    def append(self, draws: np.ndarray, counts: np.ndarray, seen: np.ndarray, thin: int) -> None:
        """Add the draws of a segment.

        Parameters
        ----------
        draws : float64[s, k, d]
            Of all chains, as :func:`pick` gives them for the records since the last call.
        counts : int64[s]
            ``draws[i, :counts[i]]`` are valid.
        seen : int64[s]
            Records of each chain so far, these included.
        thin : int
            The stride they were picked at: ``start`` times a power of two, at most the stride after this call.

        Raises
        ------
        ValueError
            ``counts`` does not fit ``seen`` and ``thin``: a record was lost or came twice.
        OSError
            The draws could not be written; what was visible still is.
        """
        kept_before, kept = -(-self.seen // thin), -(-np.asarray(seen) // thin)
        target = max(self.thin, thinning(int(np.min(seen)), self.start, self.capacity))
        step, rest = divmod(target, thin)
        if not np.array_equal(kept - kept_before, counts) or rest or step & (step - 1):
            raise ValueError(f"{counts} draws at stride {thin} for records {self.seen} to {seen}, store at {target}")
        while self.thin < target:
            self._double()
        for i, tail in enumerate(self._tail):
            self._tail[i] = _longer(tail, draws[i, int(-kept_before[i] % step) : int(counts[i]) : step])
        self.seen = np.array(seen, np.int64)
        if self._write_full_chunks():
            self._files.publish(self._full * self._files.chunk_draws, self.thin, self._generation)

    def export(self) -> dict[str, np.ndarray]:
        """Return what a checkpoint must hold beside the store, a function of the records alone."""
        return {
            "draws_seen": self.seen.copy(),
            "draws_thin": np.array([self.start, self.thin], np.int64),
            "draws_tail": _stack(self._tail, len(self.names)).copy(),
            "draws_tail_counts": np.array([len(tail) for tail in self._tail], np.int64),
        }

    def close(self) -> None:
        """Write the tail and the final shape, and remove the files of unfinished work.

        Warns
        -----
        UserWarning
            The stride is larger than need be: killed after a doubling, then resumed for fewer steps or a larger cap.
        """
        if self.thin > thinning(int(self.seen.min()), self.start, self.capacity):
            warnings.warn(
                f"one draw in {self.thin} records is kept, more sparsely than the cap asks for: the run had gone "
                "further, or its cap was smaller, before it was interrupted",
                stacklevel=2,
            )
        self._write_part()
        self._files.seal(self._common(), self.thin, self._generation)

    def array(self) -> np.ndarray:
        """Return the draws that every chain has, tail included: float64[s, D, d]."""
        blocks = [self._files.read_chunk(self._generation, k) for k in range(self._full)]
        return np.concatenate([*blocks, self._part()], axis=1)

    @property
    def _generation(self) -> int:
        """Return which of the two schemes of file names holds: every doubling changes it."""
        return ((self.thin // self.start).bit_length() - 1) % 2

    def _common(self) -> int:
        """Return the number of draws that every chain has."""
        return -(-int(self.seen.min()) // self.thin)

    def _part(self) -> np.ndarray:
        """Return the draws after the last full chunk that every chain has, float64[s, < chunk, d]."""
        left = self._common() - self._full * self._files.chunk_draws
        return np.stack([tail[:left] for tail in self._tail])

    def _write_part(self) -> None:
        part = self._part()
        if part.shape[1]:
            self._files.write_chunk(self._generation, self._full, part)

    def _write_full_chunks(self) -> bool:
        """Move what fills chunks from the tail to the disk; return whether there was any."""
        size, before = self._files.chunk_draws, self._full
        full = self._common() // size
        for k in range(before, full):
            block = _stack([tail[(k - before) * size : (k - before + 1) * size] for tail in self._tail], len(self.names))
            self._files.write_chunk(self._generation, k, block)
        if full > before:
            # what is left begins its array again
            self._tail = [_longer(tail[:0], tail[(full - before) * size :]) for tail in self._tail]
        self._full = full
        return full > before

    def _double(self) -> None:
        """Keep every other draw: write a new generation, switch, remove the old one."""
        size, flushed, old = self._files.chunk_draws, self._full, self._generation
        self.thin *= 2
        self._full = 0
        rest = np.zeros((len(self.seen), 0, len(self.names)))
        for k in range(flushed):
            block = self._files.read_chunk(old, k)
            rest = np.concatenate([rest, block[:, (k * size) % 2 :: 2]], axis=1)
            if rest.shape[1] >= size:
                self._files.write_chunk(self._generation, self._full, rest[:, :size])
                rest = rest[:, size:]
                self._full += 1
        skip = (flushed * size) % 2
        self._tail = [np.concatenate([rest[i], tail[skip::2]]) for i, tail in enumerate(self._tail)]
        self._write_full_chunks()
        self._write_part()
        self._files.publish(self._full * size, self.thin, self._generation)
        self._files.sweep(self._generation, self._full + 1)

    def _take_over(self, disk: int) -> None:
        """Go over to the stride on disk, which may have doubled since the checkpoint; see that its chunks are there."""
        ratio, rest = divmod(disk, self.thin)
        if rest or ratio & (ratio - 1) or ratio == 0:
            raise ValueError(f"stride {disk} where {self.thin} was expected")
        size = self._files.chunk_draws
        flushed = self._full * size
        self.thin = disk
        self._full, part = divmod(-(-flushed // ratio), size)
        for k in range(self._full):
            self._files.read_chunk(self._generation, k)
        start = np.zeros((len(self.seen), 0, len(self.names)))
        if part:
            start = self._files.read_chunk(self._generation, self._full)[:, :part]
            if np.isnan(start).any():
                raise ValueError(f"chunk {self._full} is not complete")
        self._tail = [np.concatenate([start[i], tail[-flushed % ratio :: ratio]]) for i, tail in enumerate(self._tail)]


def to_dataarray(array: np.ndarray, names: Sequence[str]) -> Any:
    """Return draws float64[s, D, d] as an ``xarray.DataArray`` with dimensions chain, draw, parameter."""
    import xarray

    coordinates = {"chain": np.arange(array.shape[0]), "parameter": list(names)}
    return xarray.DataArray(array, coordinates, ("chain", "draw", "parameter"), "theta")


def open_draws(path: str | os.PathLike[str]) -> Any:
    """Return the draws of a store as an ``xarray.DataArray`` in memory; those written so far if the run is not over.

    Raises
    ------
    UserError
        There is no store at ``path``.
    """
    import xarray

    if not (Path(path) / "posterior/theta/zarr.json").is_file():
        raise UserError(f"no draws at {path}: give the folder draws.zarr inside a run's folder")
    try:
        theta = xarray.open_zarr(path, group="posterior", consolidated=False, chunks=None)["theta"].load()
        return to_dataarray(theta.values, [str(name) for name in theta["parameter"].values])
    # a damaged store makes zarr and xarray raise many kinds of exceptions
    except Exception as error:
        raise UserError(f"the draws in {path} cannot be read ({type(error).__name__}): the store is damaged.") from error


def to_arviz(draws: Any) -> Any:
    """Return draws, a DataArray, as an ``arviz.InferenceData`` with one group, ``posterior``."""
    import arviz

    return arviz.InferenceData(posterior=draws.to_dataset(name="theta"))
