"""What a run would do, without running it: layout, messages, bytes, memory and an estimate of the time.

The schedule is known from the seed, so the number of messages is exact. The time per iteration is measured on the rank
with most work, over a fraction of a second; the time of a message is a stated constant (:data:`MESSAGE_SECONDS`, or
:data:`SWITCH_SECONDS` where ranks outnumber cores).
"""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fald_hpc import batches
from fald_hpc import layout as layouts
from fald_hpc.chains import RECORD_BYTES, Chains, batch_sizes
from fald_hpc.comm import Serial
from fald_hpc.events import expected_events
from fald_hpc.federation import Federation
from fald_hpc.kernels import moments
from fald_hpc.kernels.exact_sum import BINS
from fald_hpc.kernels.quadratic import LARGEST_DIMENSION
from fald_hpc.kernels.short_rows import MOST
from fald_hpc.kernels.state import FLAGS
from fald_hpc.study import Request, Study, prepare

MESSAGE_SECONDS = 2e-6
"""Assumed latency of a message between ranks of one node; a network costs more."""

SWITCH_SECONDS = 10e-6
"""Assumed time of a message a rank of each core, where ranks share cores: every one of them must get its turn first."""

BYTES_PER_SECOND = 2e9
"""Assumed bandwidth of a message."""

INTERPRETER_BYTES = 180e6
"""Resident memory of a rank before it holds any data: interpreter, NumPy, numba, MPI."""

_MEASURE_SECONDS = 0.3


@dataclass(frozen=True)
class RankPlan:
    """What one rank hosts: global indices, and rows of its clients."""

    rank: int
    clients: range
    chains: range
    rows: int


@dataclass(frozen=True, eq=False)
class Plan:
    """The plan of a run; printed, it is a report.

    Attributes
    ----------
    study : Study
        The prepared study, as one process sees it.
    ranks : sequence of RankPlan
        Clients and chains of every rank.
    averagings, refreshes, messages : int
        Exact numbers over the whole run (with independent coins: over all chains).
    chain_batches : int
        Batches of the chains of a rank, each with messages of its own.
    message_bytes : int
        Size of the largest message of one rank.
    total_bytes : int
        Bytes that one rank gives to all its messages.
    memory_bytes : float
        Estimate for the rank with most data.
    step_seconds : float
        Measured seconds of one iteration of the rank with most work.
    seconds : float
        Estimate of the sampling time.
    notes : sequence of str
        Warnings.
    """

    study: Study
    ranks: Sequence[RankPlan]
    averagings: int
    refreshes: int
    messages: int
    chain_batches: int
    message_bytes: int
    total_bytes: int
    memory_bytes: float
    step_seconds: float
    seconds: float
    notes: Sequence[str]

    def __str__(self) -> str:
        """Return the report."""
        request = self.study.request
        lines = [
            f"parameters   {len(self.study.names)}: {_some(self.study.names)}",
            f"step size    {self.study.sampler.step_size:g}"
            + (' (from "auto")' if request.sampler.step_size == "auto" else ""),
            f"burn-in      {request.schedule.burn_in} of {request.steps} steps",
            "",
            "rank  clients  chains     rows",
        ]
        shown = self.ranks if len(self.ranks) <= 16 else [*self.ranks[:8], *self.ranks[-4:]]
        for plan in shown:
            if len(shown) < len(self.ranks) and plan is self.ranks[-4]:
                lines.append(" ...")
            lines.append(f"{plan.rank:4d}  {_span(plan.clients):>7}  {_span(plan.chains):>6}  {plan.rows:7d}")
        per = "" if request.schedule.shared else f" over all {request.chains} chains"
        call = "MPI_Allreduce"
        if self.chain_batches > 1:
            call = f"MPI_Iallreduce, one for each of {self.chain_batches} batches of chains"
        lines += [
            "",
            f"averagings   {self.averagings}{per}",
            f"refreshes    {self.refreshes}{per}",
            f"messages     {self.messages} collective ({call}), at most {_bytes(self.message_bytes)} each, "
            f"{_bytes(self.total_bytes)} from each rank",
            f"memory       about {_bytes(self.memory_bytes)} on the largest rank",
            f"time         about {_seconds(self.seconds)} of sampling "
            f"({self.step_seconds * 1e6:.3g} us a step, measured here), and a few seconds to start",
        ]
        lines += [f"warning: {note}" for note in self.notes]
        return "\n".join(lines)


