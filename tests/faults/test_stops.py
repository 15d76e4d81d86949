"""Requests to stop: one common step, state saved, exit code 75 from rank 0 alone, resume equal.

users.md rows 31, 39, 40. Counts are printed; FALD_LONG=1 takes 50 signals.
"""

import json
import random
import signal
import time

import pytest

from fald_hpc import checkpoint, invariance
from faults.jobs import LONG, WORK, Job, fald, finish, messages

pytestmark = pytest.mark.faults

SIGNALS = 50 if LONG else 5
FOR_EVER = ["gaussian", "--steps", "10000000000", "--quiet"]


def at_step(folder):
    return checkpoint.load(folder / "checkpoint")[1]["step"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the folder of the run that nobody disturbs."""
    place = tmp_path_factory.mktemp("whole")
    finish(fald("run", *WORK, "--out", place / "run"), 1, place, seconds=300)
    return place / "run"


def stopped(job, folder, name):
    """Check what a stopped job leaves; return its step."""
    code = job.end(20)
    assert code == 75, (code, job.err)
    assert len(messages(job)) == 1, job.err
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["state"] == "stopped"
    assert manifest["step"] == at_step(folder)
    assert f"stopped by {name} at step {manifest['step']}" in messages(job)[0]
    assert "--resume" in messages(job)[0]
    return manifest["step"]


def test_a_signal_to_one_random_rank(whole, tmp_path, capsys):
    """SIGTERM to one of three ranks, resumed on 1 to 3 ranks, until all signals are spent."""
    chance = random.Random(7)
    folder, sent, finished, slowest = tmp_path / "run-0", 0, 0, 0.0
    while sent < SIGNALS:
        ranks = chance.choice([3, 3, 2, 1])
        with Job(fald("run", *WORK, "--out", folder, "--resume"), ranks, tmp_path) as job:
            # python is still starting before that, and a signal ends it as it ends any program
            before = at_step(folder) if (folder / "checkpoint" / "newest").exists() else -1
            job.until(lambda job=job, folder=folder: job.process.poll() is not None or _has_begun(folder, job), 60)
            time.sleep(chance.uniform(0.0, 0.6))
            if not job.kill(chance.randrange(ranks), signal.SIGTERM):
                job.end(60)
            else:
                begun = time.monotonic()
                code = job.end(20)
                slowest = max(slowest, time.monotonic() - begun)
                assert code in (0, 75), (code, job.err)
                sent += code == 75
                assert at_step(folder) >= before
        if json.loads((folder / "manifest.json").read_text())["state"] == "finished":
            assert invariance.first_difference(whole, folder) is None
            finished += 1
            folder = tmp_path / f"run-{finished}"
    finish(fald("run", *WORK, "--out", folder, "--resume"), 2, tmp_path)
    assert invariance.first_difference(whole, folder) is None
    with capsys.disabled():
        compared = f"{finished + 1} runs compared, 0 wrong bytes"
        print(f"\n{sent} SIGTERMs to a random rank, {compared}; ended {slowest:.1f} s later at most")


def _has_begun(folder, job):
    """Return whether this start, not an earlier one, has written its lock."""
    try:
        pid = json.loads((folder / ".lock").read_text())["pid"]
    except (OSError, ValueError):
        return False
    return pid in job.processes()


def test_chain_of_six(whole, tmp_path, capsys):
    """Stopped and resumed six times, on another number of ranks each time."""
    folder, steps = tmp_path / "run", []
    work = [*WORK, "--set", "run.segment_steps=300"]
    for i, ranks in enumerate([1, 2, 3, 1, 3, 2]):
        number = [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1][i % 3]
        with Job(fald("run", *work, "--out", folder, "--resume"), ranks, tmp_path) as job:
            job.until(lambda job=job: _has_begun(folder, job))
            # to all ranks at once, or to one
            for rank in range(ranks) if i % 2 else [ranks - 1]:
                job.kill(rank, number)
            steps.append(stopped(job, folder, number.name))
    assert steps == sorted(steps)
    finish(fald("run", *work, "--out", folder, "--resume"), 3, tmp_path)
    assert invariance.first_difference(whole, folder) is None
    with capsys.disabled():
        print(f"\nresumed 6 times, at steps {steps}: the same bytes")


@pytest.mark.parametrize("where", ["segment", "segment on three ranks", "collective"])
def test_second_interrupt_ends_at_once(tmp_path, where):
    """Also inside a compiled segment that waits long for its averaging, and in a collective whose other side is stopped."""
    folder, ranks = tmp_path / "run", 1 if where == "segment" else 3
    rare = [] if where == "collective" else ["--set", "sampler.comm_prob=1e-9", "--set", "sampler.refresh_prob=1e-9"]
    with Job(fald("run", *FOR_EVER, *rare, "--set", "sampler.step_size=1e-4", "--out", folder), ranks, tmp_path) as job:
        job.until_sampling_begins(folder)
        time.sleep(1.5)
        if where == "collective":
            job.kill(1, signal.SIGSTOP)
        assert job.kill(0, signal.SIGINT)
        time.sleep(1.5)
        assert job.process.poll() is None, "the first one waits for the end of the segment"
        begun = time.monotonic()
        assert job.kill(0, signal.SIGINT)
        assert job.end(15) != 0
        assert time.monotonic() - begun < 10
        assert len([line for line in messages(job) if "second time" in line]) == 1, job.err


def test_launcher_forwards_a_request(tmp_path):
    """SIGUSR1 to mpiexec reaches all ranks, and its exit code is rank 0's."""
    folder = tmp_path / "run"
    with Job(fald("run", *FOR_EVER, "--out", folder), 2, tmp_path) as job:
        job.until_sampling_begins(folder)
        job.kill(-1, signal.SIGUSR1)
        stopped(job, folder, "SIGUSR1")


@pytest.mark.parametrize("ranks", [1, 2])
def test_time_limit(tmp_path, ranks):
    folder = tmp_path / "run"
    with Job(fald("run", *FOR_EVER, "--out", folder, "--time-limit", "12"), ranks, tmp_path) as job:
        stopped(job, folder, "the time limit")
        assert time.monotonic() - job.begun < 16


def test_time_limit_of_the_batch_system(tmp_path):
    folder = tmp_path / "run"
    end = str(int(time.time()) + 14)
    slurm = {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": end}
    with Job(fald("run", *FOR_EVER, "--out", folder, "--time-limit", "auto"), 1, tmp_path, **slurm) as job:
        stopped(job, folder, "the time limit")
        assert time.time() < int(end)


def test_serial_run_outlives_its_shell(tmp_path):
    """Only ranks end with their launcher; a run in the background goes on."""
    done = tmp_path / "run" / "summary.json"
    command = " ".join(map(str, fald("run", "gaussian", "--steps", "200000", "--quiet", "--out", tmp_path / "run")))
    with Job(["sh", "-c", f"{command} & sleep 0.2"], 1, tmp_path) as job:
        job.process.wait(20)
        end = time.monotonic() + 60
        while not done.exists():
            assert time.monotonic() < end
            time.sleep(0.1)
        job.end(20)
