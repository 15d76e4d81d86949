"""The chains of one rank: their compiled loop, its state and work space. Everything here is between two segments."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import typeof, types

from fald_hpc.comm import Serial
from fald_hpc.failures import ChainFailure, Divergence, GradientFailure
from fald_hpc.federation import Federation
from fald_hpc.kernels import averaging, coins, exact_sum, minibatch, noise, short_steps
from fald_hpc.kernels import state as records
from fald_hpc.kernels.jit import DISABLED, compile_for
from fald_hpc.layout import Layout
from fald_hpc.samplers.base import Sampler

RECORD_BYTES = 1 << 24
"""Memory of the records of one segment on a rank, in bytes; bounds the iterations of a segment."""


@dataclass(frozen=True)
class Schedule:
    """How iterations are cut into events and records.

    Attributes
    ----------
    shared : bool
        One sequence of coins for all chains, else one for each chain.
    every_step : bool
        Record every iteration instead of those that average.
    burn_in : int
        Iterations that are not recorded.
    """

    shared: bool = True
    every_step: bool = False
    burn_in: int = 0


def batch_sizes(n_rows: np.ndarray, batch_size: int | str) -> np.ndarray:
    """Return n_i = min(batch_size, N_i) of some clients: int64[c]."""
    return n_rows.copy() if batch_size == "full" else np.minimum(n_rows, int(batch_size))


class Chains:
    """The chains of one rank.

    Parameters
    ----------
    federation : Federation
        The clients.
    sampler : Sampler
        With a number as step size.
    schedule : Schedule
        Events and records.
    layout, rank
        Which chains and clients are here.
    key : uint64
        Generator key.
    communicator : communicator
        The ranks that share these chains.
    """

    def __init__(
        self, federation: Federation, sampler: Sampler, schedule: Schedule, layout: Layout, rank: int, key: np.uint64
    ) -> None:
        self.federation, self.sampler, self.schedule = federation, sampler, schedule
        self.indices = layout.chains(rank)
        self.clients = layout.clients(rank)
        s, d, c = len(self.indices), federation.dimension, len(self.clients)
        b = federation.n_clients
        gamma, tau = float(sampler.step_size), sampler.noise_sharing
        refresh = getattr(sampler, "refresh_prob", 1.0)
        self.settings = records.Settings(
            communicator=federation.group.number,
            first_client=int(self.clients.start),
            first_chain=int(self.indices.start),
            every_step=schedule.every_step,
            key=key,
            n_clients=b,
            width=exact_sum.grid_bits(b),
            step_size=gamma,
            common_scale=math.sqrt(2.0 * gamma * tau / b),
            private_scale=math.sqrt(2.0 * gamma * (1.0 - tau)),
            average_threshold=coins.threshold(sampler.comm_prob),
            refresh_threshold=coins.threshold(refresh),
            burn_in=schedule.burn_in,
            side_by_side=layout.n_chains if schedule.shared else 1,
            batches=1,
        )
        batch = batch_sizes(federation.n_rows, sampler.batch_size)
        words = max(
            (minibatch.n_words(int(n), int(m)) for n, m in zip(federation.n_rows, batch, strict=True)), default=0
        )
        potential = federation.potential
        fused = potential.kernels.advance is not None
        kept = potential.kept_size(int(federation.n_rows.sum())) if sampler.uses_reference else 0
        self.state = records.new_state(c, s, d, kept, potential.kernels.has_offsets)
        places = short_steps.places(d, sampler.batch_size) if fused and potential.takes_rows else 0
        self._problem = short_steps.with_rows_in_lines(potential.for_steps(federation.problem, gamma), places, b)
        lanes = potential.kernels.steps_ahead is not None
        self.work = records.new_work(s, d, federation.n_rows, batch, words, lanes=lanes, places=places)
        self.log = records.new_log(c, s, d)
        largest_group = len(layout.chains(0))
        self.most_steps = max(1, RECORD_BYTES // (8 * largest_group * d) - 1)
        """Iterations of a segment at most, the same on every rank."""
        kernels = potential.kernels
        self._segment = sampler.compiled(kernels)
        self._refresh = sampler.compiled_refresh(kernels) if sampler.uses_reference else None  # type: ignore[attr-defined]

    def compile(self) -> None:
        """Compile the loop, or load it from the disk cache, by running it over no iteration."""
        problem, n = self._problem, len(self.indices)
        problem_type = self.federation.potential.kernels.problem_type
        if problem_type is not None and not DISABLED:
            kind, integer = problem_type(problem), types.int64
            shared = [typeof(self.settings), typeof(self.state), typeof(self.work)]
            compile_for(self._segment, (kind, *shared, typeof(self.log), *[integer] * 3, types.boolean, integer, integer))
            if self._refresh is not None:
                compile_for(self._refresh, (kind, *shared, *[integer] * 3))
        self._segment(problem, self.settings, self.state, self.work, self.log, 0, 0, 0, self.schedule.shared, 0, n)

    def in_batches(self, number: int) -> None:
        """Take the chains in so many batches from now on, at most in as many as there are chains; no result changes."""
        self.settings = self.settings._replace(batches=min(number, len(self.indices)))

    def start(self, x: np.ndarray) -> None:
        """Put all clients of each chain to x: float64[s, d], with Y = x and C its mean gradient: one message."""
        self.state.theta[:] = x
        self.state.mean[:] = x
        self.begin_at(0)
        # steps move a parameter by noise even from 0: the window must hold that too
        scale = max(math.sqrt(2.0 * float(self.sampler.step_size)), 1e-100)
        averaging.set_windows(np.maximum(np.abs(x), scale), self.state.window)
        if self._refresh is None:
            return
        largest = np.zeros(len(self.indices))
        for s in range(x.shape[0]):
            for i in range(len(self.clients)):
                gradient = np.abs(self.federation.client_gradient(i, x[s]))
                largest[s] = max(largest[s], gradient.max()) if np.isfinite(gradient).all() else np.inf
        largest = self.federation.group.maximum(largest)
        if not (largest <= 2.0**exact_sum.MAX_WINDOW).all():
            chain = self.indices[int(np.argmax(~(largest <= 2.0**exact_sum.MAX_WINDOW)))]
            raise Divergence(
                f"the gradient at the start of chain {chain} is not finite: "
                'start nearer to the mode (init = "mode") or rescale the data (standardise = true).'
            )
        averaging.set_windows(largest[:, None], self.state.gradient_window)
        self.work.pending[:] = x
        self._move_reference(0)

    def begin_at(self, k: int) -> None:
        """Let all clients be at the mean before iteration k, whatever they did at others."""
        self.state.averaged_at[:] = k
        self.state.offset_at[:] = self.work.lanes_x_at[:] = records.NEVER

    def _move_reference(self, k: int) -> None:
        assert self._refresh is not None
        status = self._refresh(
            self._problem, self.settings, self.state, self.work, k, 0, len(self.indices)
        )
        self._raise(status, k)

    def restore_kept(self) -> None:
        """Recompute what is kept of the reference after a resume; no message is sent."""
        out = np.empty(self.federation.dimension)
        for s in range(len(self.indices)):
            for i in range(len(self.clients)):
                self.federation.potential.kernels.full_gradient(
                    self.federation.problem, i, self.state.reference[s], self.state.kept[s], out
                )

    def run(self, k: int, target: int, steps: int) -> int:
        """Run a segment from iteration k and return the iteration reached.

        With shared coins and records at communication times it ends right after the first averaging at or after
        ``target`` (the state then is the same on every client), else at ``target`` exactly; never after ``steps``.

        Raises
        ------
        Divergence, GradientFailure
            On every rank of the group.
        """
        to_averaging = self.schedule.shared and not self.schedule.every_step
        stop = steps if to_averaging else min(target, steps)
        needed = target - k + 1
        if self.log.records.shape[1] < needed:
            room = np.zeros((len(self.indices), needed, self.federation.dimension))
            self.log = self.log._replace(records=room)
        self.log.counts[:] = 0
        failed: tuple[int, int, int, int] | None = None
        reached = k
        repeats, most = int(self.state.tally[records.REPEATS]), 0
        parts = self._parts()
        for lo, hi in parts:
            before = self.state.tally.copy()
            # a part of few chains at the end takes its steps as so few chains would alone, with the same bits
            settings = self.settings if len(parts) == 1 else self.settings._replace(side_by_side=hi - lo)
            status, reached = self._segment(
                self._problem, settings, self.state, self.work, self.log,
                k, target, stop, self.schedule.shared, lo, hi,
            )  # fmt: skip
            if status != records.DONE and (failed is None or reached < failed[0]):
                failed = (int(reached), int(status), lo, hi)
            if self.schedule.shared:
                most = max(most, int(self.state.tally[records.REPEATS] - before[records.REPEATS]))
                self.state.tally[records.REPEATS] = repeats + most
                if lo > 0:
                    # the same events as those of the first part
                    of_all = [records.AVERAGES, records.REFRESHES, records.MESSAGES]
                    self.state.tally[of_all] = before[of_all]
            # chains that diverge in other parts may do so earlier; all other failures are the end
            if failed is not None and not (self.schedule.shared and status in (records.DONE, records.NOT_FINITE)):
                break
        if failed is not None:
            self._raise(failed[1], failed[0], *failed[2:])
        return int(reached)

    def _parts(self) -> list[tuple[int, int]]:
        """Return the first and one past the last of the chains that run a segment together."""
        n = len(self.indices)
        size = self.federation.potential.kernels.chains_together or n
        if not self.schedule.shared:
            size = 1
        elif len(self.clients) < self.settings.n_clients or self.settings.batches > 1:
            size = n
        return [(lo, min(lo + size, n)) for lo in range(0, n, size)]

    def _raise(self, status: int, k: int, lo: int = 0, hi: int | None = None) -> None:
        """Turn the result of a segment into an exception that names client, chain and step where they are here."""
        if status == records.MPI_ERROR:
            raise RuntimeError(f"MPI_Allreduce reported an error at step {k}.")
        if status != records.DONE:
            raise self._failure(status, k, lo, hi)

    def trouble(self, k: int) -> ChainFailure | None:
        """Return what is wrong with this rank's clients before iteration k; the loop looks at averagings only."""
        if self.work.failed[0] >= 0:
            return self._failure(records.FAILED, k)
        if not (np.abs(self.state.theta) <= 2.0**exact_sum.MAX_WINDOW).all():
            return self._failure(records.NOT_FINITE, k)
        return None

    def _failure(self, status: int, k: int, lo: int = 0, hi: int | None = None) -> ChainFailure:
        i, s = self._culprit(status, lo, hi)
        client = None if i is None else self.settings.first_client + i
        chain = None if s is None else self.indices[s]
        where = "another rank" if client is None else f"client {client}, chain {chain}"
        if status == records.FAILED:
            step = k if i is None else int(self.work.failed[2])
            said = None if i is None or s is None else self._said(i, s)
            return GradientFailure(f"the gradient failed at {where}, step {step}", step, client, chain, said)
        return Divergence(f"a value of {where} was not finite by step {k}", k, client, chain)

    def _culprit(self, status: int, lo: int, hi: int | None) -> tuple[int | None, int | None]:
        """Return the local client and chain of the first failure on this rank among chains lo..hi-1, or Nones."""
        if status == records.FAILED:
            return (None, None) if self.work.failed[0] < 0 else (int(self.work.failed[0]), int(self.work.failed[1]))
        for values in (self.state.theta, self.work.gradient):
            bad = np.argwhere(~(np.abs(values[:, lo:hi]) <= 2.0**exact_sum.MAX_WINDOW))
            if bad.size:
                return int(bad[0][0]), lo + int(bad[0][1])
        return None, None

    def _said(self, i: int, s: int) -> str | None:
        """Return what the user's function raises for a local client where a chain stands."""
        points = [self.state.theta[i, s]]
        if self.sampler.uses_reference:
            points += [self.state.reference[s], self.work.pending[s]]
        return self.federation.potential.raised(self.federation.problem, i, points)

    def averaged(self, k: int) -> bool:
        """Return whether all clients of all chains are equal before iteration k."""
        return bool((self.state.averaged_at == k).all())

    def state_before(self, k: int) -> records.State:
        """Return what goes on from before iteration k: of the offsets, those that are of that iteration."""
        state = self.state
        amid = state.offset_at == k
        offset = np.where(amid[:, None], state.offset, 0.0) if state.offset.size else state.offset
        return state._replace(offset=offset, offset_at=np.where(amid, k, records.NEVER))


def group_communicator(communicator: Serial, layout: Layout) -> Any:
    """Return the communicator of the ranks that share this rank's chains."""
    return communicator if layout.chain_groups == 1 else communicator.split(layout.chain_group(communicator.rank))


__all__ = [
    "Chains",
    "Divergence",
    "GradientFailure",
    "Schedule",
    "batch_sizes",
    "group_communicator",
    "noise",
]
