"""``sample``: the one entry point of the library, serial and under MPI."""

import os
import platform
import shutil
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from fald_hpc import checkpoint, durable, summary, threads
from fald_hpc.chains import Schedule
from fald_hpc.comm import Serial, connect
from fald_hpc.data import assignment
from fald_hpc.data.clients import Clients
from fald_hpc.engine import Engine, Options, Timers
from fald_hpc.errors import UserError
from fald_hpc.kernels import moments
from fald_hpc.metrics import diagnostics
from fald_hpc.potentials.base import Potential
from fald_hpc.run import Run
from fald_hpc.samplers.base import Sampler
from fald_hpc.study import Request, Study, prepare

MANIFEST = "manifest.json"


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
    segment_steps: int | str = "auto",
    draws_megabytes: float = 64.0,
    thin: int = 1,
    covariance: str = "auto",
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
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
        Continue the run in ``out``, or replace it.
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
    """
    timers = Timers()
    communicator = comm if isinstance(comm, Serial) else connect(comm)
    try:
        wanted = request(potential, clients, sampler, steps, chains, seed, burn_in, init, schedule, record, standardise)
        options = Options(draws_megabytes, thin, covariance, segment_steps)
        _check_options(options)
        error = None
    except UserError as found:
        error = found
    communicator.together(error)
    folder = None if out is None else Path(out)
    saved = _claim(folder, resume, overwrite, communicator)
    arrays, meta = saved if saved is not None else (None, None)
    meta = communicator.share(meta)
    if meta is not None:
        wanted = _as_first_started(wanted, meta)
    study = prepare(
        wanted,
        communicator,
        chain_groups,
        known_step_size=None if meta is None else float(meta["step_size"]),
        need_mode=meta is None,
    )
    _same_as_saved(study, meta)
    if communicator.rank == 0:
        for note in study.notes:
            warnings.warn(note, stacklevel=2)
    timers.lap("setup")
    engine = Engine(study, options, folder, timers)
    _begin_folder(folder, overwrite, study, meta is not None)
    engine.compile()
    if meta is None:
        engine.begin()
    else:
        engine.restore(arrays, meta)
    engine.run(progress if communicator.rank == 0 else None)
    engine.close()
    run = _finish(engine)
    if not isinstance(comm, Serial):
        communicator.free()
    return run


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
    if isinstance(burn_in, bool) or not isinstance(burn_in, (int, float)) or not 0 <= burn_in:
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


def _check_options(options: Options) -> None:
    if options.covariance not in ("auto", "full", "diagonal"):
        raise UserError(f'covariance = {options.covariance!r}: give "auto", "full" or "diagonal".')
    if options.thin < 1 or not options.draws_megabytes > 0:
        raise UserError("thin must be at least 1 and draws_megabytes positive.")
    if options.segment_steps != "auto" and int(options.segment_steps) < 1:
        raise UserError(f'segment_steps = {options.segment_steps!r}: give a whole number of at least 1 or "auto".')


def _claim(
    folder: Path | None, resume: bool, overwrite: bool, communicator: Serial
) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Look at the folder on rank 0: refuse what would destroy something; return the checkpoint to continue from."""
    error: UserError | None = None
    saved = None
    if folder is not None and communicator.rank == 0:
        try:
            ours = (folder / MANIFEST).is_file() or (folder / "checkpoint").is_dir()
            if folder.exists() and not folder.is_dir():
                raise UserError(f"{folder} is a file: give another folder with --out.")
            if folder.is_dir() and any(folder.iterdir()):
                if not ours:
                    raise UserError(f"{folder} is not empty and holds no run: give another folder with --out.")
                if resume:
                    saved = checkpoint.load(folder / "checkpoint")
                elif not overwrite:
                    raise UserError(f"{folder} holds a run: continue it with --resume or replace it with --overwrite.")
        except UserError as found:
            error = found
    communicator.together(error)
    return saved


