"""``fald run``: samples; the same command serially, under mpiexec and under srun."""

from __future__ import annotations

import os
import platform
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fald_hpc import launch, watch
from fald_hpc.cli.settings import overrides
from fald_hpc.errors import UserError

FAILED = 1
TRY_AGAIN = 75
"""Stopped on request, state saved (EX_TEMPFAIL): continue with --resume."""

if TYPE_CHECKING:
    from fald_hpc.comm import Serial
    from fald_hpc.config import Config


def run(
    source: Annotated[str, typer.Argument(metavar="CONFIG|EXAMPLE", help="A TOML file or a built-in example.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the results; runs/NAME by default.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, e.g. sampler.step_size=0.1.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same as --set run.seed=N.")] = None,
    steps: Annotated[int | None, typer.Option(help="The same as --set run.steps=N.")] = None,
    chains: Annotated[int | None, typer.Option(help="The same as --set run.chains=N.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in the folder.")] = False,
    time_limit: Annotated[
        str | None,
        typer.Option(metavar="SECONDS|auto", help="Stop and save in time; auto: before the batch job ends."),
    ] = None,
    checkpoint_every: Annotated[float, typer.Option(metavar="SECONDS", help="Time between two checkpoints.")] = 30.0,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    allow_singleton: Annotated[
        bool, typer.Option("--allow-singleton", help="Run although MPI does not join the copies of a launcher.")
    ] = False,
) -> None:
    """Sample the posterior of a config or a built-in example and print the posterior table."""
    with watch.Watch():
        from fald_hpc import comm

        communicator = comm.connect()
        changes = overrides(set_ or [], seed, steps, chains)
        cfg, limit = _agreed(communicator, source, changes, allow_singleton, resume and overwrite, time_limit)
        folder = out or Path("runs") / Path(source).stem
        _sample(cfg, folder, communicator, resume, overwrite, limit, checkpoint_every, quiet)
    if communicator.rank == 0:
        from fald_hpc.cli.summary import show

        show(folder)


def _sample(
    cfg: Config, folder: Path, communicator: Serial, resume: bool, overwrite: bool,
    limit: float | str | None, every: float, quiet: bool,
) -> None:  # fmt: skip
    """Sample; every failure ends in one message on rank 0 and an exit code, which rank 0 alone returns."""
    from fald_hpc import comm, errors, execute, failures

    report = None
    opening = _opening(communicator)
    if communicator.rank == 0 and not quiet:
        from fald_hpc.cli import progress

        report = progress.reporter(opening)
    try:
        execute.execute(
            cfg, folder, comm=communicator, resume=resume, overwrite=overwrite, progress=report,
            time_limit=limit, checkpoint_seconds=every,
        )  # fmt: skip
    except errors.Stopped as stopped:
        _say(communicator, stopped)
        raise typer.Exit(TRY_AGAIN) from None
    except (failures.ChainFailure, errors.StorageFailure) as error:
        _say(communicator, error)
        raise typer.Exit(FAILED) from None
    except comm.RankError:
        raise typer.Exit(FAILED) from None  # the rank that raised shows its traceback
    except (UserError, KeyboardInterrupt):
        raise
    except Exception:
        if communicator.size == 1:
            raise
        # all ranks have ended alike or know of it: this one shows why
        print(f"fald: rank {communicator.rank} failed:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        raise typer.Exit(FAILED) from None
    finally:
        if report is not None:
            report.close()


def _say(communicator: Serial, error: Exception) -> None:
    """Print what all ranks know, once."""
    if communicator.rank == 0:
        print(f"fald: {error}", file=sys.stderr, flush=True)


def _agreed(
    communicator: Serial, source: str, changes: list[str], allow_singleton: bool, contradiction: bool,
    time_limit: str | None,
) -> tuple[Config, float | str | None]:  # fmt: skip
    """Return config and time limit, or raise on all ranks what one of them found wrong; nothing is written yet."""
    from fald_hpc import config
    from fald_hpc import time_limit as limits

    cfg, limit, error = None, None, None
    try:
        trap = launch.singleton_trap(os.environ, communicator.size)
        if trap is not None and not allow_singleton:
            raise UserError(trap)
        if contradiction:
            raise UserError("--resume and --overwrite contradict each other: give one of them")
        limit = None if time_limit is None else limits.parse(time_limit)
        cfg = config.load(source, changes)
    except UserError as found:
        error = found
    communicator.together(error)
    assert cfg is not None  # together() has raised otherwise
    return cfg, limit


def _opening(communicator: Serial) -> list[str]:
    """Return on rank 0 where the ranks are and whether they outnumber the cores; all ranks call it."""
    from fald_hpc import diagnosis

    there = communicator.collect([platform.node(), sorted(os.sched_getaffinity(0))])
    if there is None:
        return []
    hosts, cores = [host for host, _ in there], [numbers for _, numbers in there]
    parts = [
        f"{ranks} {'rank' if ranks == 1 else 'ranks'} on {host} ({available} cores)"
        for host, (ranks, available) in diagnosis.places(hosts, cores).items()
    ]
    return [", ".join(parts), *(f"warning: {warning}" for warning in diagnosis.crowded(hosts, cores))]
