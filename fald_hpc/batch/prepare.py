"""From a config to a job that fits: the plan gives layout, memory and time; what cannot be is refused unwritten."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fald_hpc import config, execute
from fald_hpc.batch import duration, fit, offers
from fald_hpc.batch.grid import Point
from fald_hpc.batch.job import Job
from fald_hpc.errors import UserError

WEIGHTLESS = ("run.seed", "sampler.step_size", "sampler.noise_sharing", "sampler.init")
"""Keys that change neither memory nor time: points of a grid that differ in these alone are planned once."""


@dataclass(frozen=True)
class Prepared:
    """A job that fits, and what there is to say about it."""

    job: Job
    notes: Sequence[str]


def prepare(job: Job, partition: str | None, memory: int | None) -> Prepared:
    """Return a job with its memory, or refuse it.

    Parameters
    ----------
    job : Job
        What is asked for; its ``memory`` is not looked at.
    partition : str or None
        None: the cluster's default one.
    memory : int or None
        Megabytes for each rank; None: from the plan.

    Raises
    ------
    UserError
        Config, layout, memory or time cannot be; the sentence says what can.
    """
    fit.layout(job)
    seconds, needed = 0.0, 0.0
    planned: set[tuple[str, ...]] = set()
    for point in job.points or [Point("", ())]:
        cfg = config.load(job.source, [*job.overrides, *point.overrides])
        weighty = tuple(text for text in point.overrides if text.partition("=")[0] not in WEIGHTLESS)
        if weighty in planned:
            continue
        planned.add(weighty)
        plan = execute.plan(cfg, job.ranks)
        seconds, needed = max(seconds, plan.step_seconds * plan.study.request.steps), max(needed, plan.memory_bytes)
    wanted = fit.memory(needed) if memory is None else memory
    if wanted * 1e6 < needed:
        raise UserError(
            f"--memory-per-rank {wanted}: the largest rank needs about {math.ceil(needed / 1e6)} MB before any margin; "
            f"give {fit.memory(needed)} or more"
        )
    job = replace(job, memory=wanted)
    starts = fit.starts(job, seconds)
    there = offers.ask()
    notes = [
        f"{job.ranks} ranks on {job.nodes} {'node' if job.nodes == 1 else 'nodes'}, {wanted} MB each "
        f"(the plan says {math.ceil(needed / 1e6)})",
        f"about {duration.slurm(math.ceil(seconds))} of sampling (measured where this was written), "
        + ("in one start" if starts == 1 else f"in some {starts} starts of {duration.slurm(job.seconds)}"),
    ]
    if there is None:
        notes.append("no sinfo where this was written: whether a cluster can hold it is not checked")
    else:
        fit.cluster(job, there, partition)
    return Prepared(job, notes)
