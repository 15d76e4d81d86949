"""Failures on one rank: the whole job ends in time, with one message that names the place, and the state stays good.

users.md rows 1, 7, 8, 9, 41, 60; issue: full disk, read-only store, huge steps, a user's function that raises.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fald_hpc import checkpoint, invariance
from faults.jobs import Job, fald, messages

pytestmark = pytest.mark.faults

IN_TIME = 15
"""Seconds from the fault to the end of the last process."""


@pytest.fixture
def clients(tmp_path):
    """Return the folder of six clients with two columns, and a label."""
    folder = tmp_path / "clients"
    folder.mkdir()
    for i in range(6):
        x = np.linspace(-1.0, 1.0, 20).reshape(10, 2) + 0.01 * i
        rows = "\\n".join(f"{a:.6f},{b:.6f},{(r + i) % 2}" for r, (a, b) in enumerate(x))
        (folder / f"site-{i}.csv").write_text(f"a,b,y\\n{rows}\\n".replace("\\n", "\n"))
    return folder


def study(tmp_path, clients, gradient, **changes):
    """Write a study with a user's gradient; return its file."""
    (tmp_path / "model.py").write_text(gradient)
    settings = {"step_size": "0.001", "comm_prob": "0.1", "name": '"fald"', **changes}
    lines = "\n".join(f"{key} = {value}" for key, value in settings.items())
    file = tmp_path / "study.toml"
    file.write_text(
        f'[target]\npotential = "custom"\nfunction = "model.py:gradient"\ndimension = 2\n'
        f'[data]\nfolder = "{clients}"\nlabel = "y"\n'
        f'[sampler]\n{lines}\ninit = [0.5, 0.5]\n[run]\nsteps = 10000000\n'
    )
    return file


def ends(job, folder, seconds=IN_TIME, code=1):
    """Check that a job ends as a failure must; return its one message."""
    begun = time.monotonic()
    assert job.end(60 + seconds) == code, job.err
    assert time.monotonic() - begun < 60 + seconds
    said = messages(job)
    assert len(said) == 1, job.err
    assert said[0].endswith("."), said[0]
    assert "Traceback" not in job.err, job.err
    return said[0]


RAISES = """
import numba

@numba.njit
def gradient(theta, x, y, out):
    if x[0] > 0.8 and theta[0] {condition}:
        raise ValueError("the site's model gives up")
    for j in range(theta.size):
        out[j] = theta[j] - x[j]
"""


@pytest.mark.parametrize(("ranks", "batches"), [(1, 1), (3, 1), (3, 2)])
@pytest.mark.parametrize("name", ["fald", "vr_fald_star"])
def test_user_gradient_that_raises(tmp_path, clients, ranks, batches, name):
    """The message of the user's function arrives once, with rank, client, chain and step."""
    # at the checks of set-up theta is 0.15 at most, and 0.5 at the start; from there it drifts down
    file = study(tmp_path, clients, RAISES.format(condition="< 0.05 and theta[1] < 0.0"), name=f'"{name}"')
    hidden = ["--set", f"run.chain_batches={batches}"]
    with Job(fald("run", file, *hidden, "--out", tmp_path / "run", "--quiet"), ranks, tmp_path) as job:
        said = ends(job, tmp_path / "run")
    where = ("(row ", "client ", "site-", "chain ", "step ", "on rank ", "step size")
    for word in ("ValueError: the site's model gives up", *where):
        assert word in said, said
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["state"] == "failed"
    assert checkpoint.load(tmp_path / "run" / "checkpoint") is not None


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("out[theta.size] = 1.0", "IndexError"),
        ("out[0] = 1.0", "entry 1"),
        ("out[:] = theta.repeat(2)", "ValueError"),
        ("raise RuntimeError('never mind')", "never mind"),
        ("out[:] = float('nan')", "not finite"),
        ("return undefined", "undefined"),
    ],
)
def test_wrong_user_gradients_are_refused_before_sampling(tmp_path, clients, body, word):
    file = study(tmp_path, clients, f"def gradient(theta, x, y, out):\n    {body}\n")
    with Job(fald("run", file, "--out", tmp_path / "run"), 2, tmp_path) as job:
        said = ends(job, tmp_path / "run", code=2)
    assert word in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("ranks", "batches"), [(1, 1), (3, 1), (3, 2)])
def test_values_that_are_not_finite(tmp_path, clients, ranks, batches):
    gradient = "def gradient(theta, x, y, out):\n    out[:] = theta - x\n"
    gradient += "    if theta[0] < 0.1 and theta[1] < 0.0:\n        out[0] = float('nan')\n"
    file = study(tmp_path, clients, gradient)
    hidden = ["--set", f"run.chain_batches={batches}"]
    with Job(fald("run", file, *hidden, "--out", tmp_path / "run", "--quiet"), ranks, tmp_path) as job:
        said = ends(job, tmp_path / "run")
    for word in ("not finite", "client ", "chain ", "step ", "on rank ", "step_size = 0.001", "smaller step size"):
        assert word in said, said
    arrays, _ = checkpoint.load(tmp_path / "run" / "checkpoint")
    assert all(np.isfinite(value).all() for value in arrays.values())


@pytest.mark.parametrize("example", ["titanic", "gaussian", "quickstart-regression"])
def test_a_step_size_far_too_large(tmp_path, example):
    large = ["--set", "sampler.step_size=50", "--set", "run.chains=2", "--set", "run.chain_groups=2", "--steps", "200000000"]
    with Job(fald("run", example, *large, "--out", tmp_path / "run", "--quiet"), 2, tmp_path) as job:
        if example == "titanic":  # bounded gradients never diverge: the run goes on, and its diagnostics tell
            job.until_sampling_begins(tmp_path / "run")
            return
        said = ends(job, tmp_path / "run")
    for word in ("step_size = 50", "client ", "chain ", "step ", "on rank "):
        assert word in said, said


