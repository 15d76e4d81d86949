"""Submitted jobs beside their runs: what Slurm says of the job, and what the folder says of the run."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fald_hpc import condition
from fald_hpc.batch import queue
from fald_hpc.errors import UserError


def rows(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for every run of the jobs.

    Parameters
    ----------
    entries : sequence of dict
        Of :mod:`fald_hpc.batch.ledger`.

    Returns
    -------
    list of dict
        ``job``, ``name``, ``slurm`` (state), ``reason``, ``restarts``, ``run`` (state, None before the first start),
        ``step``, ``steps``, ``life_age`` (seconds since the last sign of life) and ``folder``.
    """
    found = []
    for entry in entries:
        standings = queue.standings(str(entry["job"]))
        array = entry.get("array", False)
        for number, folder in enumerate(entry["folders"]):
            standing = standings.get(number if array else None, queue.FORGOTTEN)
            found.append(
                {
                    "job": f"{entry['job']}_{number}" if array else str(entry["job"]),
                    "name": entry["name"],
                    "slurm": standing.state,
                    "reason": standing.reason,
                    "restarts": standing.restarts,
                    **_run(Path(folder)),
                    "folder": folder,
                }
            )
    return found


def _run(folder: Path) -> dict[str, Any]:
    """Return what a folder says of its run."""
    try:
        state = condition.read(folder, time.time())
    except (UserError, OSError):
        return {"run": None, "step": None, "steps": None, "life_age": None}
    step = state["step"] if state["step"] is not None else state["checkpoint_step"]
    return {"run": state["state"], "step": step, "steps": state["steps"], "life_age": state["life_age"]}
