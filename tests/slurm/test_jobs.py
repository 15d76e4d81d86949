"""Batch jobs on a real Slurm: whatever interrupts them, their results are those of one process, byte for byte."""

import contextlib
import json
import os
import signal
import time
from pathlib import Path

import pytest
from cluster import wait_for
from conftest import LATENCY, ROOT

from fald_hpc import invariance

MPICH = "srun --mpi=pmi2"


def submitted(slurm, python, cwd, settings, *options, latency=20.0, **environ):
    """Submit a run by ``fald slurm`` and return the job's number."""
    given = {LATENCY: str(latency), **environ}
    words = ["env", *(f"{name}={value}" for name, value in given.items()), python, "-m", "fald_hpc", "slurm"]
    said = slurm.command(*words, *settings, *options, "--submit", cwd=cwd)
    return said.partition("Submitted job ")[2].split()[0].rstrip(".,")


def step(folder):
    """Return the step that a run has reached, by its last sign of life; -1 before the first."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        return json.loads((folder / "alive").read_text())["step"]
    return -1


def advanced(folder, by=200):
    """Wait until a run has done so many more steps in this start."""
    first = step(folder)
    wait_for(lambda: step(folder) >= first + by, 90, f"progress beyond step {first} in {folder}")


def log(cwd, job):
    """Return the log of a job: lines only, no carriage return."""
    text = "".join(path.read_text() for path in sorted(cwd.glob(f"*-{job}.out")))
    assert "\r" not in text
    return text


def assert_completed(slurm, job, cwd, folder, serial, seconds=240):
    """Wait for a job and compare its results with those of one process."""
    shown = slurm.wait(job, seconds)
    assert shown["JobState"] == "COMPLETED", (shown, log(cwd, job))
    assert invariance.first_difference(serial, folder) is None
    return shown


def test_two_nodes_give_the_bytes_of_one_process(slurm, mpich, settings, serial, tmp_path):
    job = submitted(slurm, mpich, tmp_path, settings, "--ranks", 4, "--nodes", 2, "--time", 5, latency=0.5)
    folder = tmp_path / "runs" / "titanic"
    shown = assert_completed(slurm, job, tmp_path, folder, serial)
    assert shown["NumNodes"] == "2"
    said = log(tmp_path, job)
    assert "by: srun --mpi=pmi2 --kill-on-bad-exit=1" in said
    assert "\n4 ranks on " in said  # all in one world
    assert json.loads((folder / "manifest.json").read_text())["layout"]["ranks"] == 4

    rows = json.loads(slurm.command(mpich, "-m", "fald_hpc", "slurm", "--status", "--json"))
    row = next(row for row in rows if row["job"] == job)
    assert (row["slurm"], row["run"], row["step"], row["steps"]) == ("completed", "finished", 6000, 6000)
    assert job in slurm.command(mpich, "-m", "fald_hpc", "slurm", "--status")

    # the same script again finds nothing left to do
    again = slurm.submit(tmp_path / "titanic.sbatch", cwd=tmp_path)
    assert_completed(slurm, again, tmp_path, folder, serial)


def test_requeued_and_preempted_runs_lose_nothing(slurm, mpich, settings, serial, tmp_path):
    """By the template as it is shipped."""
    (tmp_path / "slurm").symlink_to(ROOT / "slurm")
    folder = tmp_path / "out"
    job = slurm.command(
        "env", f"FALD_PYTHON={mpich}", f"{LATENCY}=20", "sbatch", "--parsable", "--mem-per-cpu=500",
        "slurm/sample.sbatch", settings[0], folder, *settings[1:], cwd=tmp_path,
    ).strip()  # fmt: skip
    for _ in range(2):
        advanced(folder)
        slurm.command("scontrol", "requeue", job)
        wait_for(lambda: slurm.show(job)["JobState"] == "PENDING", 30, "requeued job")
        wait_for(lambda: slurm.show(job)["JobState"] == "RUNNING", 60, "another start")
    advanced(folder)
    urgent = tmp_path / "urgent.sh"
    urgent.write_text("#!/bin/sh\nsleep 2\n")
    other = slurm.submit(urgent, "--partition=urgent", "--nodes=3", "--ntasks=6", "--output=/dev/null", cwd=tmp_path)
    assert slurm.wait(other)["JobState"] == "COMPLETED"
    shown = assert_completed(slurm, job, tmp_path, folder, serial)
    assert int(shown["Restarts"]) == 3
    said = log(tmp_path, job)
    assert said.count("The state is saved") == 3, said
    assert said.count("Slurm has ended this start (exit code 75)") == 3


def test_a_run_longer_than_the_time_limit_ends_in_several_starts(slurm, mpich, settings, serial, tmp_path):
    options = ["--ranks", 4, "--nodes", 2, "--time", 1]
    job = submitted(slurm, mpich, tmp_path, settings, *options, latency=60.0)
    folder = tmp_path / "runs" / "titanic"
    wait_for(lambda: int(slurm.show(job)["Restarts"]) >= 2, 200, "two restarts")
    # enough seen: what is left may take one start
    slurm.command("scontrol", "update", f"JobId={job}", "TimeLimit=10")
    assert_completed(slurm, job, tmp_path, folder, serial)
    said = log(tmp_path, job)
    assert said.count("; requeued") >= 2, said
    assert said.count("The state is saved") >= 2, said


def test_a_lost_rank_ends_the_start_and_the_next_one_goes_on(slurm, mpich, settings, serial, tmp_path):
    job = submitted(slurm, mpich, tmp_path, settings, "--ranks", 4, "--nodes", 2, "--time", 5)
    folder = tmp_path / "runs" / "titanic"
    advanced(folder)
    os.kill(slurm.ranks(job)[-1], signal.SIGKILL)
    wait_for(lambda: slurm.show(job)["JobState"] != "RUNNING", 60, "end of a start with a lost rank")
    shown = assert_completed(slurm, job, tmp_path, folder, serial)
    assert int(shown["Restarts"]) == 1
    assert "a rank was lost (exit code 137); requeued" in log(tmp_path, job)


def test_without_kill_on_bad_exit_the_others_wait_for_a_lost_rank(slurm, mpich, settings, serial, tmp_path):
    """Why the templates have it. The warning before the time limit then ends them: nothing but time is lost."""
    options = ["--ranks", 4, "--nodes", 2, "--time", 5, "--launch", f"{MPICH} --kill-on-bad-exit=0"]
    job = submitted(slurm, mpich, tmp_path, settings, *options, FALD_SAVE_SECONDS="2")
    folder = tmp_path / "runs" / "titanic"
    advanced(folder)
    os.kill(slurm.ranks(job)[-1], signal.SIGKILL)
    time.sleep(8)
    assert slurm.show(job)["JobState"] == "RUNNING"
    slurm.command("scancel", "--batch", "--signal=USR1", job)  # as before the time limit
    shown = assert_completed(slurm, job, tmp_path, folder, serial)
    assert int(shown["Restarts"]) == 1
    assert "could not save its state" in log(tmp_path, job)


@pytest.mark.parametrize("launch", [f"{MPICH} --kill-on-bad-exit=1", f"{MPICH} --kill-on-bad-exit=0"])
def test_a_lost_node_ends_the_start_and_the_next_one_goes_on(slurm, mpich, settings, serial, tmp_path, launch):
    options = ["--ranks", 4, "--nodes", 2, "--time", 5, "--launch", launch]
    job = submitted(slurm, mpich, tmp_path, settings, *options)
    folder = tmp_path / "runs" / "titanic"
    advanced(folder)
    lost = slurm.names[int(slurm.show(job)["NodeList"].rpartition("-")[2].rstrip("]")[-1]) - 1]
    assert slurm.crash_node(lost) >= 3  # its step daemon and two ranks at least
    crashed = time.monotonic()
    try:
        wait_for(lambda: slurm.show(job)["JobState"] != "RUNNING", 120, "end of a start with a lost node")
        print(f"{launch}: ended {time.monotonic() - crashed:.1f} s after a node was lost")
        shown = assert_completed(slurm, job, tmp_path, folder, serial)
        assert int(shown["Restarts"]) >= 1
    finally:
        slurm.start_node(lost)
        wait_for(lambda: slurm.node_states()[lost] == "idle", 60, "node that came back")


def test_an_array_of_combinations(slurm, mpich, settings, serial, tmp_path):
    options = ["--ranks", 2, "--time", 5, "--array", "run.seed=1,2", "--array", "sampler.comm_prob=0.05"]
    job = submitted(slurm, mpich, tmp_path, settings, *options, latency=0.5)
    place = tmp_path / "runs" / "titanic"
    names = {"seed=1,comm_prob=0.05", "seed=2,comm_prob=0.05"}
    wait_for(lambda: not slurm.jobs(), 240, "end of the array")
    assert {path.name for path in place.iterdir()} == names
    rows = json.loads(slurm.command(mpich, "-m", "fald_hpc", "slurm", "--status", "--json"))
    mine = [row for row in rows if row["job"].startswith(f"{job}_")]
    assert [(row["slurm"], row["run"]) for row in mine] == [("completed", "finished")] * 2
    # the example's own seed and probability
    assert invariance.first_difference(serial, place / "seed=1,comm_prob=0.05") is None
    assert invariance.first_difference(serial, place / "seed=2,comm_prob=0.05") is not None


def test_the_array_template(slurm, mpich, settings, serial, tmp_path):
    (tmp_path / "slurm").symlink_to(ROOT / "slurm")
    words = ["env", f"FALD_PYTHON={mpich}", "sbatch", "--parsable", "--mem-per-cpu=500", "--array=1,6"]
    slurm.command(*words, "slurm/array.sbatch", settings[0], "out", *settings[1:], cwd=tmp_path)
    wait_for(lambda: not slurm.jobs(), 120, "end of the array")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["comm_prob=0.05,name=vr_fald_star"]
    assert invariance.first_difference(serial, tmp_path / "out" / "comm_prob=0.05,name=vr_fald_star") is None
    assert "has no combination" in "".join(path.read_text() for path in tmp_path.glob("*_6.out"))


def test_a_point_of_a_scaling_study(slurm, mpich, tmp_path):
    for name in ("slurm", "mpi_jobs"):
        (tmp_path / name).symlink_to(ROOT / name)
    words = ["env", f"FALD_PYTHON={mpich}", "SBATCH_MEM_PER_CPU=500", mpich, "-m", "fald_hpc", "scale", "strong", "titanic"]
    study = ["--ranks", 2, "--repeats", 2, "--steps", 2000, "--out", "study", "--slurm", "submit"]
    assert "Submitted batch job" in slurm.command(*words, *study, cwd=tmp_path)
    wait_for(lambda: not slurm.jobs(), 120, "end of the study")
    records = (tmp_path / "study" / "study.jsonl").read_text().splitlines()
    assert len(records) >= 2, "".join(path.read_text() for path in tmp_path.glob("fald-strong*.out"))


def test_copies_that_do_not_see_each_other_are_refused(slurm, openmpi, settings, tmp_path):
    """PMI-2 is not what Open MPI speaks: four processes, each of which believes to be rank 0 of 1."""
    options = ["--ranks", 4, "--nodes", 2, "--time", 5, "--launch", MPICH]
    job = submitted(slurm, openmpi, tmp_path, settings, *options)
    shown = slurm.wait(job)
    said = log(tmp_path, job)
    assert shown["JobState"] == "FAILED", said
    assert shown["ExitCode"] == "2:0"
    assert shown["Restarts"] == "0"
    assert said.count("started 4 copies of this program") == 1, said
    assert not (tmp_path / "runs").exists()


def test_open_mpi_by_what_this_slurm_offers(slurm, openmpi, settings, serial, tmp_path):
    """By srun --mpi=pmix where PMIx is installed, else by the library's own mpiexec."""
    job = submitted(slurm, openmpi, tmp_path, settings, "--ranks", 4, "--nodes", 2, "--time", 5, FALD_MPI="openmpi")
    folder = tmp_path / "runs" / "titanic"
    advanced(folder)
    slurm.command("scancel", "--batch", "--signal=USR1", job)  # as the time limit does
    shown = assert_completed(slurm, job, tmp_path, folder, serial)
    assert int(shown["Restarts"]) == 1, log(tmp_path, job)
    assert "The state is saved" in log(tmp_path, job)


def test_nothing_of_the_machine_is_touched(slurm):
    """The cluster lives in a folder of its own."""
    assert Path(slurm.environ["SLURM_CONF"]).parent == slurm.place
