"""The run as a loop over segments: sample, absorb, store, save; between two segments Python has the word.

Everything that all ranks must agree on between segments (length of the next one, whether to save) is rank 0's word,
shared in one short message; the chain itself needs none.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fald_hpc import checkpoint, start, storage
from fald_hpc.chains import Chains, expected_events
from fald_hpc.kernels import moments
from fald_hpc.kernels.state import MESSAGES, REPEATS, ROWS_TOUCHED
from fald_hpc.study import Study

SEGMENT_SECONDS = 0.5
CHECKPOINT_SECONDS = 30.0
FULL_COVARIANCE_LIMIT = 256
"""Largest dimension whose full covariance is kept by default."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """How a run is kept and cut: nothing here but ``thin``, the cap and the covariance changes what is kept."""

    draws_megabytes: float = 64.0
    thin: int = 1
    covariance: str = "auto"
    segment_steps: int | str = "auto"
    checkpoint_seconds: float = CHECKPOINT_SECONDS


@dataclass
class Timers:
    """Wall seconds of the phases of a run on rank 0; they add up to the total."""

    phases: dict[str, float] = field(default_factory=dict)
    begun: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        """Start the first phase now."""
        self._last = time.perf_counter()

    def lap(self, phase: str) -> float:
        """Add the time since the last lap to a phase and return it."""
        now = time.perf_counter()
        elapsed, self._last = now - self._last, now
        self.phases[phase] = self.phases.get(phase, 0.0) + elapsed
        return elapsed


class Engine:
    """One run on one rank.

    Parameters
    ----------
    study : Study
        The prepared study.
    options : Options
        Output and segments.
    folder : Path or None
        Where rank 0 writes; None keeps everything in memory.
    timers : Timers
        Started by the caller.
    """

    def __init__(self, study: Study, options: Options, folder: Path | None, timers: Timers) -> None:
        self.study, self.options, self.folder, self.timers = study, options, folder, timers
        request, layout, rank = study.request, study.layout, study.communicator.rank
        self.communicator = study.communicator
        self.root = rank == 0
        self.chains = Chains(study.federation, study.sampler, request.schedule, layout, rank, study.key)
        d = study.federation.dimension
        # the first rank of each chain group keeps the statistics of its chains
        self.keeper = rank % layout.client_groups == 0
        full = options.covariance == "full" or (options.covariance == "auto" and d <= FULL_COVARIANCE_LIMIT)
        self.moments = moments.new(
            len(self.chains.indices) if self.keeper else 0, d, moments.n_batches(request.chains, d), full
        )
        self.capacity = storage.capacity(request.chains, d, options.draws_megabytes)
        self.store: storage.DrawStore | None = None
        self.k = 0
        self.first = 0
        self._seen = 0
        self._equal_at_first = True

    def compile(self) -> None:
        """Compile the loop, one rank of each node first: the others then find it in the disk cache."""
        self.communicator.in_turn(self.chains.compile)
        self.timers.lap("compile")

    def begin(self) -> None:
        """Put the chains to their start."""
        study = self.study
        x = start.initial(study.request.init, study.federation, study.mode, study.key, self.chains.indices)
        self.chains.start(x)
        if self.root:
            self.store = storage.DrawStore.create(
                self._draws_path(), study.names, study.request.chains, capacity=self.capacity, thin=self.options.thin
            )
        self.timers.lap("start")

    def restore(self, arrays: dict[str, np.ndarray] | None, meta: dict[str, Any] | None) -> None:
        """Continue from a checkpoint, which rank 0 has read; its arrays are of all chains and clients."""
        meta = self.communicator.share(meta)
        assert meta is not None
        self.k = self.first = int(meta["step"])
        mine = list(self.chains.indices)
        state = self.chains.state
        get = lambda name: self.communicator.share_array(None if arrays is None else arrays[name])  # noqa: E731
        for name in ("mean", "reference", "shift", "window", "gradient_window"):
            getattr(state, name)[:] = get(name)[mine]
        state.averaged_at[:] = get("averaged_at")[mine]
        self._equal_at_first = self.chains.averaged(self.k)
        theta = get("theta")
        clients = list(self.chains.clients)
        state.theta[:] = state.mean if theta.shape[0] == 0 else theta[clients][:, mine]
        if self.study.sampler.uses_reference:
            self.chains.restore_kept()
        names = sorted(name for name in arrays if name.startswith("moments_")) if arrays is not None else None
        kept = {name: get(name)[mine] for name in self.communicator.share(names)}
        if self.keeper:
            self.moments = moments.from_arrays(kept)
        self._seen = int(meta["records"])
        if self.root:
            assert arrays is not None
            self.store = storage.DrawStore.resume(
                self._draws_path(), self.study.names, capacity=self.capacity, state=arrays
            )
        self.timers.lap("start")

    def run(self, progress: Progress | None) -> None:
        """Run to the end."""
        request = self.study.request
        steps = request.steps
        length = min(64, self.chains.most_steps)
        saved = time.perf_counter()
        if progress is not None:
            progress(self.k, steps)
        while self.k < steps:
            if self.options.segment_steps != "auto":
                length = min(int(self.options.segment_steps), self.chains.most_steps)
            begun = self.k
            self.k = self.chains.run(self.k, min(self.k + length, steps), steps)
            elapsed = self.timers.lap("sample")
            self._absorb()
            now = time.perf_counter()
            due = self.folder is not None and now - saved >= self.options.checkpoint_seconds and self.k < steps
            per_step = elapsed / max(1, self.k - begun)
            wanted = int(SEGMENT_SECONDS / per_step) if per_step > 0.0 else 2 * length
            wanted = max(1, min(wanted, 8 * length, self.chains.most_steps))
            length, save = self.communicator.share([wanted, due])
            self.timers.lap("write")
            if save:
                self.save()
                saved = time.perf_counter()
            if progress is not None:
                progress(self.k, steps)

    def _absorb(self) -> None:
        """Take the records of the last segment into the statistics, and the kept ones to rank 0."""
        chains, study = self.chains, self.study
        d = study.federation.dimension
        if self.keeper:
            longest = int(chains.counts.max(initial=0))
            values = np.ascontiguousarray(study.original(chains.records[:, :longest]))
            first = self.moments.count.copy()
            moments.absorb(self.moments, values, chains.counts)
            thin = storage.thinning(self._seen, self.options.thin, self.capacity)
            draws, kept = storage.pick(values, chains.counts, first, thin)
            seen = self.moments.count
        else:
            draws, kept, seen = np.zeros((0, 0, d)), np.zeros(0, np.int64), np.zeros(0, np.int64)
        parts = self.communicator.gather(draws)
        counts, totals = self.communicator.gather(kept), self.communicator.gather(seen)
        fewest = -1
        if parts is not None and counts is not None and totals is not None:
            everything = np.zeros((study.request.chains, max(part.shape[1] for part in parts), d))
            chain = 0
            for part in parts:
                everything[chain : chain + part.shape[0], : part.shape[1]] = part
                chain += part.shape[0]
            total = np.concatenate(totals)
            assert self.store is not None
            thin = storage.thinning(self._seen, self.options.thin, self.capacity)
            self.store.append(everything, np.concatenate(counts), total, thin)
            fewest = int(total.min())
        self._seen = int(self.communicator.share(fewest))

    def save(self) -> None:
        """Write a checkpoint: the same bytes on any layout."""
        arrays = self.gathered_state()
        if self.root and self.folder is not None:
            assert self.store is not None
            checkpoint.save(self.folder / "checkpoint", arrays | self.store.export(), self._meta())
        self.timers.lap("write")

    def _meta(self) -> dict[str, Any]:
        study = self.study
        return {
            "step": self.k,
            "records": self._seen,
            "burn_in": study.request.schedule.burn_in,
            "step_size": study.sampler.step_size,
            "digest": study.request.digest(),
            "data": study.fingerprints,
        }

    def gathered_state(self) -> dict[str, np.ndarray]:
        """Return the state of all chains and clients and their statistics on rank 0 (an empty dict elsewhere)."""
        state, layout = self.chains.state, self.study.layout
        arrays: dict[str, np.ndarray] = {}
        for name in ("mean", "reference", "shift", "window", "gradient_window", "averaged_at"):
            value = getattr(state, name)
            parts = self.communicator.gather(value if self.keeper else value[:0])
            if parts is not None:
                arrays[name] = np.concatenate(parts)
        for name, value in moments.to_arrays(self.moments).items():
            parts = self.communicator.gather(value)
            if parts is not None:
                arrays[name] = np.concatenate(parts)
        equal = self.communicator.maximum(np.array([0.0 if self.chains.averaged(self.k) else 1.0]))[0] == 0.0
        parts = self.communicator.gather(state.theta[:0] if equal else state.theta)
        if parts is not None:
            b, s, d = layout.n_clients, layout.n_chains, self.study.federation.dimension
            arrays["theta"] = np.zeros((0 if equal else b, s, d))
            if not equal:
                for rank, part in enumerate(parts):
                    clients, chains = layout.clients(rank), layout.chains(rank)
                    arrays["theta"][clients.start : clients.stop, chains.start : chains.stop] = part
        return arrays

    def messages(self) -> dict[str, int] | None:
        """Return the messages made and predicted since the first step of this process, on rank 0."""
        request, study = self.study.request, self.study
        tally = self.chains.state.tally
        local = np.array([tally[MESSAGES], tally[REPEATS], tally[ROWS_TOUCHED]], np.int64)
        parts = self.communicator.gather(local)
        if parts is None:
            return None
        keepers = parts[:: study.layout.client_groups]
        shared = request.schedule.shared
        made = keepers[0] if shared else np.sum(keepers, axis=0)
        predicted = int(self.predicted_events(self.first)[2])
        if self.first == 0 and study.sampler.uses_reference:
            predicted += 1 if shared else len(keepers)
        return {
            "made": int(made[0]),
            "predicted": predicted,
            "repeated": int(made[1]),
            "rows_touched": int(np.sum(parts, axis=0)[2]),
        }

    def predicted_events(self, first: int) -> np.ndarray:
        """Return (averagings, refreshes, messages) of iterations first..steps-1, known from the seed."""
        request = self.study.request
        equal = first == 0 or self._equal_at_first
        return expected_events(
            self.study.sampler, request.schedule, self.study.key, range(request.chains), first, request.steps, equal
        )

    def close(self) -> None:
        """Write the last checkpoint and finish the store."""
        if self.folder is not None:
            self.save()
        if self.root:
            assert self.store is not None
            self.store.close()
        self.timers.lap("write")

    def _draws_path(self) -> Path | None:
        return None if self.folder is None else self.folder / "draws.zarr"
