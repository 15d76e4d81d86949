"""One problem on the first 1, 2, 4, ... ranks of a job, or on all of them: records of a strong scaling study.

    mpiexec -n 4 python mpi_jobs/strong_scaling.py titanic --ranks 1,2,4 --out scaling/titanic
    srun python mpi_jobs/strong_scaling.py study.toml --out scaling/study        # all ranks: one point; one job a point

Appends to OUT/study.jsonl; ``fald scale show OUT`` prints the table and draws the figures. Points measured inside one
job leave the other ranks' cores idle: they wait without computing, but on most MPI libraries they poll.
"""

import argparse
import os
import sys
from pathlib import Path

from fald_hpc import threads

threads.cap(os.environ)  # before NumPy is imported


def main(fixed: str | None = None, description: str | None = __doc__) -> int:
    """Parse, measure every number of ranks, append the records on rank 0."""
    from fald_hpc import comm
    from fald_hpc.scaling import measure, record, study
    from fald_hpc.scaling.grow import FIXED

    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="a TOML file or a built-in example")
    parser.add_argument("--ranks", help="numbers of ranks, as 1,2,4; all ranks by default")
    parser.add_argument("--out", type=Path, required=True, help="folder of the study")
    parser.add_argument("--repeats", type=int, default=5, help="runs at each number of ranks")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a run at the first number of ranks")
    parser.add_argument("--steps", type=int, help="steps of a run, instead of --seconds")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a key")
    if fixed is not None:
        parser.add_argument("--fixed", choices=FIXED, default=fixed, help="what stays the same on every rank")
    options = parser.parse_args()

    world = comm.connect()
    counts = [int(n) for n in options.ranks.split(",")] if options.ranks else [world.size]
    kept = getattr(options, "fixed", None)
    plan = study.Plan(options.source, options.set, counts, kept, options.repeats, options.seconds, options.steps)
    steps = options.steps
    if world.rank == 0 and (options.out / study.FILE).exists():
        steps = steps or record.read(options.out / study.FILE)[0]["steps"]
    steps = world.share(steps)
    for count in counts:
        group = world.split(int(world.rank < count))
        records = measure.measure(plan.job(count, steps, comm.library()), group) if world.rank < count else []
        steps = world.share(records[0]["steps"] if records else None)
        if world.rank == 0:
            record.append(options.out / study.FILE, records)
            print(f"{count} ranks: {len(records)} records in {options.out / study.FILE}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
