"""One run in one folder (users.md row 15): who holds it is named, a dead holder holds nothing, a filesystem may have no locks."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
import warnings

import pytest

from fald_hpc import condition, lock
from fald_hpc.errors import UserError

HOLD = """
import sys, time
from pathlib import Path
from fald_hpc.lock import Lock

Lock(Path(sys.argv[1])).acquire(0.0)
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Return a living process that holds the folder."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "SLURM_JOB_ID": "71"}) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_the_holder_is_named(tmp_path, holder):
    with pytest.raises(UserError) as caught:
        lock.Lock(tmp_path).acquire(0.0)
    for word in (str(tmp_path), f"process {holder.pid} on {os.uname().nodename}", "job 71", "since 20", "--out"):
        assert word in str(caught.value), str(caught.value)
    assert lock.held(tmp_path) is True


def test_a_killed_holder_holds_nothing(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    begun = time.monotonic()
    mine = lock.Lock(tmp_path)
    mine.acquire(lock.PATIENCE)
    assert time.monotonic() - begun < 5.0
    assert mine.held
    mine.release()
    assert lock.held(tmp_path) is False


def test_a_resume_waits_for_a_dying_holder(tmp_path, holder):
    subprocess.Popen(["sh", "-c", f"sleep 1; kill -9 {holder.pid}"])
    begun = time.monotonic()
    lock.Lock(tmp_path).acquire(lock.PATIENCE)
    assert 0.5 < time.monotonic() - begun < lock.PATIENCE


def without(number):
    """Return a flock that fails."""

    def flock(descriptor, operation):
        raise OSError(number, os.strerror(number))

    return flock


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_filesystems_without_locks_are_used_with_one_warning(tmp_path, monkeypatch, number):
    monkeypatch.setattr(fcntl, "flock", without(number))
    mine = lock.Lock(tmp_path)
    with pytest.warns(lock.LockWarning, match="without locks") as caught:
        mine.acquire(0.0)
    assert len(caught) == 1
    assert mine.held
    assert lock.held(tmp_path) is None
    assert lock.holder(tmp_path)["pid"] == os.getpid()


def test_other_errors_are_not_taken_for_a_holder(tmp_path, monkeypatch):
    """A broken disk must not read as "in use by another run"."""
    monkeypatch.setattr(fcntl, "flock", without(errno.EIO))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            lock.Lock(tmp_path).acquire(0.0)
    assert lock.held(tmp_path) is None


def test_without_locks_the_sign_of_life_decides(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", without(errno.ENOLCK))
    (tmp_path / "manifest.json").write_text(json.dumps({"state": "running", "steps": 10}))
    (tmp_path / ".lock").write_text(json.dumps({"pid": 5, "host": "n1", "since": "yesterday"}))
    (tmp_path / "alive").write_text(json.dumps({"time": 1000.0, "at": 1000.0, "step": 3}))
    assert condition.read(tmp_path, 1010.0)["state"] == "running"
    assert condition.read(tmp_path, 1010.0)["holder"] == "process 5 on n1, since yesterday"
    assert condition.read(tmp_path, 1000.0 + 2 * condition.SILENT)["state"] == "dead"
