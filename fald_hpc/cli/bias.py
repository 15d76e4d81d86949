"""``fald bias``: what the step size leaves of error in means and standard deviations, measured by two runs."""

from __future__ import annotations

import json as json_text
import sys
import traceback
from typing import TYPE_CHECKING, Annotated

import typer

from fald_hpc.cli.settings import overrides
from fald_hpc.errors import UserError

FAILED = 1

if TYPE_CHECKING:
    from fald_hpc.bias import Bias
    from fald_hpc.comm import Serial
    from fald_hpc.config import Config


def bias(
    source: Annotated[str, typer.Argument(metavar="CONFIG|EXAMPLE", help="A TOML file or a built-in example.")],
    comm_prob: Annotated[
        str | None, typer.Option("--comm-prob", metavar="P,P,...", help="Compare these values of comm_prob.")
    ] = None,
    batch_size: Annotated[
        str | None, typer.Option("--batch-size", metavar="N,N,...", help='Compare these batch sizes; "full" is one.')
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, e.g. sampler.step_size=0.1.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same as --set run.seed=N.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Steps at the step size itself; at half of it twice as many.")
    ] = None,
    chains: Annotated[int | None, typer.Option(help="The same as --set run.chains=N.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Measure the bias of posterior means and sds at the step size of a config.

    Two runs, at the step size and at half of it, give bias = 2 (estimate - estimate at half the step), with its
    Monte Carlo error. Assumed: the error of the sampler is of first order in the step size, and the step is small
    enough for that order to lead; where it is of second order the number is 1.5 times the bias. For Gaussian clients
    and linear regression the bias against the exact posterior is shown too. A bias of less than two errors is marked
    "not resolved": run more steps. Nothing is written. Also under mpiexec or srun.
    """
    from fald_hpc import comm, failures

    communicator = comm.connect()
    changes = overrides(set_ or [], seed, steps, chains)
    configs = _agreed(communicator, source, changes, comm_prob, batch_size)
    try:
        found = [_one(cfg, communicator, i, len(configs), quiet) for i, cfg in enumerate(configs)]
    except (UserError, KeyboardInterrupt):
        raise
    except failures.ChainFailure as error:
        if communicator.rank == 0:
            print(f"fald: {error}", file=sys.stderr)
        raise typer.Exit(FAILED) from None
    except comm.RankError:
        raise typer.Exit(FAILED) from None  # the rank that raised shows its traceback
    except Exception:
        if communicator.size == 1:
            raise
        print(f"fald: rank {communicator.rank} failed:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        raise typer.Exit(FAILED) from None
    show([one for one in found if one is not None], json)


def show(found: list[Bias], json: bool) -> None:
    """Print all biases; ranks other than 0 have none."""
    from fald_hpc.cli import bias_table

    if json and found:
        print(json_text.dumps([one.to_dict() for one in found], indent=2, ensure_ascii=False, allow_nan=False))
        return
    texts = [bias_table.of_setting(one) for one in found]
    if len(found) > 1:
        texts.append(bias_table.over_settings(found))
    if found:
        texts.append("± is one Monte Carlo standard error; not resolved: below two of them, run more steps.")
    print("\n\n".join(texts))


def _agreed(
    communicator: Serial, source: str, changes: list[str], comm_prob: str | None, batch_size: str | None
) -> list[Config]:
    """Return the configs to measure, or raise on all ranks what one of them found wrong."""
    configs, error = [], None
    try:
        configs = variants(source, changes, comm_prob, batch_size)
    except UserError as found:
        error = found
    communicator.together(error)
    return configs


def variants(source: str, changes: list[str], comm_prob: str | None, batch_size: str | None) -> list[Config]:
    """Return a config for each combination of averaging probability and batch size; without lists the config's own."""
    from fald_hpc import config

    found = []
    for p in _values("--comm-prob", comm_prob):
        for size in _values("--batch-size", batch_size):
            chosen = [f"sampler.{key}={value}" for key, value in (("comm_prob", p), ("batch_size", size)) if value]
            found.append(config.load(source, [*changes, *chosen]))
    return found


def _values(option: str, text: str | None) -> list[str | None]:
    """Return the parts of a comma-separated list; one None where the option is not given."""
    if text is None:
        return [None]
    parts: list[str | None] = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise UserError(f"{option} takes values with commas between them, not {text!r}")
    return parts


def _one(cfg: Config, communicator: Serial, index: int, count: int, quiet: bool) -> Bias | None:
    """Measure one setting, with progress on rank 0."""
    from fald_hpc.bias import measure
    from fald_hpc.cli import progress

    if quiet or communicator.rank != 0:
        return measure(cfg, communicator)
    sampler = cfg.sampler
    print(
        f"setting {index + 1} of {count}: comm_prob {sampler.comm_prob:g}, batch_size {sampler.batch_size}",
        file=sys.stderr,
        flush=True,
    )
    reporter = progress.reporter()
    try:
        return measure(cfg, communicator, reporter)
    finally:
        reporter.close()
