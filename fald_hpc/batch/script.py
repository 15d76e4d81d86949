"""The text of a batch script: lines for sbatch, then ``slurm/env.sh`` and ``slurm/until-done.sh``, then the command.

The script needs nothing beside it but the Python it names: it can be read, edited, kept with the results and submitted
by hand as often as one likes.
"""

import shlex
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from fald_hpc import durable
from fald_hpc.batch import duration
from fald_hpc.batch.fit import MOST_STARTS
from fald_hpc.batch.job import Job
from fald_hpc.errors import UserError

MARK = "# Written by `fald slurm`"


def part(name: str) -> str:
    """Return a shell part of the folder ``slurm/``."""
    return resources.files("fald_hpc.batch.shell").joinpath(name).read_text(encoding="utf-8")


def text(job: Job, notes: Sequence[str] = ()) -> str:
    """Return the script of a job.

    Parameters
    ----------
    job : Job
        What is asked for.
    notes : sequence of str
        Comments for its head, one line each.
    """
    log = "%x-%A_%a.out" if job.points else "%x-%j.out"
    options = [
        f"--job-name={job.name}",
        f"--nodes={job.nodes}",
        f"--ntasks={job.ranks}",
        f"--ntasks-per-node={job.ranks_per_node}",
        "--cpus-per-task=1",
        f"--mem-per-cpu={job.memory}M",
        f"--time={duration.slurm(job.seconds)}",
        f"--output={log}",
        f"--signal=B:USR1@{job.warning}",
        "--requeue",
        "--open-mode=append",
    ]
    if job.points:
        options.append(f"--array=0-{len(job.points) - 1}")
    lines = ["#!/bin/bash", f"{MARK}; submitted again, requeued or preempted, it continues where the run was saved."]
    lines += [f"# {note}" for note in notes]
    lines += [f"#SBATCH {option}" for option in [*options, *job.options]]
    settings = [("FALD_PYTHON", job.python), ("FALD_MAX_RESTARTS", str(MOST_STARTS))]
    settings += [("FALD_SAVE_SECONDS", str(job.warning * 2 // 3)), *job.settings]
    lines += ["", *(f"{name}=${{{name}:-{shlex.quote(value)}}}" for name, value in settings)]
    lines += ["", part("env.sh").rstrip(), "", part("until-done.sh").rstrip(), ""]
    # -P: sources that happen to lie in the working folder are not what is installed
    command = ['"$FALD_PYTHON"', "-P", "-m", "fald_hpc", "run", shlex.quote(job.source)]
    command += [word for pair in job.overrides for word in ("--set", shlex.quote(pair))]
    if job.points:
        lines += ["case $SLURM_ARRAY_TASK_ID in"]
        for number, point in enumerate(job.points):
            sets = " ".join(f"--set {shlex.quote(pair)}" for pair in point.overrides)
            lines.append(f"    {number}) name={shlex.quote(point.name)}; point=({sets}) ;;")
        lines += [
            '    *) echo "fald: this array has no job $SLURM_ARRAY_TASK_ID" >&2; exit 2 ;;',
            "esac",
            f"out={shlex.quote(str(job.out))}/$name",
        ]
        command.append('"${point[@]}"')
    else:
        lines.append(f"out={shlex.quote(str(job.out))}")
    lines.append(f"fald_until_done {' '.join(command)} --out \"$out\" --resume --time-limit auto")
    return "\n".join(lines) + "\n"


def write(path: Path, script: str) -> None:
    """Write a script, over an older one of ours only.

    Raises
    ------
    UserError
        Something else is there, or the file cannot be written.
    """
    try:
        if path.exists() and MARK not in path.read_text(encoding="utf-8", errors="replace"):
            raise UserError(f"{path} exists and was not written by fald slurm: give another --script")
        durable.write(path, script.encode())
        path.chmod(0o755)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error
