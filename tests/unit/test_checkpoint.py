"""Checkpoints: what is saved comes back, a damaged newest file falls back, no kill loses the state."""

import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

from fald_hpc import checkpoint
from fald_hpc.errors import UserError

ARRAYS = {
    "b": np.arange(6.0).reshape(2, 3),
    "a": np.array([1, -(2**62)]),
    "scalar": np.array(2.5),
    "empty": np.zeros((3, 0)),
    "words": np.array([2**64 - 1], np.uint64),
    "flags": np.array([True, False]),
}


def same(left, right):
    return left.keys() == right.keys() and all(
        np.array_equal(left[k], right[k]) and left[k].dtype == right[k].dtype and left[k].shape == right[k].shape
        for k in left
    )


def test_round_trip(tmp_path):
    checkpoint.save(tmp_path / "c", ARRAYS, {"step": 2**40, "nested": {"x": [1, None, "µ"]}})
    arrays, meta = checkpoint.load(tmp_path / "c")
    assert same(arrays, ARRAYS)
    assert meta == {"step": 2**40, "nested": {"x": [1, None, "µ"]}}
    arrays["b"][0, 0] = 7.0  # writable


def test_nothing_saved(tmp_path):
    assert checkpoint.load(tmp_path / "c") is None
    (tmp_path / "c").mkdir()
    assert checkpoint.load(tmp_path / "c") is None


def test_bytes_depend_on_content_only(tmp_path):
    checkpoint.save(tmp_path / "one", ARRAYS, {"x": 1, "y": 2})
    reverse = {k: np.asfortranarray(v) if v.ndim else v for k, v in reversed(ARRAYS.items())}
    checkpoint.save(tmp_path / "two", ARRAYS, {"step": 0})
    checkpoint.save(tmp_path / "two", reverse, {"y": 2, "x": 1})
    assert (tmp_path / "one" / "newest").read_bytes() == (tmp_path / "two" / "newest").read_bytes()


def test_other_content_gives_other_bytes():
    twin = {**ARRAYS, "b": ARRAYS["b"] + np.spacing(ARRAYS["b"])}
    assert b"".join(checkpoint.pack(ARRAYS, {})) != b"".join(checkpoint.pack(twin, {}))


@pytest.mark.parametrize("damage", ["torn", "bit", "empty", "missing"])
def test_damaged_newest_falls_back(tmp_path, damage):
    checkpoint.save(tmp_path, ARRAYS, {"step": 1})
    checkpoint.save(tmp_path, ARRAYS, {"step": 2})
    newest = tmp_path / "newest"
    content = bytearray(newest.read_bytes())
    if damage == "torn":
        newest.write_bytes(content[: len(content) // 2])
    elif damage == "bit":
        content[len(content) // 2] ^= 1
        newest.write_bytes(content)
    elif damage == "empty":
        newest.write_bytes(b"")
    else:
        newest.unlink()  # killed between the two renames of a save whose `next` was lost
    if damage == "missing":
        assert checkpoint.load(tmp_path)[1] == {"step": 1}
    else:
        with pytest.warns(checkpoint.CheckpointWarning, match=r"newest is damaged.*previous"):
            assert checkpoint.load(tmp_path)[1] == {"step": 1}
    checkpoint.save(tmp_path, ARRAYS, {"step": 3})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert checkpoint.load(tmp_path)[1] == {"step": 3}


def test_complete_next_is_the_newest(tmp_path):
    checkpoint.save(tmp_path / "c", ARRAYS, {"step": 1})
    checkpoint.save(tmp_path / "d", ARRAYS, {"step": 2})
    os.replace(tmp_path / "d" / "newest", tmp_path / "c" / "next")
    assert checkpoint.load(tmp_path / "c")[1] == {"step": 2}


def test_both_damaged_is_an_error(tmp_path):
    for step in (1, 2):
        checkpoint.save(tmp_path, ARRAYS, {"step": step})
    for name in ("newest", "previous"):
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(UserError, match="--overwrite"):
        checkpoint.load(tmp_path)


@pytest.mark.parametrize("bad", [np.array(["a"]), np.array([None]), np.array([1j])])
def test_only_plain_numbers(tmp_path, bad):
    with pytest.raises(TypeError):
        checkpoint.save(tmp_path, {"x": bad}, {})
    assert not list(tmp_path.iterdir())


def test_full_disk_keeps_the_last_state(tmp_path, monkeypatch):
    checkpoint.save(tmp_path, ARRAYS, {"step": 1})

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.save(tmp_path, ARRAYS, {"step": 2})
    monkeypatch.undo()
    assert [p.name for p in tmp_path.iterdir()] == ["newest"]
    assert checkpoint.load(tmp_path)[1] == {"step": 1}


CHILD = """
import sys, itertools, numpy as np
from fald_hpc import checkpoint
for step in itertools.count(1):
    checkpoint.save(sys.argv[1], {"x": np.full(20000, float(step))}, {"step": step})
    print(step, flush=True)
"""


def test_killed_at_random_times(tmp_path):
    rng = np.random.default_rng(11)
    for attempt in range(4):
        folder = tmp_path / str(attempt)
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(folder)], stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        time.sleep(rng.uniform(0.0, 0.1))
        child.send_signal(signal.SIGKILL)
        printed = child.stdout.read().split()
        child.wait()
        arrays, meta = checkpoint.load(folder)
        assert meta["step"] >= (int(printed[-1]) if printed else 1)
        assert np.array_equal(arrays["x"], np.full(20000, float(meta["step"])))
