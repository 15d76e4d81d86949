"""Starts of several ranks that go wrong, or go right and must be quiet about it.

users.md rows 10, 14, 15, 17, 18, 25, 50, 57: who holds a folder, what ranks must agree on, what they print and open.
"""

import json
import os
import re
import sys

import numpy as np
import pytest

from fald_hpc import invariance, manifest
from faults.jobs import WORK, Job, fald, finish, messages

pytestmark = pytest.mark.faults

CORES = len(os.sched_getaffinity(0))


def script(folder, name, text):
    """Write a program that changes something and then is ``fald``."""
    path = folder / name
    path.write_text(text + "\nfrom fald_hpc.cli import main\n\nmain.main()\n")
    return path


def test_a_folder_in_use_is_refused_and_its_holder_named(tmp_path):
    folder = tmp_path / "run"
    work = ["gaussian", "--steps", "10000000000", "--quiet", "--out", folder]
    with Job(fald("run", *work), 2, tmp_path) as job:
        job.until_sampling_begins(folder)
        before = json.loads((folder / ".lock").read_text())
        assert before["pid"] == job.ranks()[0]
        for more in ([], ["--overwrite"]):
            with Job(fald("run", *work, *more), 2, tmp_path) as second:
                assert second.end(60) == 2
                (said,) = messages(second)
            assert f"in use by another run: process {before['pid']} on {os.uname().nodename}" in said
        assert json.loads((folder / ".lock").read_text()) == before
        assert (folder / "checkpoint" / "newest").exists()


def test_of_two_starts_at_once_one_wins(tmp_path):
    folder = tmp_path / "run"
    command = fald("run", *WORK, "--steps", "20000", "--out", folder)
    with Job(command, 1, tmp_path) as one, Job(command, 1, tmp_path) as other:
        codes = [one.end(120), other.end(120)]
    assert sorted(codes) == [0, 2], (one.err, other.err)
    (said,) = messages([one, other][codes.index(2)])
    assert any(word in said for word in ("in use by another run", "another run has begun", "holds a run")), said
    finish(fald("run", *WORK, "--steps", "20000", "--out", tmp_path / "alone"), 1, tmp_path)
    assert invariance.first_difference(tmp_path / "alone", folder) is None


OTHER_VERSION = """
import sys
import {module}

if int(sys.argv.pop(1)) == 1:
    {module}.__version__ += ".post1"  # what imports it later may compare the first numbers
"""


@pytest.mark.parametrize("module", ["numpy", "numba", "fald_hpc"])
def test_ranks_with_other_package_versions_are_refused(tmp_path, module):
    program = script(tmp_path, "other.py", OTHER_VERSION.format(module=module))
    run = ["run", "gaussian", "--steps", "1000", "--quiet", "--out", tmp_path / "run"]
    with Job([], 2, tmp_path, programs=[[sys.executable, program, rank, *run] for rank in range(2)]) as job:
        assert job.end(60) == 2
    (said,) = messages(job)
    assert re.search(rf"rank 1 has version of {module} = (\S+)\.post1 where rank 0 has \1:", said), said
    assert not (tmp_path / "run").exists()


def test_ranks_with_other_configs_are_refused(tmp_path):
    """Two copies of a config on two nodes, one of them old."""
    from fald_hpc import config

    text = config.example_text("gaussian")
    programs = []
    for rank, changed in enumerate([text, text.replace("seed = 1", "seed = 2")]):
        (tmp_path / f"study-{rank}.toml").write_text(changed)
        programs.append(fald("run", tmp_path / f"study-{rank}.toml", "--steps", "1000", "--quiet", "--out", tmp_path / "run"))
    with Job([], 2, tmp_path, programs=programs) as job:
        assert job.end(60) == 2
    (said,) = messages(job)
    assert "rank 1 has run.seed = 2 where rank 0 has 1" in said
    assert not (tmp_path / "run").exists()


NO_LOCKS = """
import errno, fcntl

def flock(descriptor, operation):
    raise OSError(errno.ENOLCK, "No locks available")

fcntl.flock = flock
"""


def test_a_filesystem_without_locks_costs_one_warning(tmp_path):
    program = script(tmp_path, "unlocked.py", NO_LOCKS)
    finish(fald("run", *WORK, "--steps", "5000", "--out", tmp_path / "plain"), 1, tmp_path)
    command = [sys.executable, program, "run", *WORK, "--steps", "5000", "--out", tmp_path / "run"]
    job = finish(command, 2, tmp_path)
    assert [line for line in job.err.splitlines() if "warning" in line] == [
        f"warning: {tmp_path / 'run'} lies on a filesystem without locks (No locks available): see to it that no two runs "
        "write there."
    ]
    assert invariance.first_difference(tmp_path / "plain", tmp_path / "run") is None


OFTEN = """
import sys
from fald_hpc.cli import progress

progress.reporter = lambda opening=(): progress.Lines(sys.stderr, opening, interval=0.2)
"""