def make(
    request: Request, n_ranks: int, chain_groups: int | str = "auto", chain_batches: int | str = batches.AUTO
) -> Plan:
    """Return the plan of a request on a number of ranks, computed in one process; "auto" stands for one batch.

    Raises
    ------
    UserError
        If the request or the layout is not possible.
    """
    layout = layouts.choose(n_ranks, len(request.clients), request.chains, chain_groups)
    study = prepare(request, Serial())
    rows = study.federation.n_rows
    ranks = [
        RankPlan(
            rank, layout.clients(rank), layout.chains(rank),
            int(rows[layout.clients(rank).start : layout.clients(rank).stop].sum()),
        )
        for rank in range(n_ranks)
    ]  # fmt: skip
    averagings, refreshes, messages = (
        int(n)
        for n in expected_events(
            study.sampler, request.schedule, study.key, range(request.chains), 0, request.steps
        )
    )
    d = study.federation.dimension
    chains_of_message = len(layout.chains(0)) if request.schedule.shared else 1
    number = batches.possible(1 if chain_batches == batches.AUTO else int(chain_batches), layout, request.schedule)
    largest = 8 * -(-chains_of_message // number) * (BINS * d + FLAGS)
    row_bytes = 8 * chains_of_message * (BINS * d + FLAGS)
    total_bytes = messages * row_bytes if request.schedule.shared else messages * row_bytes / layout.chain_groups
    messages *= number
    if study.sampler.uses_reference:
        # the start is one message for all chains of a group of ranks
        messages += 1 if request.schedule.shared else layout.chain_groups
        total_bytes += row_bytes
        largest = max(row_bytes, largest * (2 if study.sampler.comm_prob < 1.0 else 1))
    busiest = _busiest(study, layout, ranks)
    step_seconds = _measure(study, layout, busiest)
    cores = len(os.sched_getaffinity(0))
    per_rank_messages = messages if request.schedule.shared else messages / layout.chain_groups
    share = max(1.0, n_ranks / cores)
    latency = MESSAGE_SECONDS if n_ranks <= cores else SWITCH_SECONDS * share
    message_time = per_rank_messages * latency + total_bytes / BYTES_PER_SECOND if layout.client_groups > 1 else 0.0
    notes = list(study.notes)
    if n_ranks > cores:
        notes.append(
            f"{n_ranks} ranks are more than the {cores} cores of this machine; the time is for {cores} cores shared."
        )
    if layout.chain_groups > 1:
        notes.append(
            f"{layout.chain_groups} groups of ranks split the chains; every group opens all clients' data."
        )
    return Plan(
        study=study,
        ranks=ranks,
        averagings=averagings,
        refreshes=refreshes if study.sampler.uses_reference else 0,
        messages=messages,
        chain_batches=number,
        message_bytes=largest,
        total_bytes=int(total_bytes),
        memory_bytes=_memory(study, layout, busiest, row_bytes),
        step_seconds=step_seconds,
        seconds=step_seconds * request.steps * share + message_time,
        notes=notes,
    )


def _busiest(study: Study, layout: layouts.Layout, ranks: Sequence[RankPlan]) -> RankPlan:
    """Return the rank whose clients touch most rows per iteration."""
    rows = study.federation.n_rows
    per_step = batch_sizes(rows, study.sampler.batch_size) + 1.0
    if study.sampler.uses_reference:
        per_step = per_step + getattr(study.sampler, "refresh_prob", 0.0) * rows
    return max(ranks, key=lambda plan: float(per_step[plan.clients.start : plan.clients.stop].sum()) * len(plan.chains))


def _measure(study: Study, layout: layouts.Layout, busiest: RankPlan) -> float:
    """Return the seconds of one iteration of a rank, its clients run as a federation of their own."""
    request, whole = study.request, study.federation
    data = request.clients.load(busiest.clients)
    shares = np.full(len(data), 1.0 / len(data))
    part = Federation(
        whole.potential,
        whole.potential.pack(_scaled(study, data), shares),
        whole.n_rows[busiest.clients.start : busiest.clients.stop],
        len(data),
        0,
        whole.names,
        Serial(),
    )
    # a tenth of the step keeps a part of the clients stable and costs the same
    gamma = 0.1 * float(study.sampler.step_size)
    sampler = replace(study.sampler, step_size=gamma)
    own = layouts.Layout(len(data), len(busiest.chains), 1, 1)
    chains = Chains(part, sampler, replace(request.schedule, burn_in=0), own, 0, study.key)
    chains.compile()
    x = np.zeros(whole.dimension) if study.mode is None else study.mode
    chains.start(np.tile(x, (len(busiest.chains), 1)))
    k = chains.run(0, 16, 1 << 39)
    # the mean, not the best: a machine that others use is slow for the run too
    first, length, begun = k, 64, time.perf_counter()
    while time.perf_counter() - begun < _MEASURE_SECONDS:
        k, length = chains.run(k, k + length, 1 << 39), min(2 * length, chains.most_steps)
    return (time.perf_counter() - begun) / (k - first)


def _scaled(study: Study, data: Sequence[Any]) -> list[Any]:
    if study.scale is None:
        return list(data)
    from fald_hpc.data import standardise

    return [replace(client, features=standardise.apply(client.features, *study.scale)) for client in data]


def _memory(study: Study, layout: layouts.Layout, busiest: RankPlan, row_bytes: int) -> float:
    """Return an estimate of a rank's resident memory in bytes."""
    d, c, s = study.federation.dimension, len(busiest.clients), len(busiest.chains)
    takes_rows = study.request.potential.takes_rows
    packed = 8.0 * busiest.rows * (d + 3) if takes_rows else 8.0 * c * d * (d + 1)
    # short rows may lie there a third time, in whole lines of the cache
    lines = 8.0 * busiest.rows * (d + 10) if takes_rows and d <= MOST else 0.0
    # Gaussians have the matrices of their steps too, small ones both once more in lanes, and chains twice in lanes, offsets
    lanes = 0.0 if takes_rows else 8.0 * c * d * (d * (3 if d <= LARGEST_DIMENSION else 1) + 2 * (s + 15) + s)
    kept = 8.0 * s * study.request.potential.kept_size(busiest.rows) if study.sampler.uses_reference else 0.0
    state = 8.0 * s * d * (2 * c + 6) + 4.0 * row_bytes
    batches = moments.n_batches(study.request.chains, d)
    statistics = 8.0 * s * d * (2 * batches + (d if d <= 256 else 1))
    return INTERPRETER_BYTES + 2.0 * packed + lines + lanes + kept + state + statistics + RECORD_BYTES


def _span(indices: range) -> str:
    return f"{indices.start}-{indices.stop - 1}" if len(indices) > 1 else f"{indices.start}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def _bytes(n: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000.0:
            return f"{n:.3g} {unit}"
        n /= 1000.0
    return f"{n:.3g} TB"


def _seconds(s: float) -> str:
    if s < 120.0:
        return f"{s:.2g} s"
    return f"{s / 60.0:.3g} min" if s < 7200.0 else f"{s / 3600.0:.3g} h"
