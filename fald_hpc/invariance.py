"""Layout invariance as a comparison of two runs: the files that must agree byte for byte, and the first difference.

Invariant are the draws, the payload of the newest checkpoint, and the summary but for its seconds. Time stamps, timers
and the layout live in the manifest, which is not compared.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TIMED = ("seconds",)
"""Keys of ``summary.json`` that depend on the clock."""


def first_difference(left: Path, right: Path) -> str | None:
    """Return a sentence on the first difference between two finished runs, None where they are equal.

    Parameters
    ----------
    left, right : Path
        Folders of the two runs.
    """
    return _summaries(left, right) or _stores(left, right) or _checkpoints(left, right)


def _summaries(left: Path, right: Path) -> str | None:
    one, two = (json.loads((folder / "summary.json").read_text(encoding="utf-8")) for folder in (left, right))
    return _values(one, two, "summary.json")


def _values(one: Any, two: Any, where: str) -> str | None:
    """Compare two JSON values; name the first entry that differs."""
    if isinstance(one, dict) and isinstance(two, dict):
        keys = [key for key in one if key not in TIMED]
        if keys != [key for key in two if key not in TIMED]:
            return f"{where} has other keys"
        pairs = [(one[key], two[key], f"{where} {key}") for key in keys]
    elif isinstance(one, list) and isinstance(two, list):
        if len(one) != len(two):
            return f"{where} has {len(one)} and {len(two)} entries"
        pairs = [(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(one, two, strict=True))]
    else:
        # repr shows all digits of a float, tells 1 from 1.0 and NaN equals itself
        return None if repr(one) == repr(two) else f"{where} is {one!r} and {two!r}"
    return next((found for pair in pairs if (found := _values(*pair)) is not None), None)


def _stores(left: Path, right: Path) -> str | None:
    names = [_files(folder / "draws.zarr") for folder in (left, right)]
    if names[0] != names[1]:
        odd = sorted(set(names[0]) ^ set(names[1]))[0]
        return f"draws.zarr/{odd} is in one run only"
    for name in names[0]:
        found = bytes_difference(
            (left / "draws.zarr" / name).read_bytes(), (right / "draws.zarr" / name).read_bytes(), f"draws.zarr/{name}"
        )
        if found is not None:
            return found
    return None


def _files(folder: Path) -> list[str]:
    """Return the files below a folder as sorted relative paths."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def bytes_difference(one: bytes, two: bytes, where: str) -> str | None:
    """Return a sentence on the first byte that differs, None where there is none."""
    if one == two:
        return None
    first = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    return f"{where} differs from byte {first} on ({len(one)} and {len(two)} bytes)"


def _checkpoints(left: Path, right: Path) -> str | None:
    from fald_hpc import checkpoint

    one, two = (checkpoint.load(folder / "checkpoint") for folder in (left, right))
    if one is None or two is None:
        return None if one is two else "checkpoint is in one run only"
    (arrays, meta), (other_arrays, other_meta) = one, two
    if sorted(arrays) != sorted(other_arrays):
        return f"checkpoint array {sorted(set(arrays) ^ set(other_arrays))[0]} is in one run only"
    for name, array in arrays.items():
        other = other_arrays[name]
        if array.dtype != other.dtype or array.shape != other.shape:
            return f"checkpoint array {name} has {array.dtype} {array.shape} and {other.dtype} {other.shape}"
        found = bytes_difference(array.tobytes(), other.tobytes(), f"checkpoint array {name}")
        if found is not None:
            return found
    return _values(meta, other_meta, "checkpoint")
