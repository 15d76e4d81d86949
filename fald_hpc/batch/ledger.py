"""The jobs that ``fald slurm --submit`` has submitted: one JSON line each, in the user's own state folder."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fald_hpc.errors import UserError


def path(environ: Mapping[str, str]) -> Path:
    """Return the file: ``fald_hpc/jobs.jsonl`` under XDG_STATE_HOME, by default ~/.local/state."""
    state = environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "fald_hpc" / "jobs.jsonl"


def add(file: Path, entry: Mapping[str, Any]) -> None:
    """Append an entry; one short write, so that two submissions at once do not mix."""
    data = (json.dumps(entry) + "\n").encode()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UserError(
            f"job {entry.get('job')} is submitted, but cannot be noted in {file} ({error.strerror}): "
            "--status will not show it"
        ) from error


def read(file: Path) -> list[dict[str, Any]]:
    """Return all entries, oldest first; lines that are none are skipped."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from error
    found = []
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and {"job", "folders", "name"} <= entry.keys():
            found.append(entry)
    return found
