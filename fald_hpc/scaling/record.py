"""The records of a scaling study: JSON lines, one a repeat, all of one build on one machine."""

import hashlib
import json
import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fald_hpc.errors import UserError

SAME = ("study", "build", "machine")
"""Members that all records of one file share."""


def build(mpi: str) -> dict[str, str]:
    """Return what decides the machine code: versions, a hash of all sources, and the MPI library."""
    import numba
    import numpy

    from fald_hpc import __version__

    digest = hashlib.sha256()
    package = Path(__file__).resolve().parents[1]
    kernels = Path(__import__("fald_hpc.kernels").kernels.__file__).resolve().parent
    for path in sorted({*package.rglob("*.py"), *kernels.glob("*.py"), *kernels.glob("*.so")}):
        # what only shows results may change during a study
        if not {"cli", "report", "scaling", "batch"} & set(path.parts):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return {
        "fald_hpc": __version__,
        "sources": digest.hexdigest()[:12],
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "numba": numba.__version__,
        "mpi": mpi,
    }


def digest(value: Any) -> str:
    """Return a short hash of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:12]


def machine(processors: Sequence[str]) -> dict[str, Any]:
    """Return what decides the speed of a rank: the processors of all ranks' hosts, sorted, each once."""
    return {"processors": sorted(set(processors)), "architecture": platform.machine()}


def processor() -> str:
    """Return the name of this host's processor and the number of its hardware threads."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as lines:
            name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    except OSError:
        pass
    return f"{name}, {os.cpu_count()} hardware threads"


def append(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Append records to a study's file.

    Raises
    ------
    UserError
        If they are of another study, build or machine than those already there.
    """
    known = read(path)[:1] if path.exists() else []
    fresh = list(records)
    for record in fresh:
        check_same([*known[:1], record], path)
        known = known or [record]
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        for record in fresh:
            file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """Return the records of a study's file.

    Raises
    ------
    UserError
        If there is none, a line is not a record, or builds, machines or studies are mixed.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        raise UserError(f"no study in {path}: run fald scale strong or fald scale weak first") from None
    records = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            record["ranks"], record["seconds_per_step"], [record[name] for name in SAME]
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{path}, line {number} is not a record of a scaling study") from None
        records.append(record)
    if not records:
        raise UserError(f"{path} holds no record: run fald scale strong or fald scale weak first")
    check_same(records, path)
    return records


def check_same(records: Sequence[dict[str, Any]], path: Path) -> None:
    """Refuse records that cannot be compared, naming the first member that differs."""
    first = records[0]
    for record in records[1:]:
        for member in SAME:
            if record[member] == first[member]:
                continue
            before, now = first[member], record[member]
            name = next((key for key in before if before[key] != now.get(key)), member)
            raise UserError(
                f"{path} would mix records that cannot be compared: {member} {name} is {before.get(name)} in one and "
                f"{now.get(name)} in another; write the study to another folder (--out)"
            )
