"""How far a run in a folder is, as another process can see it: manifest, sign of life, checkpoint, lock."""

import warnings
from pathlib import Path
from typing import Any

from fald_hpc import checkpoint, json_files, lock, watch
from fald_hpc import manifest as manifests
from fald_hpc.errors import UserError

SILENT = 12 * watch.LIFE
"""Seconds without a sign of life after which a run is not taken for alive."""

_SIGNS = ("time", "step", "at")
"""Numbers in a sign of life."""


def read(folder: Path, now: float) -> dict[str, Any]:
    """Return the state of a run.

    Parameters
    ----------
    folder : Path
        Folder of the run.
    now : float
        Seconds since 1970.

    Returns
    -------
    dict
        ``state``: running, silent (holds the lock, gives no sign), dead, finished, stopped or failed; ``advice``;
        ``steps``, ``step``, ``checkpoint_step``; ages in seconds ``life_age``, ``step_age``, ``checkpoint_age``, None
        where there was nothing yet; ``holder``: the process that holds the folder, None if none does; ``last_holder``.

    Raises
    ------
    UserError
        The folder holds no run, or its manifest is damaged.
    """
    manifest = manifests.read(folder)
    life = json_files.read(folder / watch.ALIVE) or {}
    # no number of ours is larger, and a larger one need not fit a float
    life = {key: n for key, n in life.items() if key in _SIGNS and isinstance(n, (int, float)) and abs(n) < 2**63}
    age = None if "time" not in life else now - life["time"]
    saved = _checkpoint(folder)
    held = lock.held(folder)
    state = str(manifest.get("state", "unknown"))
    if state == "running":
        recent = age is not None and age < SILENT
        if held is False or (held is None and not recent):
            state = "dead"
        elif not recent and age is not None:
            state = "silent"
    last = lock.holder(folder)
    step = life.get("step")
    step_age = None if "at" not in life else now - life["at"]
    if state == "finished":
        step, step_age = manifest["steps"], now - (folder / manifests.FILE).stat().st_mtime
    elif state == "stopped":
        step, step_age = manifest.get("step", step), now - (folder / manifests.FILE).stat().st_mtime
    return {
        "state": state,
        "advice": _ADVICE.get(state, "").format(reason=manifest.get("reason", "no reason was noted")),
        "steps": manifest["steps"],
        "step": step,
        "step_age": step_age,
        "life_age": age,
        "checkpoint_step": saved[0],
        "checkpoint_age": None if saved[1] is None else now - saved[1],
        "holder": lock.words(last) if held or (held is None and state == "running") else None,
        "last_holder": lock.words(last) if last else None,
    }


_ADVICE = {
    "running": "a process holds the folder and gives signs of life",
    "silent": "a process holds the folder but gives no sign of life: look at its host; end it and use --resume",
    "dead": "no process holds the folder and the run did not end by itself; continue it with --resume",
    "finished": "all steps are done; more --steps with --resume extend it",
    "stopped": "{reason}",
    "failed": "{reason}",
}


def _checkpoint(folder: Path) -> tuple[int | None, float | None]:
    """Return the step of the last sound checkpoint and when it was written."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = checkpoint.load(folder / "checkpoint")
        if found is None:
            return None, None
        times = [path.stat().st_mtime for path in (folder / "checkpoint").iterdir() if not path.name.startswith(".")]
        return int(found[1]["step"]), max(times)
    except (OSError, UserError, ValueError, KeyError, TypeError):
        return None, None
