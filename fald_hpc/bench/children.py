"""Measurements in processes of their own: on several ranks, with another cache, or for their memory alone."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fald_hpc import launch
from fald_hpc.errors import UserError

Prefix = Callable[[int], list[str]]
"""What gives the command that starts a program on so many ranks."""

PATIENCE = 900.0


def environment(ranks: int, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a child that starts so many ranks."""
    environ = launch.clean(os.environ) | dict(more or {})
    return environ | launch.permissions(environ, ranks, len(os.sched_getaffinity(0)), os.geteuid() == 0)


def run(command: Sequence[str], ranks: int = 1, more: Mapping[str, str] | None = None) -> str:
    """Run a command and return what it prints.

    Raises
    ------
    UserError
        If it fails; what it said is in the message.
    """
    try:
        done = subprocess.run(
            list(command), env=environment(ranks, more), capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"a measurement took more than {PATIENCE:.0f} s: {' '.join(command)}") from error
    if done.returncode != 0:
        raise UserError(f"a measurement failed: {' '.join(command)}\n{done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def on_ranks(prefix: Prefix, ranks: int, name: str, quick: bool) -> list[dict[str, Any]]:
    """Run one of :mod:`fald_hpc.bench.on_ranks` and return its results."""
    command = [*prefix(ranks), sys.executable, "-m", "fald_hpc.bench.on_ranks", name, *(["--quick"] if quick else [])]
    printed = run(command, ranks).strip().splitlines()
    found: list[dict[str, Any]] = json.loads(printed[-1])
    return found


PEAK = """
import atexit, sys
def _peak():
    with open("/proc/self/status") as status:
        print("".join(line for line in status if line.startswith("VmHWM")), file=sys.stderr, flush=True)
atexit.register(_peak)
"""
"""Prints the peak resident memory of the process itself; what wait4 tells contains that of the parent before exec."""


def peak_bytes(program: str) -> float:
    """Run a Python program in a child and return its peak resident memory in bytes."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK + program], env=environment(1), capture_output=True, text=True, timeout=PATIENCE
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("VmHWM")]
    if done.returncode != 0 or not lines:
        raise UserError(f"a measurement of memory failed:\n{done.stderr.strip()}")
    return 1024.0 * float(lines[-1].split()[1])
