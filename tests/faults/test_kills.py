"""SIGKILL at random times: every resume works, nothing is lost, and the bytes are those of a run left alone.

users.md rows 7, 8, 31, 33, 34, 36. Counts are printed; FALD_LONG=1 takes 200 kills.
"""

import random
import signal
import time

import pytest

from fald_hpc import invariance
from faults.jobs import LONG, WORK, Job, fald, finish, messages

pytestmark = pytest.mark.faults

KILLS = {1: 100 if LONG else 6, 3: 100 if LONG else 6}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the folder of the run that nobody disturbs, and the seconds of a start and of the whole by number of ranks."""
    place = tmp_path_factory.mktemp("whole")
    finish(fald("run", *WORK, "--out", place / "run"), 1, place, seconds=300)
    seconds = {}
    for ranks in KILLS:
        begun = time.monotonic()
        finish(fald("run", *WORK, "--out", place / f"run-{ranks}"), ranks, place)
        seconds[ranks] = time.monotonic() - begun
        assert invariance.first_difference(place / "run", place / f"run-{ranks}") is None
    return place / "run", seconds


@pytest.mark.parametrize("ranks", KILLS)
def test_killed_at_random_times(whole, tmp_path, capsys, ranks):
    """Kill one random rank, or the launcher's whole job at once; resume until all kills are spent, then finish."""
    reference, seconds = whole
    chance = random.Random(20 + ranks)
    kills = runs = finished = 0
    slowest = 0.0
    folder = tmp_path / "run-0"
    while kills < KILLS[ranks]:
        runs += 1
        with Job(fald("run", *WORK, "--out", folder, "--resume"), ranks, tmp_path) as job:
            # from before the first import to the end of an undisturbed run
            pause = chance.uniform(0.0, seconds[ranks])
            while time.monotonic() - job.begun < pause and job.process.poll() is None:
                time.sleep(0.02)
            if job.process.poll() is None and job.kill(chance.randrange(ranks), signal.SIGKILL):
                kills += 1
                begun = time.monotonic()
                assert job.end(60) != 0
                slowest = max(slowest, time.monotonic() - begun)
                continue
            code = job.end(60)
        assert code == 0, job.err
        finished += 1
        assert invariance.first_difference(reference, folder) is None
        folder = tmp_path / f"run-{finished}"
    finish(fald("run", *WORK, "--out", folder, "--resume"), ranks, tmp_path)
    assert invariance.first_difference(reference, folder) is None
    with capsys.disabled():
        print(
            f"\n{ranks} ranks: {kills} SIGKILLs over {runs + 1} starts, {finished + 1} runs compared, 0 lost, 0 wrong bytes; "
            f"all processes gone {slowest:.1f} s after a kill at most"
        )


@pytest.mark.parametrize("ranks", [2])
def test_killed_launcher(whole, tmp_path, capsys, ranks):
    """Mpiexec alone is killed: its ranks notice and end; a resume at once waits for their lock."""
    reference, _ = whole
    folder = tmp_path / "run"
    with Job(fald("run", *WORK, "--out", folder), ranks, tmp_path) as job:
        job.until_sampling(folder)
        assert job.kill(-1, signal.SIGKILL)
        begun = time.monotonic()
        with Job(fald("run", *WORK, "--out", folder, "--resume"), ranks, tmp_path) as second:
            job.process.wait(10)
            while job.processes():
                assert time.monotonic() - begun < 15, "ranks without a launcher must end"
                time.sleep(0.05)
            gone = time.monotonic() - begun
            assert second.end(120) == 0, second.err
    assert invariance.first_difference(reference, folder) is None
    with capsys.disabled():
        print(f"\nlauncher killed: {ranks} ranks gone after {gone:.1f} s; the resume that waited gives the same bytes")


def test_killed_while_overwriting(whole, tmp_path):
    """What is left of an overwritten run is never taken for a state of the new one."""
    reference, _ = whole
    folder = tmp_path / "run"
    other = [*WORK, "--seed", "2"]
    with Job(fald("run", *other, "--out", folder), 1, tmp_path) as job:
        job.until_sampling(folder)
        job.kill(0, signal.SIGKILL)
        job.end(30)
    with Job(fald("run", *WORK, "--out", folder, "--overwrite"), 1, tmp_path) as job:
        job.until(lambda: not (folder / "checkpoint").exists() or not (folder / "draws.zarr").exists())
        job.kill(0, signal.SIGKILL)
        job.end(30)
        assert not messages(job)
    finish(fald("run", *WORK, "--out", folder, "--resume"), 1, tmp_path)
    assert invariance.first_difference(reference, folder) is None
