"""The posterior table: shape of the JSON, honest nulls and warnings, bytes that only `seconds` may change."""

import json

import numpy as np
import pytest

from fald_hpc import summary
from fald_hpc.errors import UserError
from fald_hpc.kernels import moments


def accumulated(x):
    acc = moments.new(x.shape[0], x.shape[2], 64, True)
    moments.absorb(acc, np.ascontiguousarray(x), np.full(x.shape[0], x.shape[1]))
    return acc


def built(x, names=("a", "b"), seconds=None, **kwargs):
    counts = {"steps": 4000, "communications": 200, "refreshes": 190}
    return summary.build(accumulated(x), names, seconds=seconds or {"sample": 2.0, "total": 5.0}, **counts, **kwargs)


X = np.random.default_rng(1).normal(size=(4, 3000, 2)) * [1.0, 1e-3] + [0.0, 5.0]


def test_shape_of_the_json():
    found = json.loads(summary.dumps(built(X)))
    assert list(found["parameters"][0]) == ["name", "mean", "sd", "mcse", "ess", "r_hat", "ess_per_communication"]
    assert [row["name"] for row in found["parameters"]] == ["a", "b"]
    assert (found["chains"], found["steps"], found["communications"], found["refreshes"]) == (4, 4000, 200, 190)
    assert found["warnings"] == []
    row = found["parameters"][1]
    assert row["mean"] == pytest.approx(X[..., 1].mean(), rel=1e-12)
    assert row["sd"] == pytest.approx(X[..., 1].std(ddof=1), rel=1e-9)
    assert row["ess_per_communication"] == row["ess"] / 200
    assert found["seconds"]["ess_per_second"]["b"] == row["ess"] / 2.0
    assert found["seconds"]["total"] == 5.0


def test_only_seconds_change_with_time():
    one, two = built(X), built(X, seconds={"sample": 3.0})
    assert one.pop("seconds") != two.pop("seconds")
    assert summary.dumps(one) == summary.dumps(two)
    other = built(X + np.spacing(X))
    del other["seconds"]
    assert summary.dumps(one) != summary.dumps(other)


def test_write_and_read(tmp_path):
    summary.write(tmp_path, built(X, extra={"drift": {"client": 3}}))
    assert summary.read(tmp_path) == built(X, extra={"drift": {"client": 3}})
    assert [p.name for p in tmp_path.iterdir()] == ["summary.json"]


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"parameters": 3}', "\x00\xff"])
def test_no_summary(tmp_path, content):
    if content is not None:
        (tmp_path / "summary.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(UserError):
        summary.read(tmp_path)


def test_chains_that_disagree():
    apart = X + np.array([0.0, 3.0, 0.0, 0.0])[:, None, None] * [1.0, 0.0]
    found = built(apart)
    assert found["parameters"][0]["r_hat"] > 1.2
    # Half means are -.75 s (six) and 2.25 s (two): 8 / (their variance / sd²), about 9 for this arrangement.
    assert found["parameters"][0]["ess"] < 15
    assert found["parameters"][1]["ess"] > 5000
    assert any("chains disagree" in w and "of a:" in w for w in found["warnings"])
    assert any("effective sample size" in w for w in found["warnings"])


@pytest.mark.parametrize("records", [0, 1, 2, 10, 30])
def test_too_few_draws(records):
    found = built(X[:, :records])
    for row in found["parameters"]:
        assert (row["mean"] is None) == (records == 0)
        assert (row["sd"] is None) == (records == 0)
        assert row["mcse"] is None
        assert row["ess"] is None
        assert (row["r_hat"] is None) == (records < 20)
    assert any("too few draws" in w or "no draw" in w for w in found["warnings"])
    summary.dumps(found)
    summary.text(found)


def test_a_parameter_that_does_not_move():
    still = X.copy()
    still[..., 0] = 2.0
    found = built(still)
    assert found["parameters"][0] == {
        "name": "a",
        "mean": 2.0,
        "sd": 0.0,
        "mcse": 0.0,
        "ess": None,
        "r_hat": None,
        "ess_per_communication": None,
    }
    assert found["warnings"] == ["a did not move: no ESS"]
    stuck = X.copy()
    stuck[..., 0] = np.arange(4.0)[:, None]  # every chain stands still somewhere else: R-hat is infinite
    found = built(stuck)
    assert found["parameters"][0]["ess"] < 10
    assert "largest R-hat inf, of a" in found["warnings"][0]
    summary.dumps(found)


def test_text():
    lines = summary.text(built(X)).splitlines()
    assert lines[0] == "4 chains, 4000 steps, 200 communications, 190 refreshes"
    assert lines[1].split() == ["parameter", "mean", "sd", "MCSE", "ESS", "R-hat"]
    assert len({len(line) for line in lines[1:]}) == 1
    assert lines[3].split()[:2] == ["b", f"{X[..., 1].mean():.6f}"]


def test_text_of_extreme_scales():
    for scale in (1e-100, 1e-12, 1e12, 1e100):
        assert "e" in summary.text(built(X * scale)).splitlines()[2]
