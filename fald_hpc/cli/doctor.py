"""``fald doctor``: what this installation is made of, and what to try where something is wrong."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from importlib import metadata
from typing import TYPE_CHECKING

import typer

from fald_hpc import launch, threads
from fald_hpc.diagnosis import Facts, flavour, places, problems
from fald_hpc.errors import UserError

if TYPE_CHECKING:
    from fald_hpc.comm import Serial

PACKAGES = ("fald-hpc", "numpy", "numba", "mpi4py", "zarr", "xarray", "arviz")


def doctor() -> None:
    """Show MPI, launcher, ranks, hosts, threads, CPU and cache, do a one-element reduction, and say what is wrong."""
    from fald_hpc import comm

    library, unavailable, communicator = None, "", comm.Serial()
    try:
        communicator = comm.connect()
        library = comm.library()
    except UserError as error:
        unavailable = str(error)
    total, seconds = _reduction(communicator)
    there = communicator.collect([platform.node(), sorted(os.sched_getaffinity(0))])
    if there is None:
        return  # not rank 0

    features = _cpu_features()
    cache, writable = _cache()
    mpiexec, mpiexec_version = _mpiexec()
    facts = Facts(
        trap=launch.singleton_trap(os.environ, communicator.size),
        library=library,
        mpiexec=mpiexec,
        mpiexec_version=mpiexec_version,
        hosts=[host for host, _ in there],
        cores=[cores for _, cores in there],
        cpu_features=features,
        machine=platform.machine(),
        cache_writable=writable,
        threads={name: os.environ.get(name, "unset") for name in threads.VARIABLES},
        reduction=total,
    )
    started = launch.read(os.environ)
    rows = {
        "versions": ", ".join([f"Python {platform.python_version()}", *map(_version, PACKAGES)]),
        "MPI library": library or f"none: {unavailable}",
        "mpiexec": f"{mpiexec} ({mpiexec_version or 'version unknown'})" if mpiexec else "none found",
        "launcher": f"{started.launcher}, {started.tasks} tasks" if started.variable else "none (one process)",
        "ranks": _ranks(facts),
        "reduction": f"sum of 1..{len(there)} over {len(there)} ranks = {total:g}, {seconds * 1e6:.1f} µs each",
        "processor": f"{_cpu_name()} ({facts.machine}), " + _notable(features),
        "threads": ", ".join(f"{name}={value}" for name, value in threads.recorded(os.environ).items()),
        "numba cache": f"{cache} ({'writable' if writable else 'NOT writable'})",
    }
    for name, text in rows.items():
        print(f"{name:12s} {text}")
    found = problems(facts)
    for problem in found:
        print(f"PROBLEM      {problem}")
    if not found:
        print("No problem found.")
    raise typer.Exit(1 if found else 0)


def _ranks(facts: Facts) -> str:
    """Return where the ranks are."""
    found = places(facts.hosts, facts.cores)
    return ", ".join(f"{ranks} on {host} (cores: {available})" for host, (ranks, available) in found.items())


def _reduction(communicator: Serial) -> tuple[float, float]:
    """Return the sum of rank + 1 as the compiled loop reduces, and the seconds that one reduction takes."""
    import numpy as np

    from fald_hpc.kernels.collectives import allreduce

    send, receive = np.array([communicator.rank + 1.0]), np.zeros(1)
    allreduce(send, receive, communicator.number, 0)
    begun, repeats = time.perf_counter(), 100
    for _ in range(repeats):
        allreduce(send, receive, communicator.number, 0)
    return float(receive[0]), (time.perf_counter() - begun) / repeats


def _version(package: str) -> str:
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return f"{package} not installed"


def _mpiexec() -> tuple[str | None, str]:
    """Return the mpiexec that would be used and the first line of what it says of itself."""
    from fald_hpc.cli.verify import find_mpiexec

    try:
        path = find_mpiexec()
    except UserError:
        return None, ""
    environ = launch.clean(os.environ)
    environ |= launch.permissions(environ, 1, 1, os.geteuid() == 0)
    try:
        said = subprocess.run([path, "--version"], env=environ, capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return path, ""
    number = re.search(r"\d+\.\d+[\w.]*", said)
    return path, f"{flavour(said) or 'unknown MPI'} {number.group() if number else ''}".strip()


def _cpu_name() -> str:
    import llvmlite.binding

    return str(llvmlite.binding.get_host_cpu_name())


def _cpu_features() -> list[str]:
    import llvmlite.binding

    return [name for name, present in llvmlite.binding.get_host_cpu_features().items() if present]


def _notable(features: list[str]) -> str:
    """Return the features that matter here."""
    known = ("fma", "avx2", "avx512f", "neon", "sve")
    return ", ".join(name for name in known if name in features) or "no vector units"


def _cache() -> tuple[str, bool]:
    """Return the folder of compiled functions and whether it can be written."""
    from fald_hpc.kernels import jit

    folder = jit.cache_folder()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return str(folder), os.access(existing, os.W_OK)
