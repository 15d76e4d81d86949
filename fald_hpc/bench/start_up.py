"""W9: from the command line to the first step, with a warm and a cold cache, and on many ranks at once."""

import resource
import sys
import tempfile
from pathlib import Path

from fald_hpc.bench import children
from fald_hpc.bench.result import Result
from fald_hpc.bench.spread import WALL, Spread, timed
from fald_hpc.bench.workbench import Setting

RANKS = 8


def _command(folder: str) -> list[str]:
    # ten steps take no time: what is left is the start and the end of a process
    options = ["--steps", "10", "--quiet", "--overwrite", "--out", folder]
    return [sys.executable, "-m", "fald_hpc", "run", "titanic", *options]


def _compiled(cache: str) -> int:
    return len(list(Path(cache).rglob("*.nbc")))


def measure(setting: Setting, prefix: children.Prefix) -> list[Result]:
    """Measure whole processes of ten steps."""
    with tempfile.TemporaryDirectory(prefix="fald-bench-") as place:
        command = _command(f"{place}/out")
        children.run(command)
        repeats = 1 if setting.quick else 5
        warm = Spread(tuple(timed(lambda: children.run(command), WALL) for _ in range(repeats)))
        results = [Result("W9", "fald run titanic, ten steps, warm cache", "process", warm, target="<= 3 s")]
        if setting.quick:
            return results
        one, many = {"NUMBA_CACHE_DIR": f"{place}/one"}, {"NUMBA_CACHE_DIR": f"{place}/many"}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        cold = Spread((timed(lambda: children.run(command, more=one), WALL),))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        results.append(
            Result("W9", "the same, cold cache", "process", cold, target="<= 40 s", facts={"processor seconds": processor})
        )
        crowd = Spread((timed(lambda: children.run([*prefix(RANKS), *command], RANKS, many), WALL),))
        value = _compiled(many["NUMBA_CACHE_DIR"]) / _compiled(one["NUMBA_CACHE_DIR"])
        results.append(
            Result("W9", f"the same, cold cache, {RANKS} ranks", "process", crowd,
                   target="one compilation (compiled files as of one rank: 1)", value=value)
        )  # fmt: skip
    return results
