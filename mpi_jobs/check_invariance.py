"""Layout invariance inside one MPI job: a config on the first 1, 2, ..., N ranks, compared byte for byte.

    mpiexec -n 4 python mpi_jobs/check_invariance.py titanic --steps 20000
    srun -n 64 python mpi_jobs/check_invariance.py study.toml --ranks 1,8,64

Unlike ``fald verify`` it starts no launcher of its own, so it also works where one job step is all a site allows.
Exit code 1 and the first difference if two layouts differ.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from fald_hpc import threads

threads.cap(os.environ)  # before NumPy is imported


def main() -> int:
    """Parse, run every layout, compare on rank 0."""
    from fald_hpc import comm, config, execute, invariance

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="a TOML file or a built-in example")
    parser.add_argument("--ranks", help="rank counts, 1 to all ranks by default")
    parser.add_argument("--steps", type=int, help="the same as --set run.steps=N")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a key")
    options = parser.parse_args()
    changes = [*options.set, *([f"run.steps={options.steps}"] if options.steps else [])]

    world = comm.connect()
    counts = [int(n) for n in options.ranks.split(",")] if options.ranks else list(range(1, world.size + 1))
    cfg = config.load(options.source, changes)
    place = Path(world.share(tempfile.mkdtemp(prefix="fald-invariance-") if world.rank == 0 else None))
    for count in counts:
        group = world.split(int(world.rank < count))
        if world.rank < count:
            execute.execute(cfg, place / str(count), comm=group)
        world.together(None)  # the next layout starts when this one is done

    if world.rank > 0:
        return 0
    for count in counts[1:]:
        difference = invariance.first_difference(place / str(counts[0]), place / str(count))
        if difference is not None:
            print(f"DIFFERENT: {counts[0]} against {count} ranks: {difference} (both are kept in {place})")
            return 1
    print(f"Same bytes (draws, summary, checkpoint) on {', '.join(map(str, counts))} ranks; see {place}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
