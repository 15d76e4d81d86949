"""``fald scale``: strong and weak scaling studies, and a model of their time."""

from __future__ import annotations

import json as json_text
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fald_hpc.cli.settings import overrides
from fald_hpc.errors import UserError

if TYPE_CHECKING:
    from fald_hpc.scaling.costs import Costs
    from fald_hpc.study import Study

app = typer.Typer(help="Measure how a config scales with the number of ranks, and predict it.", rich_markup_mode=None)

Source = Annotated[str, typer.Argument(metavar="CONFIG|EXAMPLE", help="A TOML file or a built-in example.")]
Ranks = Annotated[str, typer.Option(help="Numbers of ranks, as 1,2,4.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key.")]
Repeats = Annotated[int, typer.Option(min=1, help="Runs at each number of ranks.")]
Seconds = Annotated[float, typer.Option(min=0.05, help="Length of a run at the first number of ranks.")]
Steps = Annotated[int | None, typer.Option(min=100, help="Steps of a run, instead of --seconds.")]
Out = Annotated[Path | None, typer.Option(help="Folder of the study; scaling/NAME-strong or -weak by default.")]
Emulate = Annotated[
    float, typer.Option(min=0.0, help="Emulate a slow network: a delay of so many ms times ceil(log2 ranks) a message.")
]
Launcher = Annotated[
    str | None, typer.Option(help="Command that starts {ranks} processes, e.g. 'srun -n {ranks}'; mpiexec by default.")
]
Slurm = Annotated[
    str | None, typer.Option(metavar="print|submit", help="Batch jobs from slurm/scaling-*.sbatch instead of local runs.")
]
Fixed = Annotated[str | None, typer.Option(metavar="clients|rows|chains", help="What stays the same on every rank.")]


@app.command("strong")
def strong(
    source: Source, ranks: Ranks = "1,2", repeats: Repeats = 5, seconds: Seconds = 2.0, steps: Steps = None,
    set_: Set = None, out: Out = None, emulate_ms: Emulate = 0.0, launcher: Launcher = None, slurm: Slurm = None,
) -> None:  # fmt: skip
    """Measure one problem at several numbers of ranks; write records, a table and figures.

    Times are of the sampling loop alone: no import, compilation, set-up or output. A study is appended to: the same
    command again adds repeats. It refuses to mix builds, machines or settings.
    """
    _study(source, None, ranks, repeats, seconds, steps, set_, out, emulate_ms, launcher, slurm)


@app.command("weak")
def weak(
    source: Source, fixed: Fixed = "rows", ranks: Ranks = "1,2", repeats: Repeats = 5, seconds: Seconds = 2.0,
    steps: Steps = None, set_: Set = None, out: Out = None, emulate_ms: Emulate = 0.0, launcher: Launcher = None,
    slurm: Slurm = None,
) -> None:  # fmt: skip
    """Measure a problem that grows with the number of ranks; write records, a table and figures.

    Every rank always hosts as many clients as the config has, and --fixed says what else: rows: with all their rows
    (the clients are repeated); clients: with their share of the config's rows, which are dealt over the more clients;
    chains: as many chains as the config has, on the config's own clients.
    """
    _study(source, _fixed(fixed) or "rows", ranks, repeats, seconds, steps, set_, out, emulate_ms, launcher, slurm)


