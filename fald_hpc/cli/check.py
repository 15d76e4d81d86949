"""``fald check``: validates a config without running it, and says what a run would cost."""

from __future__ import annotations

from typing import Annotated

import typer

from fald_hpc.cli import toml
from fald_hpc.cli.settings import overrides


def check(
    source: Annotated[str, typer.Argument(metavar="CONFIG|EXAMPLE", help="A TOML file or a built-in example.")],
    ranks: Annotated[int, typer.Option(min=1, help="Ranks to plan for.")] = 1,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, e.g. sampler.step_size=0.1.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same as --set run.seed=N.")] = None,
    steps: Annotated[int | None, typer.Option(help="The same as --set run.steps=N.")] = None,
    chains: Annotated[int | None, typer.Option(help="The same as --set run.chains=N.")] = None,
) -> None:
    """Validate a config; print the resolved config, layout, messages, memory and an estimate of the time."""
    from fald_hpc import config, execute

    cfg = config.load(source, overrides(set_ or [], seed, steps, chains))
    plan = execute.plan(cfg, ranks)
    print(toml.text(cfg.to_dict()))
    print(plan)
