"""``fald run``: samples; the same command serially, under mpiexec and under srun."""

from __future__ import annotations

import os
import platform
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fald_hpc import launch
from fald_hpc.cli.settings import overrides
from fald_hpc.errors import UserError

FAILED = 1

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
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    allow_singleton: Annotated[
        bool, typer.Option("--allow-singleton", help="Run although MPI does not join the copies of a launcher.")
    ] = False,
) -> None:
    """Sample the posterior of a config or a built-in example and print the posterior table."""
    from fald_hpc import chains as loops
    from fald_hpc import comm, execute

    communicator = comm.connect()
    changes = overrides(set_ or [], seed, steps, chains)
    cfg = _agreed(communicator, source, changes, allow_singleton, resume and overwrite)
    folder = out or Path("runs") / Path(source).stem

    report = None
    opening = _opening(communicator)
    if communicator.rank == 0 and not quiet:
        from fald_hpc.cli import progress

        report = progress.reporter(opening)
    try:
        execute.execute(cfg, folder, comm=communicator, resume=resume, overwrite=overwrite, progress=report)
    except (UserError, KeyboardInterrupt):
        raise
    except (loops.Divergence, loops.GradientFailure) as error:
        # All ranks stop at the same step with the same sentence: rank 0 says it.
        if communicator.rank == 0:
            print(f"fald: {error}", file=sys.stderr)
        raise typer.Exit(FAILED) from None
    except comm.RankError:
        raise typer.Exit(FAILED) from None  # the rank that raised shows its traceback
    except Exception:
        if communicator.size == 1:
            raise
        # A fault of the program on this rank: the others may wait for it for ever.
        print(f"fald: rank {communicator.rank} failed:\n{traceback.format_exc()}", file=sys.stderr)
        communicator.abort(FAILED)
    finally:
        if report is not None:
            report.close()

    if communicator.rank == 0:
        from fald_hpc.cli.summary import show

        show(folder)


def _agreed(
    communicator: Serial, source: str, changes: list[str], allow_singleton: bool, contradiction: bool
) -> Config:
    """Return the config, or raise on all ranks what one of them found wrong; nothing has been written yet."""
    from fald_hpc import config

    cfg, error = None, None
    try:
        trap = launch.singleton_trap(os.environ, communicator.size)
        if trap is not None and not allow_singleton:
            raise UserError(trap)
        if contradiction:
            raise UserError("--resume and --overwrite contradict each other: give one of them")
        cfg = config.load(source, changes)
    except UserError as found:
        error = found
    communicator.together(error)
    assert cfg is not None  # together() has raised otherwise
    return cfg


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
