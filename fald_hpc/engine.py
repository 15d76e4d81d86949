"""The run as a loop over segments: sample, absorb, store, save; between two segments Python has the word.

Everything that all ranks must agree on between segments (did a chain fail, was a stop asked for, length of the next
segment, whether to save) travels in one short reduction; the chain itself needs none.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fald_hpc import checkpoint, failures, identity, messages, start, storage, watch
from fald_hpc.batches import Batches
from fald_hpc.chains import Chains
from fald_hpc.comm import everywhere
from fald_hpc.drift.watch import DriftWatch
from fald_hpc.errors import Stopped, StorageFailure, UserError
from fald_hpc.failures import ChainFailure
from fald_hpc.kernels import _collectives, moments
from fald_hpc.options import Options
from fald_hpc.study import Study
from fald_hpc.timers import Timers

SEGMENT_SECONDS = 0.5
FULL_COVARIANCE_LIMIT = 256
"""Largest dimension whose full covariance is kept by default."""

Progress = Callable[[int, int], None]


OF_CHAINS = "mean", "reference", "shift", "window", "gradient_window", "averaged_at", "offset_at"
"""What of the state a checkpoint holds once for every chain."""


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
        self.batches = Batches(options.chain_batches, layout, request.schedule, self._between_nodes)
        self.capacity = storage.capacity(request.chains, d, options.draws_megabytes)
        self.drift = DriftWatch(study, self.chains)
        self.store: storage.DrawStore | None = None
        self.k = 0
        self.first = 0
        self._seen = 0
        self._equal_at_first = True
        self._unwritten: StorageFailure | None = None
        self._save_seconds = 0.0
        self._segment_seconds = 0.0

    def compile(self) -> None:
        """Compile the loop, one rank of each node first: the others then find it in the disk cache."""
        self.communicator.in_turn(self.chains.compile)
        self.communicator.in_turn(self.drift.observer.compile)
        self.timers.lap("compile")

    def begin(self) -> None:
        """Put the chains to their start."""
        study = self.study
        x = start.initial(study.request.init, study.federation, study.mode, study.key, self.chains.indices)
        failure: ChainFailure | None = None
        try:
            self.chains.start(x)
        except ChainFailure as found:
            failure = found
        if self._anywhere(failure is not None):
            raise self._agreed(failure)
        error: Exception | None = None
        if self.root:
            try:
                self.store = storage.DrawStore.create(
                    self._draws_path(), study.names, study.request.chains,
                    capacity=self.capacity, thin=self.options.thin,
                )  # fmt: skip
            except UserError as found:
                error = found
            except OSError as found:
                error = self._cannot_write(found)
        self.communicator.together(error)
        self.timers.lap("start")
        # from here on a restart has something to compare with: settings, data, the burn-in
        self.save()

    def restore(self, arrays: dict[str, np.ndarray] | None, meta: dict[str, Any] | None) -> None:
        """Continue from a checkpoint, which rank 0 has read; its arrays are of all chains and clients."""
        meta = self.communicator.share(meta)
        assert meta is not None
        self.k = self.first = int(meta["step"])
        mine = list(self.chains.indices)
        state = self.chains.state
        get = lambda name: self.communicator.share_array(None if arrays is None else arrays[name])  # noqa: E731
        for name in OF_CHAINS:
            getattr(state, name)[:] = get(name)[mine]
        self._equal_at_first = self.chains.averaged(self.k)
        clients = list(self.chains.clients)
        state.theta[:] = state.mean
        for values, name in ((state.theta, "theta"), (state.offset, "offset")):
            of_all = get(name)
            if of_all.shape[0] > 0:
                values[:] = of_all[clients][:, mine]
        if self.study.sampler.uses_reference:
            self.chains.restore_kept()
        names = sorted(name for name in arrays if name.startswith("moments_")) if arrays is not None else None
        kept = {name: get(name)[mine] for name in self.communicator.share(names)}
        if self.keeper:
            self.moments = moments.from_arrays(kept)
        self._seen = int(meta["records"])
        self.drift.restore(arrays, meta["drift"])
        error: Exception | None = None
        if self.root:
            assert arrays is not None
            try:
                self.store = storage.DrawStore.resume(
                    self._draws_path(), self.study.names, capacity=self.capacity, state=arrays
                )
            except UserError as found:
                error = found
            except OSError as found:
                error = self._cannot_write(found)
        self.communicator.together(error)
        self.timers.lap("start")

    def run(self, progress: Progress | None) -> None:
        """Run to the end.

        Raises
        ------
        Divergence, GradientFailure, StorageFailure
            On all ranks, with one message.
        Stopped
            On all ranks, after a signal to any of them or near the deadline; the state is saved.
        """
        steps = self.study.request.steps
        length = min(64, self.chains.most_steps)
        self._take(self.batches.number)
        saved = time.perf_counter()
        self.drift.start_clock(self.k)
        self._report(progress)
        while self.k < steps:
            if self.options.segment_steps != "auto":
                length = min(int(self.options.segment_steps), self.chains.most_steps)
            begun = self.k
            failure: ChainFailure | None = None
            try:
                self.k = self.chains.run(self.k, self.drift.target(self.k, min(self.k + length, steps)), steps)
                failure = self.chains.trouble(self.k)
            except ChainFailure as found:
                failure = found
            self._segment_seconds = self.timers.lap("sample")
            per_step = self._segment_seconds / max(1, self.k - begun)
            wanted = int(SEGMENT_SECONDS / per_step) if per_step > 0.0 else 2 * length
            wanted = max(1, min(wanted, 8 * length, self.chains.most_steps))
            due = self.folder is not None and time.perf_counter() - saved >= self.options.checkpoint_seconds
            number = self.batches.next(self.k - begun, self._segment_seconds)
            stop, length, save, seen, number = self._control(failure, wanted, due, number)
            self._take(number)
            self._absorb(seen)
            self.timers.lap("write")
            if self.drift.look(self.k):
                self.timers.lap("drift")
            if self.k == steps:
                break
            if save or stop:
                self.save()
                saved = time.perf_counter()
            self._report(progress)
            if stop:
                raise self._stopped()
        self.communicator.together(self._unwritten)
        self._report(progress)

    def _control(
        self, failure: ChainFailure | None, wanted: int, due: bool, number: int
    ) -> tuple[bool, int, bool, int, int]:
        """Agree with all ranks after a segment: (stop, length of the next, save, fewest records before this one, batches).

        One reduction carries it all; numbers that only rank 0 or only the keepers have are 0 or very small elsewhere.
        """
        asked = watch.active()
        word = np.zeros(7)
        word[0] = failure is not None
        word[1] = self._unwritten is not None
        word[2] = (asked is not None and asked.received is not None) or (self.root and self._time_is_up())
        word[3] = wanted if self.root else 0
        word[4] = due and self.root
        word[5] = -float(self.moments.count.min()) if self.keeper else -np.inf
        word[6] = number if self.root else 0
        failed, unwritten, stop, length, save, fewest, number = self.communicator.maximum(word)
        if failed:
            raise self._agreed(failure)
        if unwritten:
            self.communicator.together(self._unwritten)
        return bool(stop), int(length), bool(save), int(-fewest), int(number)

    def _take(self, number: int) -> None:
        """Take the chains in so many batches from here on."""
        self.batches.take(number, self.k)
        self.chains.in_batches(number)

    def _between_nodes(self) -> bool:
        """Return whether messages travel between nodes, or are as slow as if they did; all ranks call it."""
        return self._anywhere(not self.study.group.on_one_node() or _collectives.emulated_latency() > 0.0)

    def _anywhere(self, flag: bool) -> bool:
        return bool(self.communicator.maximum(np.array([1.0 if flag else 0.0]))[0])

    def _agreed(self, failure: ChainFailure | None) -> ChainFailure:
        study = self.study
        return failures.agreed(failure, self.communicator, study.request.clients.ids, float(study.sampler.step_size))

    def _time_is_up(self) -> bool:
        """Return whether another segment and a checkpoint might no longer fit before the deadline."""
        if self.options.deadline is None:
            return False
        margin = 2.0 + 3.0 * self._save_seconds + 2.0 * max(self._segment_seconds, SEGMENT_SECONDS)
        return time.time() + margin > self.options.deadline

    def _stopped(self) -> Stopped:
        """Return why the run ends here; rank 0 knows no signal of another rank, so it asks."""
        asked = watch.active()
        mine = [asked.received if asked is not None else None]
        told = self.communicator.collect(mine) or []
        names = sorted({name for (name,) in told if name is not None})
        reason = self.communicator.share(" and ".join(names) or "the time limit")
        place = "" if self.folder is None else f" The state is saved in {self.folder}; continue with --resume."
        words = f"stopped by {reason} at step {self.k} of {self.study.request.steps}.{place}"
        return everywhere(Stopped(words, self.k, self.drift.waiting(self.k)))

    def _report(self, progress: Progress | None) -> None:
        steps = self.study.request.steps
        watching = watch.active()
        if watching is not None and self.root:
            watching.sign(self.folder, step=self.k, steps=steps)
        if progress is not None:
            progress(self.k, steps)

    def _absorb(self, fewest: int) -> None:
        """Take the records of the last segment into the statistics, and the kept ones to rank 0.

        ``fewest`` records were seen of every chain before: all ranks compute the stride from it.
        """
        chains, study = self.chains, self.study
        d = study.federation.dimension
        thin = storage.thinning(fewest, self.options.thin, self.capacity)
        if self.keeper:
            longest = int(chains.log.counts.max(initial=0))
            values = np.ascontiguousarray(study.original(chains.log.records[:, :longest]))
            first = self.moments.count.copy()
            moments.absorb(self.moments, values, chains.log.counts)
            draws, kept = storage.pick(values, chains.log.counts, first, thin)
            seen = self.moments.count
        else:
            draws, kept, seen = np.zeros((0, 0, d)), np.zeros(0, np.int64), np.zeros(0, np.int64)
        parts = self.communicator.gather(draws)
        counts, totals = self.communicator.gather(kept), self.communicator.gather(seen)
        if parts is None or counts is None or totals is None:
            return
        # the ranks of one group of chains have the same draws, and its first one hands them in: often all there are
        parts = [part for part in parts if part.shape[0] > 0]
        everything = parts[0]
        if len(parts) > 1:
            everything = np.zeros((study.request.chains, max(part.shape[1] for part in parts), d))
            chain = 0
            for part in parts:
                everything[chain : chain + part.shape[0], : part.shape[1]] = part
                chain += part.shape[0]
        total = np.concatenate(totals)
        self._seen = int(total.min())
        assert self.store is not None
        try:
            self.store.append(everything, np.concatenate(counts), total, thin)
        except OSError as found:
            # the others learn of it with the next control message
            self._unwritten = self._cannot_write(found)

    def _cannot_write(self, error: OSError) -> StorageFailure:
        try:
            saved = None if self.folder is None else checkpoint.load(self.folder / "checkpoint")
        except (OSError, UserError):
            saved = None
        good = "" if saved is None else f" The checkpoint at step {saved[1]['step']} is good: "
        return StorageFailure(
            f"cannot write to {self.folder} at step {self.k} (rank 0): {error.strerror or error}.{good}"
            f"{'make' if good else ' Make'} room or mend the permissions, then continue with --resume."
        )

    def save(self) -> None:
        """Write a checkpoint: the same bytes on any layout.

        Raises
        ------
        StorageFailure
            On all ranks; the last checkpoint is untouched.
        """
        if self.folder is None:
            return
        begun = time.perf_counter()
        arrays = self.gathered_state()
        error = self._unwritten  # a store that misses draws must not get a checkpoint that counts on them
        if self.root and error is None:
            assert self.store is not None
            try:
                checkpoint.save(self.folder / "checkpoint", arrays | self.store.export(), self._meta())
            except OSError as found:
                error = self._cannot_write(found)
        self.communicator.together(error)
        self._save_seconds = max(self._save_seconds, time.perf_counter() - begun)
        self.timers.lap("write")

    def _meta(self) -> dict[str, Any]:
        study = self.study
        return {
            "step": self.k,
            "records": self._seen,
            "burn_in": study.request.schedule.burn_in,
            "drift": self.drift.position(),
            "step_size": study.sampler.step_size,
            "settings": identity.settings(study.request) | self.options.fixed(),
            "data": study.fingerprints,
        }

    def gathered_state(self) -> dict[str, np.ndarray]:
        """Return the state of all chains and clients and their statistics on rank 0 (an empty dict elsewhere)."""
        state, layout = self.chains.state_before(self.k), self.study.layout
        arrays: dict[str, np.ndarray] = {}
        for name in OF_CHAINS:
            value = getattr(state, name)
            parts = self.communicator.gather(value if self.keeper else value[:0])
            if parts is not None:
                arrays[name] = np.concatenate(parts)
        for name, value in moments.to_arrays(self.moments).items():
            parts = self.communicator.gather(value)
            if parts is not None:
                arrays[name] = np.concatenate(parts)
        arrays |= self.drift.gathered()
        equal = self.communicator.maximum(np.array([0.0 if self.chains.averaged(self.k) else 1.0]))[0] == 0.0
        for name in ("theta", "offset"):
            value = getattr(state, name)
            parts = self.communicator.gather(value[:0] if equal else value)
            if parts is not None:
                arrays[name] = layout.assembled(parts)
        return arrays

    def messages(self) -> dict[str, int] | None:
        """Return the messages made and predicted since the first step of this process, on rank 0."""
        made = messages.made(self.chains, self.study)
        equal = self.first == 0 or self._equal_at_first
        return None if made is None else made | {"predicted": messages.predicted(self.study, self.batches.spans, equal)}

    def close(self) -> None:
        """Write the last checkpoint and finish the store.

        Raises
        ------
        StorageFailure
            On all ranks.
        """
        self.save()
        error: StorageFailure | None = None
        if self.root:
            assert self.store is not None
            try:
                self.store.close()
            except OSError as found:
                error = self._cannot_write(found)
        self.communicator.together(error)
        self.timers.lap("write")

    def _draws_path(self) -> Path | None:
        return None if self.folder is None else self.folder / "draws.zarr"
