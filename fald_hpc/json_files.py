"""Small JSON files that somebody may have cut, edited or filled with something else."""

import json
from pathlib import Path
from typing import Any


def read(path: Path) -> dict[str, Any] | None:
    """Return the object in a file; None where there is none: no file, not readable, not JSON, not an object."""
    try:
        found = json.loads(path.read_bytes())
    # a RecursionError: brackets nested too deeply
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