def test_one_rank_that_fails_in_setup(tmp_path, clients):
    """A file that only the last rank opens."""
    (clients / "site-5.csv").write_text("a,b,y\n1.0,nonsense,0\n")
    file = study(tmp_path, clients, "def gradient(theta, x, y, out):\n    out[:] = theta - x\n")
    with Job(fald("run", file, "--out", tmp_path / "run"), 3, tmp_path) as job:
        said = ends(job, tmp_path / "run", code=2)
    assert "site-5" in said
    assert not (tmp_path / "run").exists()


FAULT = """
import sys
from fald_hpc import {module}
from fald_hpc.cli import main

def broken(*arguments, **more):
    raise LookupError("a fault of the program")

rank = int(sys.argv.pop(1))
if rank == 2:
    {target} = broken
main.main()
"""


@pytest.mark.parametrize(
    ("module", "target"),
    [
        ("study", "study.Federation"),
        ("start", "start.initial"),
        ("chains", "chains.Chains.run"),
        ("engine", "engine.Engine._absorb"),
        ("engine", "engine.Engine.gathered_state"),
        ("sampling", "sampling._finish"),
    ],
)
def test_a_fault_of_the_program_on_one_rank(tmp_path, module, target):
    """One traceback, with its rank, and the other ranks do not wait for it."""
    (tmp_path / "broken.py").write_text(FAULT.format(module=module, target=target))
    run = ["run", "gaussian", "--steps", "3000", "--out", tmp_path / "run", "--quiet"]
    programs = [[sys.executable, tmp_path / "broken.py", rank, *run] for rank in range(3)]
    with Job([], 3, tmp_path, programs=programs) as job:
        assert job.end(60) != 0
        assert job.err.count("Traceback (most recent call last)") == 1, job.err
        assert "rank 2 failed" in job.err
        assert "LookupError: a fault of the program" in job.err


def test_a_fault_of_the_program_on_all_ranks_is_shown_once(tmp_path):
    (tmp_path / "broken.py").write_text(FAULT.format(module="start", target="start.initial").replace("rank == 2", "True"))
    run = ["run", "gaussian", "--steps", "3000", "--out", tmp_path / "run", "--quiet"]
    with Job([], 3, tmp_path, programs=[[sys.executable, tmp_path / "broken.py", r, *run] for r in range(3)]) as job:
        assert job.end(60) != 0
        assert job.err.count("Traceback (most recent call last)") == 1, job.err
        assert "LookupError: a fault of the program" in job.err


@pytest.fixture
def small_disk(tmp_path):
    """Return a folder on a filesystem of its own of 24 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small tmpfs needs root")
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(place)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"mount is not permitted here: {done.stderr.strip()}")
    yield place
    while subprocess.run(["umount", "-l", str(place)], capture_output=True).returncode == 0:
        pass  # one mount may lie over another


BIG = ["quickstart-regression", "--chains", "16", "--set", "sampler.comm_prob=0.2", "--set", "sampler.batch_size=2",
       "--set", "run.segment_steps=1500", "--checkpoint-every", "0.1", "--quiet", "--steps", "400000"]  # fmt: skip


@pytest.mark.parametrize("ranks", [1, 2])
def test_full_disk(small_disk, tmp_path, ranks):
    folder = small_disk / "run"
    with Job(fald("run", *BIG, "--out", folder), ranks, tmp_path) as job:
        said = ends(job, folder)
    for word in ("No space left on device", str(folder), "rank 0", "--resume"):
        assert word in said, said
    step = checkpoint.load(folder / "checkpoint")[1]["step"]
    assert f"step {step} is good" in said, said
    # room is made: the same command goes on
    subprocess.run(["mount", "-o", "remount,size=120m", str(small_disk)], check=True)
    with Job(fald("run", *BIG, "--out", folder, "--resume"), ranks, tmp_path) as job:
        assert job.end(120) == 0, job.err
    with Job(fald("run", *BIG, "--out", tmp_path / "whole"), 1, tmp_path) as job:
        assert job.end(120) == 0, job.err
    assert invariance.first_difference(tmp_path / "whole", folder) is None


def test_store_that_becomes_read_only(small_disk, tmp_path):
    folder = small_disk / "run"
    subprocess.run(["mount", "-o", "remount,size=120m", str(small_disk)], check=True)
    with Job(fald("run", *BIG, "--out", folder, "--steps", "100000000"), 2, tmp_path) as job:
        job.until_sampling(folder)
        done = subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], capture_output=True, text=True)
        if done.returncode != 0:
            # a file is open for writing at this moment (the lock is): cover it with a read-only view instead
            subprocess.run(["mount", "--bind", str(small_disk), str(small_disk)], check=True)
            subprocess.run(["mount", "-o", "remount,ro,bind", str(small_disk)], check=True)
        begun = time.monotonic()
        said = ends(job, folder)
        assert time.monotonic() - begun < IN_TIME
    for word in ("Read-only file system", str(folder)):
        assert word in said, said
    assert checkpoint.load(folder / "checkpoint") is not None


def test_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with Job(fald("run", "gaussian", "--steps", "100", "--out", tmp_path / "file" / "run"), 2, tmp_path) as job:
        said = ends(job, Path(tmp_path), code=2)
    assert "file" in said