def test_every_message_once_and_progress_in_lines(tmp_path):
    """On more ranks than cores: where the ranks are, that they are too many, other warnings, progress; each said once."""
    ranks = CORES + 1
    program = script(tmp_path, "often.py", OFTEN)
    work = ["gaussian", "--steps", "300000", "--set", "sampler.comm_prob=0.1", "--set", "sampler.refresh_prob=0.2"]
    with Job([sys.executable, program, "run", *work, "--out", tmp_path / "run"], ranks, tmp_path) as job:
        job.until(lambda: "step " in job.err)  # a line is there while the job still runs: it was flushed
        assert job.end(120) == 0, job.err
    assert "\r" not in job.out + job.err
    host = re.escape(os.uname().nodename)
    lines = job.err.splitlines()
    assert len([line for line in lines if re.fullmatch(rf"{ranks} ranks on {host} \({CORES} cores\)", line)]) == 1
    warned = [line for line in lines if line.startswith("warning: ")]
    assert len([line for line in warned if f"{ranks} ranks on" in line and "slower" in line]) == 1
    assert len([line for line in warned if "refresh_prob = 0.2 is larger" in line]) == 1
    assert len(warned) == 2, warned
    steps = [int(found[1]) for line in lines if (found := re.match(r"step (\d+) of 300000 \(", line))]
    assert steps == sorted(set(steps))
    assert len(steps) >= 2
    assert job.out.count("results: ") == 1


def test_twelve_clients_on_four_and_twelve_ranks(tmp_path):
    """The bytes of one process, by the command that a user has for it; ``mpi/`` compares all of 1 to 6 ranks."""
    rng = np.random.default_rng(6)
    rows = [f"site-{i % 12},{a:.6f},{b:.6f},{int(a + b > 0)}" for i, (a, b) in enumerate(rng.normal(size=(120, 2)))]
    (tmp_path / "all.csv").write_text("\n".join(["site,a,b,y", *rows]) + "\n")
    (tmp_path / "study.toml").write_text(
        '[target]\npotential = "logistic"\n[data]\nfile = "all.csv"\nclient_column = "site"\nlabel = "y"\n'
        "[sampler]\nstep_size = 0.002\ncomm_prob = 0.2\nbatch_size = 3\n[run]\nsteps = 3000\n"
    )
    with Job(fald("verify", tmp_path / "study.toml", "--ranks", "1,4,12"), 1, tmp_path) as job:
        assert job.end(300) == 0, job.out + job.err
    assert job.out.count(" ranks: ") == 2, job.out


def test_doctor_on_two_ranks(tmp_path):
    with Job(fald("doctor"), 2, tmp_path) as job:
        assert job.end(60) in (0, 1), job.err
    rows = dict(re.match(r"(\S+(?: \S+)*?) {1,12}(.*)", line).groups() for line in job.out.splitlines() if "  " in line)
    found = "\n".join(f"{name}: {text}" for name, text in rows.items())
    assert "sum of 1..2 over 2 ranks = 3" in job.out, found
    for word in ("MPI library", "Open MPI", "mpiexec", "launcher", "2 tasks", f"2 on {os.uname().nodename}", "numba cache"):
        assert word in job.out, job.out


OPENED = """
import atexit, json, os, sys

opened = set()

def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], str):
        opened.add(arguments[0])

sys.addaudithook(hook)
place = sys.argv.pop(1)

@atexit.register
def report():
    rank = os.environ["OMPI_COMM_WORLD_RANK"]
    modules = sorted({name.split(".")[0] for name in sys.modules})
    with open(os.path.join(place, f"rank-{rank}.json"), "w") as file:
        json.dump({"files": len(opened), "modules": modules}, file)
"""

FILES = 1100
"""Files that a rank without output may open by Python's own means, imports among them; it was 982 with Python 3.11."""


def test_ranks_open_few_files_and_import_no_storage_and_no_plots(tmp_path):
    """An import storm of a thousand ranks is this number times a thousand (users.md row 50)."""
    program = script(tmp_path, "opened.py", OPENED)
    finish([sys.executable, program, tmp_path, "run", *WORK, "--steps", "5000", "--out", tmp_path / "run"], 2, tmp_path)
    first, other = (json.loads((tmp_path / f"rank-{rank}.json").read_text()) for rank in range(2))
    heavy = {"arviz", "matplotlib", "pandas", "pyarrow", "rich", "xarray"}
    assert not heavy & set(first["modules"])
    assert not (heavy | {"zarr", "numcodecs"}) & set(other["modules"])
    assert other["files"] <= FILES, other["files"]


def test_threads_and_layout_are_recorded(tmp_path):
    finish(fald("run", *WORK, "--steps", "5000", "--out", tmp_path / "run"), 2, tmp_path, MKL_NUM_THREADS="3")
    found = manifest.read(tmp_path / "run")
    assert found["threads"]["MKL_NUM_THREADS"] == "3"
    assert found["threads"]["NUMBA_NUM_THREADS"].startswith("1")
    assert found["layout"] == {"ranks": 2, "client_groups": 2, "chain_groups": 1}
    assert found["machine"]["ranks"] == 2
    assert found["machine"]["hosts"] == [os.uname().nodename] * 2
    assert found["seed"] == 1
