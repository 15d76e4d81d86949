"""Time limits (users.md row 40): seconds, or the end of the batch job as the batch system tells it."""

import time
import warnings

import pytest

import fald_hpc
from fald_hpc import config, time_limit
from fald_hpc.errors import UserError


def tool(folder, name, text):
    """Write a program of the batch system that prints a text."""
    program = folder / name
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' '{text}'\n")
    program.chmod(0o755)


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Return a folder for programs of the batch system, the only one they are looked for in."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "sh").symlink_to("/bin/sh")
    return tmp_path


def test_seconds_count_from_the_start_of_the_process():
    started = time_limit.process_start()
    assert time.time() - 3600.0 < started < time.time()
    assert time_limit.deadline(100.0, {}) == pytest.approx(started + 100.0, abs=0.1)
    assert time_limit.deadline(None, {"SLURM_JOB_ID": "7"}) is None


def test_without_a_batch_job_auto_is_no_limit(tools):
    """The same command serves a workstation."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert time_limit.deadline("auto", {}) is None


def test_end_of_the_job_from_the_environment(tools):
    assert time_limit.deadline("auto", {"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": "1900000000"}) == 1.9e9


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("squeue", "2030-01-02T03:04:05"),
        ("scontrol", "JobId=7 JobName=a\n   StartTime=x EndTime=2030-01-02T03:04:05 Deadline=N/A"),
    ],
)
def test_end_of_the_job_from_the_batch_system(tools, name, text):
    tool(tools, name, text)
    expected = time.mktime((2030, 1, 2, 3, 4, 5, 0, 0, -1))
    assert time_limit.deadline("auto", {"SLURM_JOB_ID": "7"}) == expected


def test_a_job_without_an_end_has_no_limit(tools):
    tool(tools, "squeue", "UNLIMITED")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert time_limit.deadline("auto", {"SLURM_JOB_ID": "7"}) is None


def test_an_end_that_nobody_tells_is_warned_of_once(tools):
    tool(tools, "squeue", "slurm_load_jobs error: Invalid job id specified")
    with pytest.warns(UserWarning, match="the end of job 7 is not known") as caught:
        assert time_limit.deadline("auto", {"SLURM_JOB_ID": "7"}) is None
    assert len(caught) == 1


@pytest.mark.parametrize(("text", "value"), [("auto", "auto"), ("90", 90.0), ("1e3", 1000.0)])
def test_values_of_the_command_line(text, value):
    assert time_limit.parse(text) == value


@pytest.mark.parametrize("text", ["", "0", "-3", "nan", "inf", "1h", "AUTO"])
def test_other_values_are_refused(text):
    with pytest.raises(UserError, match="number of seconds"):
        time_limit.parse(text)


def test_a_config_takes_the_same_two_kinds():
    assert config.load("titanic", ["run.time_limit=auto"]).run.time_limit == "auto"
    assert config.load("titanic", ["run.time_limit=3000"]).run.time_limit == 3000.0
    for value in ("soon", "-1", "inf"):
        with pytest.raises(UserError, match='"auto" or a positive number of seconds'):
            config.load("titanic", [f"run.time_limit={value}"])


def test_a_run_without_a_folder_cannot_be_limited():
    clients = fald_hpc.Clients.from_gaussians([[0.0]], covariances=[[1.0]])
    for limit in ("auto", 10.0):
        with pytest.raises(UserError, match="give out"):
            fald_hpc.sample(fald_hpc.Gaussian(), clients, fald_hpc.FALD(step_size=0.1), steps=10, time_limit=limit)
