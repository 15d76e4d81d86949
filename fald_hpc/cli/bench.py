"""``fald bench``: times per step beside the limits of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bench(
    workload: Annotated[
        str | None, typer.Option(metavar="W1,W2,...", help="Workloads with commas between them; all by default.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="File for machine, versions and all raw repeats.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small and short: for a look, not for a comparison.")] = False,
    launcher: Annotated[
        str | None,
        typer.Option(help="Command that starts {ranks} processes, e.g. 'srun -n {ranks}'; mpiexec by default."),
    ] = None,
) -> None:
    """Measure workloads against what this machine can do, measured in the same call: a table, and JSON.

    Times are medians over repeats that take turns with the yardstick; compilation is apart. W5, W6 and two-ranks start two ranks.
    """
    from fald_hpc.bench import catalogue, document, table
    from fald_hpc.bench.workbench import Setting
    from fald_hpc.cli.verify import prefix

    names = catalogue.chosen(None if workload is None else [part.strip() for part in workload.split(",")], quick)
    if json is not None:
        document.write({}, json)  # a folder that is not writable ends here, not after minutes
    print(table.HEADER, flush=True)
    results = []
    for found in catalogue.measure(names, Setting.of(quick), lambda count: prefix(count, launcher)):
        for result in found:
            print(table.line(result), flush=True)
        results += found
    if json is not None:
        document.write(document.build(results, quick), json)
