"""Many short runs on four ranks, back to back in one job and job after job: none may hang (users.md rows 2, 4, 45).

Counts are printed; FALD_LONG=1 takes 500 runs.
"""

import sys
import time

import pytest

from fald_hpc import invariance
from faults.jobs import LONG, Job, fald

pytestmark = pytest.mark.faults

JOBS, RUNS = (50, 10) if LONG else (4, 10)

SCRIPT = """
import sys
from fald_hpc import comm, config, execute

first, last = int(sys.argv[1]), int(sys.argv[2])
communicator = comm.connect()
cases = [
    ("titanic", "sampler.schedule=independent", "run.chains=5"),
    ("gaussian", "sampler.name=fald"),
    ("titanic", "run.chain_groups=2", "run.segment_steps=7"),
    ("quickstart-regression", "run.chain_groups=4"),
    ("titanic", "run.chain_groups=4", "run.record=every-step", "run.steps=200"),
    ("gaussian", "run.chain_groups=2", "sampler.schedule=independent"),
    ("titanic", "sampler.comm_prob=1.0", "run.segment_steps=1", "run.steps=50"),
    ("titanic", "run.chain_batches=3", "run.chains=5", "run.segment_steps=7"),
    ("gaussian", "run.chain_batches=2", "sampler.comm_prob=1.0", "sampler.refresh_prob=1.0"),
]
for i in range(first, last):
    source, *changes = cases[i % len(cases)]
    cfg = config.load(source, ["run.steps=300", f"run.seed={i}", *changes])
    run = execute.execute(cfg, None, comm=communicator)
    if communicator.rank == 0:
        assert len(run.mean) > 0
        print("run", i, flush=True)
communicator.free()
"""


def test_short_runs_do_not_hang(tmp_path, capsys):
    script = tmp_path / "many.py"
    script.write_text(SCRIPT)
    done, begun, slowest = 0, time.monotonic(), 0.0
    for j in range(JOBS):
        start = time.monotonic()
        with Job([sys.executable, script, j * RUNS, (j + 1) * RUNS], 4, tmp_path) as job:
            assert job.end(120) == 0, job.err
            assert job.out.count("run ") == RUNS
        done += RUNS
        slowest = max(slowest, time.monotonic() - start)
    with capsys.disabled():
        took = f"{time.monotonic() - begun:.0f} s, slowest job {slowest:.0f} s"
        print(f"\n{done} short runs on 4 ranks in {JOBS} jobs, {took}: 0 hangs")


def test_cold_start_on_many_ranks(tmp_path, capsys):
    """One rank of a node compiles, the others load what it left; the results are those of one rank (row 45)."""
    repeats = 5 if LONG else 1
    many = 16
    folders = []
    for i in range(repeats):
        cache = {"NUMBA_CACHE_DIR": str(tmp_path / f"cache-{i}")}
        run = fald("run", "quickstart-regression", "--steps", "2000", "--quiet")
        for ranks in (many, 1):
            with Job([*run, "--out", tmp_path / f"run-{i}-{ranks}"], ranks, tmp_path, **cache) as job:
                assert job.end(400) == 0, job.err
                assert job.err.count("Traceback") == 0
                folders.append(tmp_path / f"run-{i}-{ranks}")
    for folder in folders[1:]:
        assert invariance.first_difference(folders[0], folder) is None, folder.name
    with capsys.disabled():
        print(f"\n{repeats} cold starts of {many} ranks with one cache folder: the same bytes as one rank")
