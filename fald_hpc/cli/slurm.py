"""``fald slurm``: a batch script for a config, checked against the cluster; and how the submitted jobs fare."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fald_hpc.cli.settings import overrides
from fald_hpc.errors import UserError

if TYPE_CHECKING:
    from fald_hpc.batch.job import Job

MPI = ("mpich", "openmpi", "cray", "intel")


def slurm(
    source: Annotated[str | None, typer.Argument(metavar="CONFIG|EXAMPLE", help="A TOML file or an example.")] = None,
    ranks: Annotated[int | None, typer.Option(min=1, help="MPI ranks of a run.")] = None,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes to spread them over.")] = 1,
    time_: Annotated[
        str | None, typer.Option("--time", help="Limit of one start, as Slurm takes it: 90, 2:00:00, 1-12:00:00.")
    ] = None,
    partition: Annotated[str | None, typer.Option(help="Partition; the cluster's default one without it.")] = None,
    account: Annotated[str | None, typer.Option(help="Account to charge.")] = None,
    qos: Annotated[str | None, typer.Option(help="Quality of service.")] = None,
    constraint: Annotated[str | None, typer.Option(help="Features that the nodes must have.")] = None,
    sbatch: Annotated[
        list[str] | None, typer.Option(metavar="OPTION", help="Another long option of sbatch, as --sbatch=--exclusive.")
    ] = None,
    memory_per_rank: Annotated[int | None, typer.Option(min=1, help="Megabytes; from the plan without it.")] = None,
    array: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=A,B,C", help="One job for each value; given more than once, for each combination."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results; runs/NAME by default.")] = None,
    script: Annotated[Path | None, typer.Option(help="File to write; NAME.sbatch by default.")] = None,
    site: Annotated[Path | None, typer.Option(help="Shell file that loads modules, as in slurm/sites/.")] = None,
    mpi: Annotated[str | None, typer.Option(help=f"{', '.join(MPI)}; asked of mpi4py in the job without it.")] = None,
    launch: Annotated[str | None, typer.Option(help="Whole launch command, e.g. 'srun --mpi=pmix_v4'.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, e.g. sampler.step_size=0.1.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same as --set run.seed=N.")] = None,
    steps: Annotated[int | None, typer.Option(help="The same as --set run.steps=N.")] = None,
    chains: Annotated[int | None, typer.Option(help="The same as --set run.chains=N.")] = None,
    submit: Annotated[bool, typer.Option("--submit", help="Submit the script too.")] = False,
    status: Annotated[bool, typer.Option("--status", help="Show submitted jobs and their runs instead.")] = False,
    json: Annotated[bool, typer.Option("--json", help="With --status: print JSON.")] = False,
) -> None:
    """Write (and submit) a batch script that starts or continues a run until it is done; refuse what cannot fit."""
    if status:
        _status(json)
        return
    missing = [name for name, value in (("CONFIG", source), ("--ranks", ranks), ("--time", time_)) if value is None]
    if missing or source is None or ranks is None or time_ is None:
        raise UserError(f"{' and '.join(missing)} missing: fald slurm CONFIG --ranks N --nodes M --time T, or --status")

    from fald_hpc.batch import duration, grid, prepare
    from fald_hpc.batch import script as scripts
    from fald_hpc.batch.job import Job, option

    named = {"partition": partition, "account": account, "qos": qos, "constraint": constraint}
    options = [option(name, value) for name, value in named.items() if value is not None]
    for given in sbatch or []:
        name, _, value = given.partition("=")
        if not name.startswith("--"):
            raise UserError(f"--sbatch {given}: give a long option of sbatch, as --sbatch=--exclusive")
        options.append(option(name[2:], value) if value else name)
    stem = Path(source).stem
    job = Job(
        name=f"fald-{stem}".replace(" ", "-"),
        source=str(Path(source).absolute()) if Path(source).is_file() else source,
        out=(out or Path("runs") / stem).absolute(),
        ranks=ranks,
        nodes=nodes,
        seconds=duration.parse(time_),
        memory=0,
        python=sys.executable,
        overrides=overrides(set_ or [], seed, steps, chains),
        points=grid.points(array or []),
        options=options,
        settings=_settings(site, mpi, launch),
    )
    ready = prepare.prepare(job, partition, memory_per_rank)
    target = script or Path(f"{stem}.sbatch")
    scripts.write(target, scripts.text(ready.job, ready.notes))
    for note in ready.notes:
        print(note)
    print(f"Wrote {target}" + ("" if submit else f". Submit it with: sbatch {target}"))
    if submit:
        _submit(target, ready.job)


def _settings(site: Path | None, mpi: str | None, launch: str | None) -> list[tuple[str, str]]:
    """Return the variables of ``slurm/env.sh`` that options set."""
    if mpi is not None and mpi not in MPI:
        raise UserError(f"--mpi {mpi}: give one of {', '.join(MPI)}")
    if site is not None and not site.is_file():
        raise UserError(f"--site {site}: there is no such file; slurm/sites/ of the sources has examples")
    given = {"FALD_SITE": None if site is None else str(site.absolute()), "FALD_MPI": mpi, "FALD_LAUNCH": launch}
    return [(name, value) for name, value in given.items() if value is not None]


def _submit(script: Path, job: Job) -> None:
    from fald_hpc.batch import ledger, submit

    number = submit.submit(script)
    several = f", an array of {len(job.points)}" if job.points else ""
    print(f"Submitted job {number}{several}. See: fald slurm --status")
    entry = {
        "job": number,
        "name": job.name,
        "array": bool(job.points),
        "folders": [str(folder) for folder in job.folders()],
        "script": str(script.absolute()),
        "submitted": time.strftime("%Y-%m-%d %H:%M:%S"),
    }
    ledger.add(ledger.path(os.environ), entry)


def _status(json: bool) -> None:
    import json as format_json

    from fald_hpc.batch import ledger, overview

    rows = overview.rows(ledger.read(ledger.path(os.environ)))
    if json:
        print(format_json.dumps(rows, indent=2))
        return
    if not rows:
        print("No job was submitted by fald slurm yet.")
        return
    for line in table(rows):
        print(line)


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the jobs as aligned lines."""
    from fald_hpc.cli.progress import duration

    def progress(row: dict[str, Any]) -> str:
        if row["step"] is None or not row["steps"]:
            return "-"
        return f"{row['step']} of {row['steps']} ({100 * row['step'] // row['steps']} %)"

    cells = [("JOB", "NAME", "SLURM", "STARTS", "RUN", "STEPS", "SIGN OF LIFE", "FOLDER")]
    for row in rows:
        cells.append(
            (
                row["job"],
                row["name"],
                row["slurm"] + (f" ({row['reason']})" if row["reason"] else ""),
                "-" if row["restarts"] is None else str(row["restarts"] + 1),
                row["run"] or "not started",
                progress(row),
                "-" if row["life_age"] is None else f"{duration(max(0.0, row['life_age']))} ago",
                row["folder"],
            )
        )
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
