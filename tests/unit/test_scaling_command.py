"""``fald scale`` and the scaling scripts in child processes: a tiny study from measurement to figures."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fald_hpc import launch
from fald_hpc.scaling import record, study

ROOT = Path(__file__).parents[2]
MPIEXEC = Path(sys.executable).parent / "mpiexec"
with_mpi = pytest.mark.skipif(not MPIEXEC.is_file(), reason="no mpiexec beside this Python")


def fald(*arguments, cwd):
    command = [sys.executable, "-m", "fald_hpc", "scale", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=launch.clean(os.environ), capture_output=True, text=True, timeout=300)


@with_mpi
def test_strong_study_on_an_emulated_network(tmp_path):
    options = ("--ranks", "1,2", "--repeats", "2", "--steps", "300", "--emulate-ms", "1", "--out", "s")
    done = fald("strong", "titanic", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    records = record.read(tmp_path / "s" / study.FILE)
    assert [one["ranks"] for one in records] == [1, 1, 2, 2]
    assert [one["delay_ms"] for one in records] == [0.0, 0.0, 1.0, 1.0]
    for one in records:
        assert one["messages"]["made"] == one["messages"]["predicted"]
        assert len(one["hosts"]) == len(one["cores"]) == one["ranks"]
    last = records[-1]
    assert last["bytes_per_rank"] > 0
    # every message slept for a millisecond, and the trace saw it
    assert last["trace"]["messages"] >= 0.9e-3 * last["messages"]["made"]
    assert last["seconds"]["sample"] >= 0.9e-3 * last["messages"]["made"]
    assert "emulated network: 1 ms a message" in done.stdout
    for name in ("time", "efficiency", "shares"):
        assert (tmp_path / "s" / f"{name}.png").stat().st_size > 1000
        assert (tmp_path / "s" / f"{name}.pdf").stat().st_size > 1000
    # another setting is another study
    refused = fald("strong", "titanic", *options, "--set", "sampler.batch_size=5", cwd=tmp_path)
    assert refused.returncode == 2
    assert "study config" in refused.stderr
    assert fald("show", "s", cwd=tmp_path).returncode == 0


@with_mpi
def test_hidden_latency_is_seen_and_predicted(tmp_path):
    """Two batches of 64 chains and messages of 5 ms, which the model knows (that it predicts a gain: test_scaling_model)."""
    config = ("--set", "run.chains=64", "--set", "run.chain_batches=2")
    options = ("--ranks", "2", "--repeats", "1", "--steps", "200", "--emulate-ms", "5", "--out", "study")
    done = fald("strong", "titanic", *options, *config, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (one,) = record.read(tmp_path / "study" / study.FILE)
    assert one["chain_batches"] == 2
    assert one["messages"]["made"] == one["messages"]["predicted"]
    # what was waited for is in the trace: less than the messages, since some of it is hidden
    assert one["trace"]["averaging"] is None
    # nothing can be faster than the messages of one batch, one after another, less the start's
    least = 5e-3 * (one["messages"]["made"] // 2 - 1)
    assert one["seconds"]["sample"] >= least
    done = fald("check", "study", "titanic", *config, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (compared,) = json.loads(done.stdout)
    assert compared["batches"] == 2
    assert 200 * compared["predicted"] >= 0.8 * least  # the model takes the expected number of messages


@with_mpi
@pytest.mark.parametrize("fixed", ["rows", "chains"])
def test_weak_study_inside_one_job(tmp_path, fixed):
    environ = launch.clean(os.environ)
    environ |= launch.permissions(environ, 2, len(os.sched_getaffinity(0)), os.geteuid() == 0)
    script = ROOT / "mpi_jobs" / "weak_scaling.py"
    command = [MPIEXEC, "-n", "2", sys.executable, script, "quickstart-regression", "--fixed", fixed, "--ranks", "1,2"]
    command += ["--repeats", "1", "--steps", "500", "--out", "w"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    records = record.read(tmp_path / "w" / study.FILE)
    assert [one["ranks"] for one in records] == [1, 2]
    assert [one["clients"] for one in records] == ([5, 10] if fixed == "rows" else [5, 5])
    assert [one["chains"] for one in records] == ([4, 4] if fixed == "rows" else [4, 8])


def test_model_from_known_costs(tmp_path):
    costs = {"step": 2e-7, "client_step": 1e-7, "row_step": 8e-8, "row_refresh": 2e-8, "message": 2e-6}
    (tmp_path / "costs.json").write_text(json.dumps(costs))
    options = ("--costs", "costs.json", "--fixed", "rows", "--ranks", "1,1000,100000", "--jitter", "0.3", "--out", "m")
    done = fald("model", "titanic", *options, "--network", "ethernet", "--slow", "0.01,1.5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "communication (network and waiting) overtakes computation at" in done.stdout
    points = json.loads((tmp_path / "m" / "model.json").read_text())["points"]
    assert [one["ranks"] for one in points] == [1, 1000, 100000]
    assert points[0]["efficiency"] == pytest.approx(1.0)
    assert points[1]["simulated"] == pytest.approx(points[1]["total"], rel=0.03)
    assert points[2]["simulated"] is None
    assert (tmp_path / "m" / "model.pdf").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("strong", "titanic", "--ranks", "1,zero"), "--ranks takes"),
        (("weak", "titanic", "--fixed", "steps"), "--fixed steps"),
        (("model", "titanic", "--network", "fast"), "--network fast"),
        (("model", "titanic", "--slow", "1"), "--slow takes"),
        (("show", "nowhere"), "no study"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, arguments, words):
    done = fald(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
