"""One point of a scaling study, measured by all ranks of a communicator: ``python -m fald_hpc.scaling.measure JOB OUT``.

A short run first compiles everything and finds how many steps take the time that was asked for; the repeats follow in
the same processes, so no import or compilation is in any of their times.
"""

import json
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fald_hpc.comm import Serial

TRACED = 1 << 18
"""Messages whose times are kept on each rank: 4 MB."""

_FIRST_STEPS = 2000


def measure(job: dict[str, Any], communicator: "Serial") -> list[dict[str, Any]]:
    """Return the records of all repeats on rank 0, an empty list elsewhere.

    Parameters
    ----------
    job : dict
        ``source`` and ``overrides`` (of :func:`fald_hpc.config.load`), ``fixed`` (:mod:`fald_hpc.scaling.grow`, None for
        a strong study), ``repeats``, ``steps`` (None: as many as take ``seconds``), ``seconds``, ``delay_ms``.
    communicator : communicator
        All ranks of the point.

    Raises
    ------
    UserError
        On all ranks, as :func:`fald_hpc.sample`.
    """
    from fald_hpc import config, execute
    from fald_hpc.sampling import sample
    from fald_hpc.scaling.grow import grown

    cfg = config.load(job["source"], job["overrides"])
    given = grown(execute.arguments(cfg), job["fixed"], communicator.size)
    if given["chain_batches"] == "auto":
        given["chain_batches"] = 1  # a study is of one number of batches, and of no trial of two

    def run(steps: int) -> Any:
        return sample(**{**given, "steps": steps, "burn_in": 0}, comm=communicator)

    first = run(_FIRST_STEPS)
    steps = job.get("steps")
    if steps is None:
        rate = communicator.share(_FIRST_STEPS / first.manifest["seconds"]["sample"] if communicator.rank == 0 else None)
        steps = max(_FIRST_STEPS, round(rate * job["seconds"]))
    load = os.getloadavg()[0]
    records = []
    for repeat in range(job["repeats"]):
        done, times, numbers = _traced(lambda: run(steps), communicator)
        place = communicator.collect(_place())
        if communicator.rank == 0:
            assert place is not None
            about = {"repeat": repeat, "load_before": load, "delay_ms": job.get("delay_ms", 0.0)}
            records.append(about | _record(job, cfg, given, steps, done, times, numbers, place))
    return records


def _traced(action: Any, communicator: "Serial") -> tuple[Any, Any, int]:
    """Run something; return it, the trace of every rank (rank 0), and the doubles that this rank sent."""
    import numpy as np

    from fald_hpc.kernels import _collectives

    _collectives.start_trace(TRACED)
    done = action()
    data, numbers = _collectives.read_trace()
    _collectives.start_trace(0)
    return done, communicator.gather(np.frombuffer(data, np.float64).reshape(-1, 2)), int(numbers)


def _place() -> dict[str, Any]:
    from fald_hpc.scaling import record

    return {
        "host": platform.node(),
        "cores": sorted(os.sched_getaffinity(0)),
        "processor": record.processor(),
    }


def _record(
    job: dict[str, Any], cfg: Any, given: dict[str, Any], steps: int, done: Any, times: Any, numbers: int,
    place: list[dict[str, Any]],
) -> dict[str, Any]:  # fmt: skip
    """Return one repeat as JSON."""
    from fald_hpc.scaling import record

    manifest = done.manifest
    seconds, messages = manifest["seconds"], manifest["messages"]
    return {
        "study": {
            "kind": "strong" if job["fixed"] is None else f"weak, {job['fixed']} fixed",
            "config": record.digest(cfg.to_dict()),
            "source": Path(job["source"]).name,
            "emulated_ms": job.get("emulated_ms", 0.0),
        },
        "build": record.build(manifest["machine"]["mpi"] if len(place) > 1 else job.get("mpi", "none (one process)")),
        "machine": record.machine([one["processor"] for one in place]),
        "ranks": len(place),
        "layout": manifest["layout"],
        "chain_batches": manifest["chain_batches"]["used"],
        "clients": len(given["clients"]),
        "chains": given["chains"],
        "steps": steps,
        "seconds_per_step": seconds["sample"] / steps,
        "seconds": {name: float(value) for name, value in seconds.items()},
        "messages": messages,
        "bytes_per_rank": 8 * numbers,
        "hosts": [one["host"] for one in place],
        "cores": [one["cores"] for one in place],
        "trace": _trace(manifest, times, messages, steps, seconds["sample"]),
    }


def _trace(manifest: dict[str, Any], times: Any, messages: dict[str, int], steps: int, seconds: float) -> Any:
    from fald_hpc.kernels import noise
    from fald_hpc.scaling import schedule, trace

    if len(times) == 1:
        return None
    events = None
    groups = manifest["layout"]["chain_groups"]
    sampler = manifest["sampler"]
    # messages of several batches are not told apart: what is waited for is what was not hidden
    if manifest["schedule"] == "shared" and messages["repeated"] == 0 and manifest["chain_batches"]["used"] == 1:
        events = schedule.events(noise.key(manifest["seed"]), sampler["comm_prob"], sampler.get("refresh_prob"), steps)
    first_group = times[: len(times) // groups]
    # messages of the set-up come first; the first of the loop, or the start's, bounds the first gap
    made = messages["made"]
    kept = [part[-made:] for part in first_group]
    if "refresh_prob" not in sampler and events is not None:
        events = schedule.Events(*(column[1:] for column in events))
    if made == 0 or any(len(part) < made or len(part) == TRACED for part in first_group):
        return None
    return trace.describe(kept, events, boundaries=8 + int(seconds / 0.4))


def main(arguments: list[str]) -> int:
    """Measure the job of a JSON file and write its records to another: on rank 0."""
    from fald_hpc import comm
    from fald_hpc.errors import UserError

    source, target = arguments
    communicator = comm.connect()
    try:
        records = measure(json.loads(Path(source).read_text()), communicator)
    except UserError as error:
        if communicator.rank == 0:
            print(f"fald: {error}", file=sys.stderr)
        return 2 if communicator.rank == 0 else 0
    if communicator.rank == 0:
        Path(target).write_text(json.dumps(records))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
