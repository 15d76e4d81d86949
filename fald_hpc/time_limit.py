"""When a run must have stopped: so many seconds after its start, or when the batch system will end the job."""

import os
import re
import subprocess
import time
import warnings
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from fald_hpc.errors import UserError

ANSWER_SECONDS = 20
"""Seconds that the batch system has to answer."""


def process_start() -> float:
    """Return when this process was started, in seconds since 1970: imports and MPI's start count too."""
    with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    ticks = int(fields[19])
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age


def deadline(limit: float | Literal["auto"] | None, environ: Mapping[str, str]) -> float | None:
    """Return the time by which a run must have ended, in seconds since 1970; None: there is none.

    Parameters
    ----------
    limit : float, "auto" or None
        Seconds since the start of this process, or the end of the job of a batch system.
    environ : Mapping
        Environment variables.

    Warns
    -----
    UserWarning
        "auto" in a job whose end the batch system does not tell.
    """
    if limit is None:
        return None
    if limit != "auto":
        return process_start() + float(limit)
    job = environ.get("SLURM_JOB_ID")
    if job is None:
        return None  # the same command serves a workstation
    for found in (_number(environ.get("SLURM_JOB_END_TIME", "")), _squeue(job), _scontrol(job)):
        if found is not None:
            return found if found > 0 else None
    warnings.warn(
        f'time limit "auto": the end of job {job} is not known (SLURM_JOB_END_TIME, squeue and scontrol say nothing): '
        "the run has no time limit; give one in seconds with --time-limit",
        stacklevel=2,
    )
    return None


def parse(text: str) -> float | Literal["auto"]:
    """Return a time limit of the command line: seconds or "auto".

    Raises
    ------
    UserError
        It is neither.
    """
    if text == "auto":
        return "auto"
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < float("inf"):
        raise UserError(f'--time-limit {text}: give a positive number of seconds, or "auto" in a batch job')
    return seconds


def _number(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() else None


def local_time(text: str) -> float | None:
    """Return a time as Slurm prints it in seconds since 1970; 0 for a job without an end, None for anything else."""
    if text.strip().upper() in ("UNLIMITED", "NONE", "N/A", "NOT_SET"):
        return 0.0
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except ValueError:
        return None


def _squeue(job: str) -> float | None:
    answer = _ask(["squeue", "--noheader", "--jobs", job, "--format", "%e"])
    return local_time(answer.splitlines()[0]) if answer.strip() else None


def _scontrol(job: str) -> float | None:
    found = re.search(r"EndTime=(\S+)", _ask(["scontrol", "show", "job", job]))
    return local_time(found.group(1)) if found else None


def _ask(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
