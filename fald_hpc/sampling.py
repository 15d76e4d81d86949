"""``sample``: the one entry point of the library, serial and under MPI."""

import os
import platform
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from fald_hpc import identity, messages, summary, threads, time_limit, watch
from fald_hpc.chains import Schedule
from fald_hpc.comm import RankError, Serial, connect, everywhere
from fald_hpc.data.clients import Clients
from fald_hpc.drift import numbers, waiting
from fald_hpc.drift.spread import sampled_variances
from fald_hpc.engine import Engine
from fald_hpc.errors import Stopped, UserError
from fald_hpc.folder import Folder
from fald_hpc.kernels import moments
from fald_hpc.metrics import diagnostics
from fald_hpc.options import Options
from fald_hpc.potentials.base import Potential
from fald_hpc.run import Run
from fald_hpc.samplers.base import Sampler
from fald_hpc.study import Request, Study, prepare
from fald_hpc.timers import Timers

PATIENCE = 4.0
"""Seconds that a failing rank waits for the others to fail alike, before it ends the job."""

FAILED = 1


def sample(
    potential: Potential,
    clients: Clients,
    sampler: Sampler,
    *,
    steps: int,
    chains: int = 4,
    seed: int = 1,
    burn_in: float | int = 0.1,
    init: Any = "dispersed",
    schedule: str = "shared",
    record: str = "communication",
    standardise: bool = False,
    chain_groups: int | str = "auto",
    chain_batches: int | str = "auto",
    segment_steps: int | str = "auto",
    draws_megabytes: float = 64.0,
    thin: int = 1,
    covariance: str = "auto",
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    time_limit: float | str | None = None,
    checkpoint_seconds: float = 30.0,
    comm: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Sample the product of the clients' posteriors.

    All ranks of the communicator call it with the same arguments; the results are on rank 0, the same to the last bit
    for any number of ranks.

    Parameters
    ----------
    potential : Potential
        The model, for instance ``Logistic()``.
    clients : Clients
        The clients' data; a rank loads only its own clients.
    sampler : Sampler
        ``FALD(...)`` or ``VRFALDStar(...)``.
    steps, chains : int
        Iterations of each chain, and chains.
    seed : int
        Root of all randomness, 0..2^64-1.
    burn_in : float or int
        Iterations that are not recorded: a fraction below 1, or a number.
    init : str or array
        "dispersed", "mode", "prior", or float64[d] or float64[chains, d].
    schedule : "shared" or "independent"
        One sequence of coins for all chains (one message an event), or one for each chain.
    record : "communication" or "every-step"
        Record the average over clients when it is communicated, or at every iteration (all clients on one rank).
    standardise : bool
        Scale the features by exact moments over all clients; undone in the results.
    chain_groups : int or "auto"
        Groups of ranks that split the chains; each hosts all clients.
    chain_batches : int or "auto"
        Batches of the chains of a rank: one computes while the messages of the others are under way; the results do not
        depend on it. "auto": 1 on one node, else 1 or 2, measured (:mod:`fald_hpc.batches`).
    segment_steps : int or "auto"
        Iterations between two returns to Python; the results do not depend on it.
    draws_megabytes : float
        Cap on the kept draws; thinning doubles when it is reached.
    thin : int
        Keep one of so many records from the start.
    covariance : "auto", "full" or "diagonal"
        Stream the full covariance (auto: up to 256 parameters) or the variances only.
    out : path, optional
        Folder for the results; without it they are in memory only.
    resume, overwrite : bool
        Continue the run in ``out`` (or start it there), or replace it.
    time_limit : float or "auto", optional
        Seconds since the start of the process after which the run stops and saves; "auto": the end of the batch job.
    checkpoint_seconds : float
        Seconds between two checkpoints.
    comm : mpi4py.MPI.Comm, optional
        Communicator, duplicated inside; default: all ranks if an MPI launcher started this process.
    progress : callable, optional
        Called on rank 0 with (iterations done, steps) after every segment.

    Raises
    ------
    UserError
        For a mistake in the arguments or the data, before anything is written.
    Divergence, GradientFailure
        On all ranks, if a chain leaves the finite numbers or a user's gradient raises.
    StorageFailure
        On all ranks, if results cannot be written.
    Stopped
        On all ranks, if a signal (SIGTERM, SIGINT, SIGUSR1) or the time limit ended the run; its state is saved.
        Signals are taken over only for a run with ``out``.

    What fails on one rank alone, in a way the others cannot learn of, ends all processes of the job with that rank's
    traceback.
    """
    timers = Timers()
    communicator = comm if isinstance(comm, Serial) else connect(comm)
    keep = Folder(None if out is None else Path(out), communicator)
    alone = watch.active() is not None or out is None or threading.current_thread() is not threading.main_thread()
    try:
        with nullcontext() if alone else watch.Watch():
            try:
                wanted = request(
                    potential, clients, sampler, steps, chains, seed, burn_in, init, schedule, record, standardise
                )
                options = Options(draws_megabytes, thin, covariance, segment_steps, chain_batches, checkpoint_seconds)
                options = replace(options, deadline=_deadline(time_limit, out, communicator))
                options.check(schedule)
                error = None
            except UserError as found:
                error = found
            communicator.together(error)
            return _run(
                wanted, options, keep, timers, communicator, chain_groups, burn_in, resume, overwrite, progress
            )
    except BaseException as problem:
        _mark(keep, problem)
        _end(problem, communicator)
    finally:
        keep.release()
        watching = watch.active()
        if watching is not None:
            watching.sign(None)
        if not isinstance(comm, Serial):
            communicator.free()


def _run(
    wanted: Request, options: Options, keep: Folder, timers: Timers, communicator: Serial, chain_groups: int | str,
    burn_in: float | int, resume: bool, overwrite: bool, progress: Callable[[int, int], None] | None,
) -> Run:  # fmt: skip
    saved = keep.claim(resume, overwrite)
    arrays, meta = saved if saved is not None else (None, None)
    meta = communicator.share(meta)
    before = keep.recorded() if meta is not None else {}
    asked_before = communicator.share(before.get("burn_in_requested"))
    if meta is not None:
        _same_burn_in(burn_in, asked_before, meta)
        wanted = replace(wanted, schedule=replace(wanted.schedule, burn_in=int(meta["burn_in"])))
    study = prepare(
        wanted,
        communicator,
        chain_groups,
        known_step_size=None if meta is None else float(meta["step_size"]),
        need_mode=meta is None,
        options={
            **options.fixed(),
            "output.draws_megabytes": options.draws_megabytes,
            "run.segment_steps": str(options.segment_steps),
            "run.chain_batches": str(options.chain_batches),
            "--resume": resume,
            "--overwrite": overwrite,
        },
    )
    _same_as_saved(study, options, meta)
    if communicator.rank == 0:
        for note in study.notes:
            warnings.warn(note, stacklevel=3)
    timers.lap("setup")
    engine = Engine(study, options, keep.path, timers)
    engine.drift.waited = waiting.earlier(before)
    asked = burn_in if asked_before is None else asked_before
    drift = {"waiting": engine.drift.waited}
    keep.begin(_manifest(study, asked, state="running", drift=drift), meta is not None, wanted.clients)
    engine.compile()
    if meta is None:
        engine.begin()
    else:
        engine.restore(arrays, meta)
    try:
        engine.run(progress if communicator.rank == 0 else None)
        engine.close()
        run = _finish(engine, keep, asked)
    except Stopped:
        _release(study, communicator)
        raise
    _release(study, communicator)
    return run


def _release(study: Study, communicator: Serial) -> None:
    """Release the communicator of the chain group: all ranks together, at the end or after a stop at one step."""
    if study.group is not communicator:
        study.group.free()


def _deadline(limit: float | str | None, out: Any, communicator: Serial) -> float | None:
    """Return rank 0's deadline, None elsewhere."""
    if limit is not None and limit != "auto" and (isinstance(limit, (bool, str)) or not 0.0 < limit < float("inf")):
        raise UserError(f'time_limit = {limit!r}: give a positive number of seconds or "auto".')
    if limit is not None and out is None:
        raise UserError("time_limit needs a folder to save the state in: give out.")
    return time_limit.deadline(limit, os.environ) if communicator.rank == 0 else None  # type: ignore[arg-type]


def _mark(keep: Folder, problem: BaseException) -> None:
    """Note in the manifest how the run ended."""
    if isinstance(problem, Stopped):
        keep.mark("stopped", step=problem.step, reason=str(problem), drift={"waiting": problem.waiting})
    elif not isinstance(problem, UserError):
        keep.mark("failed", reason=f"{type(problem).__name__}: {problem}")


def _end(problem: BaseException, communicator: Serial) -> NoReturn:
    """Raise a problem that all ranks have; end all processes of the job for one that others wait behind."""
    if communicator.size == 1 or getattr(problem, "agreed", False):
        raise problem
    if communicator.all_failed(PATIENCE + min(3.0, 0.1 * communicator.rank)):
        if communicator.rank == 0:
            raise everywhere(problem)
        raise everywhere(RankError(f"rank 0: {type(problem).__name__}: {problem}")) from None
    words = str(problem) if isinstance(problem, UserError) else "".join(traceback.format_exception(problem)).rstrip()
    print(f"fald: rank {communicator.rank} failed and ends the job: {words}", file=sys.stderr, flush=True)
    communicator.abort(FAILED)
    raise problem


def request(
    potential: Potential, clients: Clients, sampler: Sampler, steps: int, chains: int, seed: int, burn_in: float | int,
    init: Any, schedule: str, record: str, standardise: bool,
) -> Request:  # fmt: skip
    """Check the arguments and return the request."""
    for name, value, low in (("steps", steps, 1), ("chains", chains, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
            raise UserError(f"{name} = {value!r}: give a whole number of at least {low}.")
    if seed >= 2**64:
        raise UserError(f"seed = {seed}: give a whole number below 2^64.")
    if schedule not in ("shared", "independent"):
        raise UserError(f'schedule = {schedule!r}: give "shared" or "independent".')
    if record not in ("communication", "every-step"):
        raise UserError(f'record = {record!r}: give "communication" or "every-step".')
    if isinstance(burn_in, bool) or not isinstance(burn_in, (int, float)) or not burn_in >= 0:
        raise UserError(f"burn_in = {burn_in!r}: give a fraction in [0, 1) or a number of steps.")
    if isinstance(burn_in, float):
        if not burn_in < 1.0:
            raise UserError(f"burn_in = {burn_in!r}: a fraction must be below 1; give a whole number for steps.")
        burn_in = int(Fraction(repr(burn_in)) * steps)
    if burn_in >= steps:
        raise UserError(f"burn_in = {burn_in} leaves none of the {steps} steps to record; give fewer.")
    if sampler.batch_size != "full" and not potential.takes_rows:
        raise UserError(
            f'batch_size = {sampler.batch_size}: {potential.name} clients have no rows to draw from; use "full".'
        )
    plan = Schedule(schedule == "shared", record == "every-step", int(burn_in))
    return Request(potential, clients, sampler, int(steps), int(chains), int(seed), plan, init, standardise)


def _same_burn_in(burn_in: float | int, before: Any, meta: dict[str, Any]) -> None:
    """Refuse another burn-in than the first start had; a fraction stands for what that start made of it."""
    if before is None or (type(burn_in) is type(before) and burn_in == before) or burn_in == int(meta["burn_in"]):
        return
    raise everywhere(
        UserError(
            f"run.burn_in = {burn_in} where the run in this folder was started with {before} ({meta['burn_in']} steps): "
            "it is fixed at the first start; leave it, or use another folder."
        )
    )


def _same_as_saved(study: Study, options: Options, meta: dict[str, Any] | None) -> None:
    """Refuse to continue a run with other settings, versions or data, naming the first that differs."""
    error = None
    if meta is not None and study.communicator.rank == 0:
        ids = study.request.clients.ids
        changed = [i for i, pair in enumerate(zip(meta["data"], study.fingerprints, strict=False)) if len({*pair}) > 1]
        found = identity.first_difference(meta["settings"], identity.settings(study.request) | options.fixed())
        if found is not None:
            name, before, now = found
            error = UserError(
                f"{name} = {now} where the run in this folder has {before}: --resume may change steps, ranks, the time "
                "limit and output.draws_megabytes only; set it back, or use another folder."
            )
        elif changed:
            error = UserError(
                f"the data of client {ids[changed[0]]} have changed since the run in this folder was started: restore "
                "them, or use another folder."
            )
        elif meta["step"] > study.request.steps:
            error = UserError(
                f"the run in this folder is at step {meta['step']} already: ask for at least as many steps "
                f"(run.steps = {study.request.steps})."
            )
    study.communicator.together(error)


def _manifest(study: Study, burn_in: float | int, **more: Any) -> dict[str, Any]:
    import numba

    from fald_hpc import __version__

    request, layout = study.request, study.layout
    return {
        "fald_hpc": __version__,
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "numba": numba.__version__},
        "potential": {"name": request.potential.name, **dict(identity.fields(request.potential))},
        "sampler": {"name": study.sampler.name, **dict(identity.fields(study.sampler))},
        "step_size": study.sampler.step_size,
        "step_size_requested": request.sampler.step_size,
        "steps": request.steps,
        "chains": request.chains,
        "seed": request.seed,
        "burn_in": request.schedule.burn_in,
        "burn_in_requested": burn_in,
        "schedule": "shared" if request.schedule.shared else "independent",
        "record": "every-step" if request.schedule.every_step else "communication",
        "parameters": list(study.names),
        "clients": list(request.clients.ids),
        "data": study.fingerprints,
        "layout": {"ranks": layout.n_ranks, "client_groups": layout.client_groups, "chain_groups": layout.chain_groups},
        "threads": threads.recorded(os.environ),
        "notes": study.notes,
        **more,
    }


def _finish(engine: Engine, keep: Folder, burn_in: float | int) -> Run:
    """Build the results on rank 0; ranks other than 0 get an empty run."""
    study = engine.study
    sent = engine.messages()
    machine = study.communicator.describe()
    arrays = {name: study.communicator.gather(value) for name, value in moments.to_arrays(engine.moments).items()}
    sums, waited = engine.drift.gathered(), engine.drift.waiting(engine.k)
    run = Run({"parameters": [], "chains": study.request.chains, "steps": study.request.steps}, {})
    error = None
    if study.communicator.rank == 0:
        assert sent is not None
        everything = moments.from_arrays({name: np.concatenate(parts or []) for name, parts in arrays.items()})
        averages, refreshes, _ = (int(n) for n in messages.events(study, 0, study.request.steps))
        engine.timers.lap("write")
        seconds = dict(engine.timers.phases)
        seconds["total"] = time.perf_counter() - engine.timers.begun
        drift = numbers.numbers(
            sums, study.sampler.uses_reference, study.sampler.batch_size != "full", sampled_variances(everything, study)
        )
        result = summary.build(
            everything,
            study.names,
            steps=study.request.steps,
            communications=averages,
            refreshes=refreshes if study.sampler.uses_reference else 0,
            seconds=seconds,
            extra={"drift": numbers.digest(drift, study.request.clients.ids)},
        )
        result["seconds"]["waiting"] = waiting.total(waited)
        drift["waiting"] = waited
        more = {"messages": sent, "chain_batches": engine.batches.describe(), "machine": machine, "seconds": seconds}
        manifest = _manifest(study, burn_in, state="finished", drift=drift, **more)
        try:
            if keep.path is not None:
                summary.write(keep.path, result)
                keep.write_manifest(manifest)
        except OSError as found:
            error = keep.cannot_write(found)
        assert engine.store is not None
        draws = None if keep.path is not None else engine.store.array()
        run = Run(result, manifest, path=keep.path, draws=draws, covariance=diagnostics.covariance(everything))
    study.communicator.together(error)
    return run
