"""The comparison behind ``fald verify``: equal runs are equal, and every planted difference is named."""

import json
import shutil

import numpy as np
import pytest

from fald_hpc import checkpoint, invariance


@pytest.fixture
def runs(tmp_path):
    """Two folders with the invariant files of equal runs, and manifests that differ."""
    for name in ("a", "b"):
        folder = tmp_path / name
        (folder / "draws.zarr" / "c").mkdir(parents=True)
        (folder / "draws.zarr" / "zarr.json").write_text('{"zarr_format": 3}')
        (folder / "draws.zarr" / "c" / "0").write_bytes(bytes(range(100)))
        summary = {"parameters": [{"name": "x", "mean": 0.1, "r_hat": None}], "steps": 10, "seconds": {"sample": 1.0}}
        (folder / "summary.json").write_text(json.dumps(summary))
        checkpoint.save(folder / "checkpoint", {"mean": np.arange(4.0), "step": np.array(10)}, {"draws": 3})
        (folder / "manifest.json").write_text(name)
    return tmp_path / "a", tmp_path / "b"


def edit_summary(folder, **changes):
    path = folder / "summary.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_equal_runs(runs):
    assert invariance.first_difference(*runs) is None


def test_seconds_do_not_count(runs):
    edit_summary(runs[1], seconds={"sample": 2.0, "write": 3.0})
    assert invariance.first_difference(*runs) is None


def test_last_bit_of_a_mean(runs):
    edit_summary(runs[1], parameters=[{"name": "x", "mean": float(np.nextafter(0.1, 1)), "r_hat": None}])
    assert invariance.first_difference(*runs) == (
        "summary.json parameters[0] mean is 0.1 and 0.10000000000000002"
    )


def test_one_byte_of_a_chunk(runs):
    (runs[1] / "draws.zarr" / "c" / "0").write_bytes(bytes([*range(99), 0]))
    assert invariance.first_difference(*runs) == "draws.zarr/c/0 differs from byte 99 on (100 and 100 bytes)"


def test_a_shorter_chunk(runs):
    (runs[1] / "draws.zarr" / "c" / "0").write_bytes(bytes(range(98)))
    assert invariance.first_difference(*runs) == "draws.zarr/c/0 differs from byte 98 on (100 and 98 bytes)"


def test_a_missing_chunk(runs):
    (runs[1] / "draws.zarr" / "c" / "0").unlink()
    assert invariance.first_difference(*runs) == "draws.zarr/c/0 is in one run only"


def test_the_checkpoint(runs):
    checkpoint.save(runs[1] / "checkpoint", {"mean": np.array([0, 1, 2, -3.0]), "step": np.array(10)}, {"draws": 3})
    assert invariance.first_difference(*runs).startswith("checkpoint array mean differs from byte 31 on")
    checkpoint.save(runs[1] / "checkpoint", {"mean": np.arange(4.0), "step": np.array(10)}, {"draws": 4})
    assert invariance.first_difference(*runs) == "checkpoint draws is 3 and 4"
    shutil.rmtree(runs[1] / "checkpoint")
    assert invariance.first_difference(*runs) == "checkpoint is in one run only"
