"""Inputs that once showed a traceback or hung, one of each kind, with what is said now."""

import hashlib
import json
import warnings
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from fald_hpc import checkpoint, condition, open_run, summary
from fald_hpc.cli import status
from fald_hpc.data.columns import Columns
from fald_hpc.data.readers import read_rows
from fald_hpc.errors import UserError

X, Y = np.ones((2, 2)), np.zeros(2)


@pytest.fixture(autouse=True)
def warnings_are_findings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_npz_text_that_is_no_text(tmp_path):
    """NumPy keeps text as words of 32 bits, which need not be characters."""
    names = np.frombuffer(b"\xff" * 8, "<U1")
    np.savez(tmp_path / "c.npz", X=X, y=Y, feature_names=names)
    with pytest.raises(UserError, match="feature_names holds text that is not valid Unicode"):
        read_rows(tmp_path / "c.npz", Columns())


def test_npz_numbers_beyond_double_precision(tmp_path):
    np.savez(tmp_path / "c.npz", X=X.astype(np.longdouble) * np.longdouble("1e400"), y=Y)
    with pytest.raises(UserError, match="inf in row 1, column 1"):
        read_rows(tmp_path / "c.npz", Columns())


def test_parquet_ids_that_are_not_utf_8(tmp_path):
    """The format says that its text is UTF-8 and does not check it."""
    ids = pyarrow.Array.from_buffers(
        pyarrow.string(), 2, [None, pyarrow.py_buffer(np.array([0, 1, 2], np.int32)), pyarrow.py_buffer(b"a\xff")]
    )
    parquet.write_table(pyarrow.table({"who": ids, "a": [1.0, 2.0], "y": [0, 1]}), tmp_path / "c.parquet")
    with pytest.raises(UserError, match="column 'who': a client id is not UTF-8 text"):
        read_rows(tmp_path / "c.parquet", Columns("y", client="who"))


def test_parquet_that_claims_more_rows_in_its_parts():
    """A kilobyte that says 80 billion rows in one place and 4 in another: Arrow would ask for 256 GB."""
    with pytest.raises(UserError, match="its parts have 80095409788 rows, but it says 4"):
        read_rows(Path(__file__).parent / "found" / "rows-of-a-group.parquet", Columns("y", client="who"))


@pytest.mark.parametrize(
    "header",
    [
        b"{}",
        b"[]",
        b'{"arrays": [["a", "|O", [1]]], "meta": {}}',
        b'{"arrays": [["a", "<f8", [-1, 3]]], "meta": {}}',
        b'{"arrays": [["a", "<f8", [1e9]]], "meta": {}}',
        b'{"arrays": [["a", "<f8"]], "meta": {}}',
        b'{"arrays": [["a", ",i8", [1]]], "meta": {}}',
        b'{"arrays": [], "meta": 3}',
        b'{"arrays": [["a", "<f8", [99999999999999999999]]], "meta": {}}',
        b"[" * 50_000,
    ],
)
def test_checkpoints_with_a_right_checksum_and_wrong_content(tmp_path, header):
    body = checkpoint.MAGIC + b"%d\n" % len(header) + header
    (tmp_path / "newest").write_bytes(body + hashlib.sha256(body).digest())
    with pytest.raises(UserError, match=r"no checkpoint in .* is sound"):
        checkpoint.load(tmp_path)


@pytest.mark.parametrize(
    "manifest",
    [
        "[" * 100_000,
        '{"steps": "ten"}',
        '{"steps": 10, "state": 3}',
        '{"steps": 10, "sampler": []}',
        '{"steps": 10, "step_size": NaN}',
        '{"steps": 10, "state": "stopped", "step": 1' + "0" * 4299 + "}",
        "\ud800",
    ],
)
def test_manifests_that_are_none(tmp_path, manifest):
    (tmp_path / "manifest.json").write_bytes(manifest.encode("utf-8", "surrogatepass"))
    for read in (open_run, lambda folder: condition.read(folder, 0.0)):
        with pytest.raises(UserError, match=r"manifest\.json"):
            read(tmp_path)


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e308", "NaN", "Infinity", "-1e400"])
def test_signs_of_life_at_no_time(tmp_path, number):
    (tmp_path / "manifest.json").write_text('{"steps": 10, "state": "running"}')
    (tmp_path / "alive").write_text(f'{{"time": {number}, "at": {number}, "step": {number}}}')
    found = condition.read(tmp_path, 0.0)
    assert found["life_age"] is None
    assert status.lines(found)[2] == "sign of life  never"


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": [3]},
        {"parameters": [{"name": "a"}]},
        {"parameters": [{"name": "a", "mean": "1", "sd": 1.0, "mcse": None, "ess": None, "r_hat": None}]},
        {"parameters": [{"name": "a", "mean": float("inf"), "sd": 1.0, "mcse": None, "ess": None, "r_hat": None}]},
        {"steps": None},
        {"warnings": "none"},
        {"warnings": [3]},
        {"seconds": []},
    ],
)
def test_summaries_that_are_none(tmp_path, change):
    counts = {"chains": 4, "records": 90, "steps": 100, "communications": 10, "refreshes": 9}
    sound = {"parameters": [], **counts, "warnings": [], "seconds": {}}
    (tmp_path / "summary.json").write_text(json.dumps(sound))
    assert summary.read(tmp_path) == sound
    (tmp_path / "summary.json").write_text(json.dumps(sound | change))
    with pytest.raises(UserError, match=r"summary\.json is not a summary"):
        summary.read(tmp_path)