@app.command("show")
def show(folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study.")]) -> None:
    """Print the table of a study and draw its figures anew."""
    from fald_hpc.scaling import figures, record, study, table

    records = record.read(folder / study.FILE)
    rows = table.rows(records)
    kind = records[0]["study"]["kind"]
    print(table.text(rows, kind))
    drawn = figures.draw(folder, rows, kind)
    print(f"records and figures: {folder} ({study.FILE}, {', '.join(path.name for path in drawn)})")


@app.command("model")
def model(
    source: Source,
    ranks: Ranks = "1,10,100,1000,10000,100000",
    network: Annotated[str, typer.Option(help="A preset, or LATENCY,BANDWIDTH in us and GB/s.")] = "infiniband",
    ranks_per_node: Annotated[int, typer.Option(min=1, help="Ranks that share a node's memory.")] = 1,
    fixed: Fixed = None,
    slow: Annotated[
        str | None, typer.Option(metavar="SHARE,FACTOR", help="Slow ranks, as 0.01,1.5: one in 100 takes 1.5 times.")
    ] = None,
    jitter: Annotated[float, typer.Option(min=0.0, help="Standard deviation of a step over its mean.")] = 0.0,
    detours: Annotated[
        str | None, typer.Option(metavar="PER_S,US", help="Interruptions of a core: how many a second, and how long.")
    ] = None,
    busy: Annotated[int, typer.Option(min=0, help="Other cores kept busy while the costs are measured.")] = 0,
    costs: Annotated[Path | None, typer.Option(help="Costs measured before (--save-costs) instead of measuring.")] = None,
    save_costs: Annotated[Path | None, typer.Option(help="Keep the measured costs in this file.")] = None,
    simulate: Annotated[bool, typer.Option(help="Simulate the schedule event by event too.")] = True,
    set_: Set = None,
    out: Annotated[Path | None, typer.Option(help="Folder for model.json and the figure model.png, .pdf.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Predict time and efficiency up to 100000 ranks from costs measured here in seconds, on one core.

    Without --fixed one problem on more and more ranks, else one that grows with them (see: fald scale weak). "2 batches":
    time with the chains in two batches that hide each other's messages, over the time without.
    """
    from fald_hpc import config
    from fald_hpc.scaling import calibrate, forecast
    from fald_hpc.scaling.network import Cluster, parse
    from fald_hpc.scaling.work import Slow

    changes = overrides(set_ or [], None, None, None)
    cluster = Cluster(parse(network), ranks_per_node)
    counts = _counts(ranks)
    lagging = None if slow is None else Slow(*_pair("--slow", slow))
    kept = _fixed(fixed)
    study = calibrate.study_of(config.load(source, changes))
    found = _costs(study, source, changes, busy, costs)
    if save_costs is not None:
        save_costs.write_text(json_text.dumps(found.to_dict(), indent=2) + "\n")
    rate, length = (0.0, 0.0) if detours is None else _pair("--detours", detours)
    lines, missing = forecast.forecast(
        study, found.with_noise(jitter, rate, 1e-6 * length), counts, cluster, kept, lagging, simulate
    )
    result = {
        "source": source, "overrides": changes, "fixed": kept, "costs": found.to_dict(), "points": [x.to_dict() for x in lines],
        "network": {"name": cluster.network.name, "latency": cluster.network.latency,
                    "bandwidth": cluster.network.bandwidth, "source": cluster.network.source,
                    "ranks_per_node": ranks_per_node},
    }  # fmt: skip
    if out is not None:
        from fald_hpc.scaling import model_figure

        out.mkdir(parents=True, exist_ok=True)
        (out / "model.json").write_text(json_text.dumps(result, indent=2) + "\n")
        model_figure.draw(out, lines, kept is not None)
    if json:
        print(json_text.dumps(result, indent=2))
        return
    print(f"network {cluster.network.name}: {1e6 * cluster.network.latency:g} us and "
          f"{1e-9 * cluster.network.bandwidth:g} GB/s a stage ({cluster.network.source})")  # fmt: skip
    print(forecast.text(lines, missing))


@app.command("check")
def check(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a study measured on this machine.")],
    source: Source,
    set_: Set = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compare a study's points with what the model predicts from costs measured now, without MPI."""
    from fald_hpc import config
    from fald_hpc.scaling import calibrate, record, study
    from fald_hpc.scaling import check as checks

    changes = overrides(set_ or [], None, None, None)
    cfg = config.load(source, changes)
    records = record.read(folder / study.FILE)
    if records[0]["study"]["config"] != record.digest(cfg.to_dict()):
        raise UserError(f"{folder} was measured with another config than {source} with these --set options")
    prepared = calibrate.study_of(cfg)
    most = max(len({core for cores in one["cores"] for core in cores}) for one in records)
    alone = _costs(prepared, source, changes, 0, None)
    busy = _costs(prepared, source, changes, most - 1, None) if most > 1 else alone
    found = checks.compare(prepared, alone, busy, records)
    print(json_text.dumps([vars(one) for one in found], indent=2) if json else checks.text(found))


def _costs(study: Study, source: str, changes: Sequence[str], busy: int, known: Path | None) -> Costs:
    from fald_hpc.scaling import calibrate, companions
    from fald_hpc.scaling.costs import DISTURBED, Costs, fit, misfit

    if known is not None:
        try:
            return Costs.from_dict(json_text.loads(known.read_text()))
        except (OSError, ValueError) as error:
            raise UserError(f"--costs {known}: {error}; write one with --save-costs") from None
    with companions.busy(source, changes, busy):
        pieces = calibrate.pieces(study)
    found = fit(pieces)
    off = misfit(found, pieces)
    if off > DISTURBED:
        warnings.warn(
            f"the measured costs fit their pieces to {off:.0%} only: something else uses this machine; try again "
            "when it is quiet",
            stacklevel=2,
        )
    return found


def _study(
    source: str, fixed: str | None, ranks: str, repeats: int, seconds: float, steps: int | None, set_: list[str] | None,
    out: Path | None, emulate_ms: float, launcher: str | None, slurm: str | None,
) -> None:  # fmt: skip
    from fald_hpc import comm, config
    from fald_hpc.scaling import study

    changes = overrides(set_ or [], None, None, None)
    config.load(source, changes)  # a mistake ends here, before any child starts
    counts = _counts(ranks)
    kind = "strong" if fixed is None else "weak"
    folder = out or Path("scaling") / f"{Path(source).stem}-{kind}"
    if slurm is not None:
        from fald_hpc.scaling import batch

        options = ["--repeats", str(repeats), *[text for change in changes for text in ("--set", change)]]
        options += ["--seconds", repr(seconds)] if steps is None else ["--steps", str(steps)]
        for line in batch.jobs(slurm, kind, source, counts, fixed, folder, options):
            print(line)
        return
    plan = study.Plan(source, changes, counts, fixed, repeats, seconds, steps, emulate_ms)
    study.measure(plan, folder, _prefix(launcher), lambda line: print(line, flush=True), comm.library())
    show(folder)


def _prefix(launcher: str | None) -> Callable[[int], list[str]]:
    """Return what gives the command that starts a program on so many ranks."""
    import shlex

    from fald_hpc.cli.verify import find_mpiexec

    if launcher is not None:
        return lambda count: shlex.split(launcher.replace("{ranks}", str(count)))
    return lambda count: [] if count == 1 else [find_mpiexec(), "-n", str(count)]


def _counts(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise UserError(f"--ranks takes positive numbers with commas between them, as 1,2,4, not {text!r}")
    return sorted({int(part) for part in parts})


def _fixed(text: str | None) -> str | None:
    from fald_hpc.scaling.grow import FIXED

    if text is not None and text not in FIXED:
        raise UserError(f"--fixed {text}: give one of {', '.join(FIXED)}")
    return text


def _pair(option: str, text: str) -> tuple[float, float]:
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        first = second = -1.0
    if first < 0.0 or second < 0.0:
        raise UserError(f"{option} takes two numbers of at least 0 with a comma between them, not {text!r}")
    return first, second
