"""``fald status`` (users.md row 59): what state a run is in, and how old its last sign of life is."""

import json
import os

import pytest
from problems.stops import asked_to_stop

from fald_hpc import condition, config, execute, lock, manifest, watch
from fald_hpc.cli import status
from fald_hpc.errors import Stopped, UserError


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return a folder with a finished and a stopped run."""
    place = tmp_path_factory.mktemp("runs")
    cfg = config.load("gaussian", ["run.steps=500", "run.segment_steps=50"])
    execute.execute(cfg, place / "finished")
    with asked_to_stop(3), pytest.raises(Stopped):
        execute.execute(cfg, place / "stopped")
    return place


def words(folder, later=0.0):
    """Return the state, and the lines of the command as a dictionary, so many seconds after the last change."""
    found = condition.read(folder, (folder / manifest.FILE).stat().st_mtime + later)
    rows = dict(line.split("  ", 1) for line in status.lines(found))
    return found, {name.strip(): text.strip() for name, text in rows.items()}


def test_a_finished_run_is_held_by_nobody(runs):
    found, rows = words(runs / "finished", later=200.0)
    assert found["state"] == "finished"
    assert rows["step"] == "500 of 500 (100 %), 3 min 20 s ago"
    assert rows["held by"].startswith("nobody; last by process ")
    assert f"process {os.getpid()} on" in rows["held by"]
    assert "process process" not in " ".join(rows.values())


def test_a_stopped_run_says_why_and_what_to_do(runs):
    found, rows = words(runs / "stopped")
    assert found["state"] == "stopped"
    assert "stopped by SIGTERM at step" in rows["state"]
    assert "--resume" in rows["state"]
    assert rows["held by"].startswith("nobody")
    assert found["step"] == found["checkpoint_step"]


@pytest.fixture
def living(tmp_path):
    """Return the folder of a run that this process holds and that is at step 30 of 100."""
    (tmp_path / manifest.FILE).write_text(json.dumps({"state": "running", "steps": 100}))
    held = lock.Lock(tmp_path)
    held.acquire(0.0)
    watch.write_life(tmp_path, {"step": 30, "at": (tmp_path / manifest.FILE).stat().st_mtime - 5.0})
    yield tmp_path
    held.release()


def test_a_living_run_shows_the_age_of_its_signs(living):
    found, rows = words(living, later=30.0)
    assert found["state"] == "running"
    assert rows["step"] == "30 of 100 (30 %), 35 s ago"
    assert rows["sign of life"] in ("30 s ago", "29 s ago")
    assert rows["held by"].startswith(f"process {os.getpid()} on ")


def test_a_held_run_without_a_sign_is_silent(living):
    found, rows = words(living, later=condition.SILENT + 5.0)
    assert found["state"] == "silent"
    assert "gives no sign of life" in rows["state"]
    assert rows["sign of life"] == "1 min 5 s ago"


def test_a_run_that_nobody_holds_is_dead(living):
    (living / lock.FILE).unlink()
    (living / lock.FILE).write_text("")
    found, rows = words(living)
    assert found["state"] == "dead"
    assert "--resume" in rows["state"]
    assert rows["held by"] == "nobody"


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"state": "running"}', '{"steps": "many"}', "[" * 100_000])
def test_a_damaged_manifest_is_one_sentence(tmp_path, text):
    (tmp_path / manifest.FILE).write_text(text)
    with pytest.raises(UserError, match=r"manifest\.json"):
        condition.read(tmp_path, 0.0)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"time": "now", "step": [], "at": null}'])
def test_a_damaged_sign_of_life_is_none(living, text):
    (living / watch.ALIVE).write_text(text)
    found, rows = words(living)
    assert found["life_age"] is None
    assert rows["sign of life"] == "never"
