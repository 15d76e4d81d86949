"""``fald summary``: the posterior table of a run, or the same as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def summary(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Print mean, sd, MCSE, ESS and R-hat of every parameter."""
    from fald_hpc.summary import dumps, read

    if json:
        print(dumps(read(folder)), end="")
    else:
        show(folder)


def show(folder: Path) -> None:
    """Print the posterior table of a run and where its results are."""
    from fald_hpc.summary import read, text

    print(text(read(folder)))
    print(f"results: {folder} (draws.zarr, summary.json, manifest.json)")
