"""``fald report``: one HTML file with the tables and plots of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a finished run.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="File to write; DIR/report.html by default.")
    ] = None,
) -> None:
    """Write one self-contained HTML page: posterior table, marginals, traces, rank plots, ESS and MCSE, costs."""
    from fald_hpc import report as reports

    print(f"report: {reports.write(folder, out)}")
