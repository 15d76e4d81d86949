"""``fald summary``: the posterior table of a run, or the same as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def summary(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Print mean, sd, MCSE, ESS and R-hat of every parameter, and the drift of the clients."""
    from fald_hpc.summary import dumps, read

    if json:
        print(dumps(read(folder)), end="")
    else:
        show(folder)


def show(folder: Path) -> None:
    """Print the posterior table of a run, the drift of its clients, and where its results are."""
    from fald_hpc.drift.text import lines
    from fald_hpc.summary import read, text

    found = read(folder)
    print(text(found))
    for line in lines(found):
        print(line)
    print(f"results: {folder} (draws.zarr, summary.json, manifest.json)")
