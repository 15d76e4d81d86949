"""Reading a run's ``manifest.json``, which somebody may have cut or edited since it was written."""

from pathlib import Path
from typing import Any

from fald_hpc import json_files
from fald_hpc.errors import UserError

FILE = "manifest.json"

KINDS: dict[str, type | tuple[type, ...]] = {
    "steps": int,
    "step": int,
    "chains": int,
    "seed": int,
    "burn_in": int,
    "step_size": (int, float),
    "state": str,
    "potential": dict,
    "sampler": dict,
    "versions": dict,
    "layout": dict,
    "threads": dict,
    "messages": dict,
    "machine": dict,
    "seconds": dict,
    "clients": list,
    "parameters": list,
    "data": list,
    "notes": list,
}
"""What a reader relies on; only ``steps`` must be there, since a run that has just begun knows little more."""


def read(folder: Path) -> dict[str, Any]:
    """Return the manifest of a run.

    Raises
    ------
    UserError
        There is none, or what it says is of another kind than a manifest's.
    """
    found = json_files.read(folder / FILE)
    if found is None:
        raise UserError(f"{folder} holds no run: there is no readable {FILE} in it.")
    for key, kind in KINDS.items():
        value = found.get(key)
        if key not in found and key != "steps":
            continue
        if not isinstance(value, kind) or (isinstance(value, (int, float)) and not abs(value) < 2**64):
            raise UserError(f"{folder / FILE} is damaged: {key} is missing or not what it should be.")
    return found
