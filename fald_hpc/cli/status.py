"""``fald status``: is this run alive, how far is it, and what to do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer


def status(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")] = False,
) -> None:
    """Show whether a run is alive, its step, and the age of its last sign of life and checkpoint."""
    import json as format_json

    from fald_hpc import condition

    found = condition.read(folder, time.time())
    if json:
        print(format_json.dumps(found, indent=2))
        return
    for line in lines(found):
        print(line)


def lines(found: dict[str, Any]) -> list[str]:
    """Return a status in words."""
    from fald_hpc.cli.progress import duration

    def ago(seconds: float | None) -> str:
        return "never" if seconds is None else f"{duration(max(0.0, seconds))} ago"

    def of(step: int | None) -> str:
        if step is None:
            return "none"
        return f"{step} of {found['steps']} ({100 * step // max(1, found['steps'])} %)"

    rows = {
        "state": f"{found['state']}: {found['advice']}",
        "step": f"{of(found['step'])}, {ago(found['step_age'])}",
        "sign of life": ago(found["life_age"]),
        "checkpoint": f"step {of(found['checkpoint_step'])}, {ago(found['checkpoint_age'])}",
        "held by": found["holder"] or "nobody" + (f"; last by {found['last_holder']}" if found["last_holder"] else ""),
    }
    return [f"{name:13s} {text}" for name, text in rows.items()]