def _as_first_started(wanted: Request, meta: dict[str, Any]) -> Request:
    """Return the request with the burn-in that the first start fixed."""
    from dataclasses import replace

    return replace(wanted, schedule=replace(wanted.schedule, burn_in=int(meta["burn_in"])))


def _same_as_saved(study: Study, meta: dict[str, Any] | None) -> None:
    """Refuse to continue a run with other settings or data."""
    error = None
    if meta is not None and study.communicator.rank == 0:
        if meta["digest"] != study.request.digest():
            error = UserError(
                "the run in this folder was started with other settings or versions: only steps, ranks and output "
                "may change on --resume; use another folder for another run."
            )
        elif meta["data"] != study.fingerprints:
            changed = [
                study.request.clients.ids[i] for i, (a, b) in enumerate(zip(meta["data"], study.fingerprints)) if a != b
            ]
            error = UserError(
                f"the data of client {changed[0]} have changed since the run in this folder was started."
                if changed
                else "the number of clients has changed since the run in this folder was started."
            )
        elif meta["step"] > study.request.steps:
            error = UserError(
                f"the run in this folder is at step {meta['step']} already; ask for at least as many steps."
            )
    study.communicator.together(error)


def _begin_folder(folder: Path | None, overwrite: bool, study: Study, resumed: bool) -> None:
    """Make the folder and write the first manifest, on rank 0."""
    error = None
    if folder is not None and study.communicator.rank == 0:
        try:
            if folder.is_dir() and not resumed:
                for name in ("draws.zarr", "checkpoint"):
                    if (folder / name).is_dir():
                        shutil.rmtree(folder / name)
                for name in ("summary.json", MANIFEST, assignment.FILE):
                    (folder / name).unlink(missing_ok=True)
            folder.mkdir(parents=True, exist_ok=True)
            _write_manifest(folder, _manifest(study, state="running"))
            assignment.save(folder, study.request.clients)
        except OSError as found:
            error = UserError(f"cannot write to {folder}: {found.strerror}.")
    study.communicator.together(error)


def _manifest(study: Study, **more: Any) -> dict[str, Any]:
    import numba

    from fald_hpc import __version__

    request, layout = study.request, study.layout
    return {
        "fald_hpc": __version__,
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "numba": numba.__version__},
        "potential": {"name": request.potential.name, **asdict(request.potential)},  # type: ignore[call-overload]
        "sampler": {"name": study.sampler.name, **asdict(study.sampler)},
        "step_size": study.sampler.step_size,
        "step_size_requested": request.sampler.step_size,
        "steps": request.steps,
        "chains": request.chains,
        "seed": request.seed,
        "burn_in": request.schedule.burn_in,
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


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    import json

    durable.write(folder / MANIFEST, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())


def _finish(engine: Engine) -> Run:
    """Build the results on rank 0; ranks other than 0 get an empty run."""
    study, folder = engine.study, engine.folder
    messages = engine.messages()
    machine = study.communicator.describe()
    arrays = {name: study.communicator.gather(value) for name, value in moments.to_arrays(engine.moments).items()}
    if study.communicator.rank != 0 or messages is None:
        return Run({"parameters": [], "chains": study.request.chains, "steps": study.request.steps}, {})
    everything = moments.from_arrays({name: np.concatenate(parts or []) for name, parts in arrays.items()})
    averages, refreshes, _ = (int(n) for n in engine.predicted_events(0))
    engine.timers.lap("write")
    seconds = dict(engine.timers.phases)
    seconds["total"] = time.perf_counter() - engine.timers.begun
    result = summary.build(
        everything,
        study.names,
        steps=study.request.steps,
        communications=averages,
        refreshes=refreshes if study.sampler.uses_reference else 0,
        seconds=seconds,
    )
    manifest = _manifest(study, state="finished", messages=messages, machine=machine, seconds=seconds)
    if folder is not None:
        summary.write(folder, result)
        _write_manifest(folder, manifest)
    assert engine.store is not None
    draws = None if folder is not None else engine.store.array()
    return Run(result, manifest, path=folder, draws=draws, covariance=diagnostics.covariance(everything))
