"""Runs and plans of a configuration: what ``fald run`` and ``fald check`` do, as functions."""

import os
from collections.abc import Callable
from typing import Any

from fald_hpc import config as configs
from fald_hpc.config import Config
from fald_hpc.plan import Plan, make
from fald_hpc.potentials import by_name as potentials
from fald_hpc.run import Run
from fald_hpc.samplers import by_name as samplers
from fald_hpc.sampling import request, sample


def arguments(config: Config) -> dict[str, Any]:
    """Return the arguments of :func:`fald_hpc.sample` that a configuration describes."""
    run, sampler, output = config.run, config.sampler, config.output
    return {
        "potential": potentials()[config.target.potential](**config.potential_options),
        "clients": configs.clients(config),
        "sampler": samplers()[sampler.name](**config.sampler_options),
        "steps": run.steps,
        "chains": run.chains,
        "seed": run.seed,
        "burn_in": run.burn_in,
        "init": sampler.init,
        "schedule": sampler.schedule,
        "record": run.record,
        "standardise": config.data.standardise,
        "chain_groups": run.chain_groups,
        "chain_batches": run.chain_batches,
        "segment_steps": run.segment_steps,
        "draws_megabytes": output.draws_megabytes,
        "thin": output.thin,
        "covariance": output.covariance,
    }


def plan(config: Config, ranks: int = 1) -> Plan:
    """Return what a run of a configuration on a number of ranks would do (:mod:`fald_hpc.plan`)."""
    given = arguments(config)
    groups = given["chain_groups"]
    names = ("potential", "clients", "sampler", "steps", "chains", "seed", "burn_in", "init", "schedule", "record")
    asked = request(**{name: given[name] for name in (*names, "standardise")})
    return make(asked, ranks, groups, given["chain_batches"])


def execute(
    config: Config,
    out: str | os.PathLike[str] | None,
    *,
    comm: Any = None,
    resume: bool = False,
    overwrite: bool = False,
    time_limit: float | str | None = None,
    checkpoint_seconds: float = 30.0,
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Run a configuration (parameters: :func:`fald_hpc.sample`); a time limit given here goes before its own."""
    return sample(
        **arguments(config), out=out, comm=comm, resume=resume, overwrite=overwrite, progress=progress,
        time_limit=config.run.time_limit if time_limit is None else time_limit, checkpoint_seconds=checkpoint_seconds,
    )  # fmt: skip
