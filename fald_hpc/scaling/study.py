"""A study on this machine: each number of ranks measured in child processes, the records kept as JSON lines."""

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fald_hpc import launch, threads
from fald_hpc.errors import UserError
from fald_hpc.scaling import record

FILE = "study.jsonl"
LATENCY = "FALD_EMULATED_LATENCY_MS"


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes
    ----------
    source, overrides
        Of :func:`fald_hpc.config.load`.
    ranks : sequence of int
        Numbers of ranks.
    fixed : str or None
        What a weak study keeps fixed on each rank (:mod:`fald_hpc.scaling.grow`); None for a strong study.
    repeats : int
        Runs at each number of ranks, within one start of the processes.
    seconds : float
        Length of a run at the first number of ranks; the others take as many steps.
    steps : int or None
        Instead of ``seconds``.
    emulated_ms : float
        Milliseconds a stage of an emulated network: a message among P ranks is delayed by ceil(log2 P) times as much.
    """

    source: str
    overrides: Sequence[str]
    ranks: Sequence[int]
    fixed: str | None = None
    repeats: int = 5
    seconds: float = 2.0
    steps: int | None = None
    emulated_ms: float = 0.0

    def job(self, ranks: int, steps: int | None, mpi: str) -> dict[str, Any]:
        """Return the job of :mod:`fald_hpc.scaling.measure` at a number of ranks."""
        return {
            "source": self.source,
            "overrides": list(self.overrides),
            "fixed": self.fixed,
            "repeats": self.repeats,
            "seconds": self.seconds,
            "steps": steps,
            "emulated_ms": self.emulated_ms,
            "delay_ms": self.emulated_ms * stages(ranks),
            "mpi": mpi,
        }


def stages(ranks: int) -> int:
    """Return the stages of a message: ceil(log2 ranks)."""
    return math.ceil(math.log2(ranks)) if ranks > 1 else 0


def measure(
    plan: Plan, folder: Path, prefix: Callable[[int], list[str]], say: Callable[[str], None], mpi: str
) -> list[dict[str, Any]]:
    """Measure all numbers of ranks and append the records to the folder's file; return all records there.

    Parameters
    ----------
    plan : Plan
        The study.
    folder : Path
        Of the study.
    prefix : callable
        Returns the command that starts a program on so many ranks.
    say : callable
        Called with a line after each number of ranks.
    mpi : str
        The MPI library, for the runs on one rank, which load none.

    Raises
    ------
    UserError
        If a run fails or the records cannot stand beside those in the file.
    """
    file = folder / FILE
    steps = plan.steps
    if file.exists() and steps is None:
        steps = int(record.read(file)[0]["steps"])
    for ranks in plan.ranks:
        fresh = child(plan.job(ranks, steps, mpi), prefix(ranks), ranks)
        steps = steps or int(fresh[0]["steps"])
        record.append(file, fresh)
        best = min(one["seconds_per_step"] for one in fresh)
        say(f"{ranks} rank{'s' * (ranks > 1)}: {plan.repeats} runs of {steps} steps, best {1e6 * best:.4g} us a step")
    return record.read(file)


def child(job: dict[str, Any], prefix: Sequence[str], ranks: int) -> list[dict[str, Any]]:
    """Return the records of a job that child processes measure."""
    environ = launch.clean(os.environ)
    cores = len(os.sched_getaffinity(0))
    # ranks that sleep through an emulated delay must not poll through the rest of a message
    crowded = ranks if job["delay_ms"] == 0.0 else max(ranks, cores + 1)
    environ |= launch.permissions(environ, crowded, cores, os.geteuid() == 0)
    threads.cap(environ)
    environ.pop(LATENCY, None)
    if job["delay_ms"] > 0.0:
        environ[LATENCY] = repr(job["delay_ms"])
    with tempfile.TemporaryDirectory(prefix="fald-scale-") as place:
        source, target = Path(place) / "job.json", Path(place) / "records.json"
        source.write_text(json.dumps(job))
        command = [*prefix, sys.executable, "-m", "fald_hpc.scaling.measure", str(source), str(target)]
        done = subprocess.run(command, env=environ, capture_output=True, text=True)
        if done.returncode != 0 or not target.exists():
            print(done.stdout + done.stderr, end="", file=sys.stderr)
            raise UserError(f"the runs on {ranks} ranks ended with exit code {done.returncode}; their words are above")
        records: list[dict[str, Any]] = json.loads(target.read_text())
    return records
