"""Scaling studies: growing problems, records that may not be mixed, flags of the table, and traces."""

import json

import numpy as np
import pytest

from fald_hpc import config, execute
from fald_hpc.errors import UserError
from fald_hpc.scaling import batch, figures, grow, record, schedule, study, table, trace


def one(ranks, seconds, **more):
    cores = [[r] for r in range(ranks)]
    made = {
        "study": {"kind": "strong", "config": "a"},
        "build": {"numba": "1"},
        "machine": {"processors": ["p"]},
        "ranks": ranks,
        "steps": 100,
        "seconds_per_step": seconds,
        "seconds": {"sample": 100 * seconds, "write": 0.0},
        "bytes_per_rank": 800,
        "hosts": ["h"] * ranks,
        "cores": cores,
        "delay_ms": 0.0,
        "load_before": 0.0,
        "trace": None,
    }
    return {**made, **more}


def test_speed_up_and_efficiency():
    rows = table.rows([one(1, 4.0), one(1, 4.2), one(1, 4.1), one(4, 2.0)])
    assert [row.ranks for row in rows] == [1, 4]
    assert rows[0].seconds == 4.1
    assert (rows[0].low, rows[0].high) == (4.0, 4.2)
    assert rows[1].speed_up == pytest.approx(2.05)
    assert rows[1].efficiency == pytest.approx(2.05 / 4)
    weak = [one(n, s, study={"kind": "weak, rows fixed"}) for n, s in ((1, 4.0), (4, 5.0))]
    assert table.rows(weak)[1].efficiency == pytest.approx(0.8)
    assert table.rows(weak)[1].speed_up == pytest.approx(3.2)


def test_super_linear_points_are_no_results():
    rows = table.rows([one(1, 4.0), one(2, 1.7)])
    assert rows[1].efficiency is None
    assert "super-linear" in rows[1].flags[0]
    # within the spread of the repeats it may be chance
    assert table.rows([one(1, 4.0), one(1, 3.0), one(2, 1.7), one(2, 2.0)])[1].efficiency is not None
    assert "super-linear" in table.text(rows, "strong")


def test_oversubscribed_ranks_are_no_results():
    rows = table.rows([one(1, 4.0), one(4, 2.0, cores=[[0, 1]] * 4)])
    assert rows[1].speed_up is None
    assert "4 ranks on the 2 cores" in rows[1].flags[0]
    assert table.oversubscribed(["a", "a", "b"], [[0, 1], [0, 1], [0]]) == ""
    assert "on b" in table.oversubscribed(["a", "b", "b"], [[0], [0], [0]])


def test_other_load_is_flagged():
    assert "load 1.9" in table.rows([one(1, 4.0, cores=[[0, 1]], load_before=1.9)])[0].flags[0]


@pytest.mark.parametrize("member", ["build", "machine", "study"])
def test_builds_machines_and_studies_are_not_mixed(tmp_path, member):
    file = tmp_path / "study.jsonl"
    record.append(file, [one(1, 4.0), one(2, 2.0)])
    with pytest.raises(UserError, match=f"mix records that cannot be compared: {member}"):
        record.append(file, [one(2, 2.0, **{member: {"kind": "strong", "other": "2"}})])
    assert len(record.read(file)) == 2
    file.write_text(file.read_text() + json.dumps(one(2, 2.0, **{member: {"x": 1}})) + "\n")
    with pytest.raises(UserError, match="cannot be compared"):
        record.read(file)


def test_a_file_that_is_no_study(tmp_path):
    with pytest.raises(UserError, match="no study"):
        record.read(tmp_path / "none")
    (tmp_path / "x").write_text("{}\n")
    with pytest.raises(UserError, match="line 1"):
        record.read(tmp_path / "x")


def test_growing_problems():
    given = execute.arguments(config.load("titanic", []))
    clients = given["clients"]
    rows = sum(c.target.size for c in clients.load(range(10)))
    assert grow.grown(given, None, 4) is given
    more = grow.grown(given, "rows", 3)["clients"]
    assert len(more) == 30
    assert sum(c.target.size for c in more.load(range(30))) == 3 * rows
    assert np.array_equal(more.load([12])[0].features, clients.load([2])[0].features)
    parts = grow.grown(given, "clients", 3)["clients"]
    assert len(set(parts.ids)) == 30
    assert sum(c.target.size for c in parts.load(range(30))) == rows
    chains = grow.grown(given, "chains", 3)
    assert (chains["chains"], chains["chain_groups"]) == (12, 3)
    with pytest.raises(UserError, match="fewer than the 2000 parts"):
        grow.grown(given, "clients", 2000)["clients"].load(range(3))


def test_trace_tells_work_waiting_and_messages_apart():
    rng = np.random.default_rng(1)
    events = schedule.Events(rng.geometric(0.1, 400), rng.integers(0, 2, 400), np.ones(400, np.int64), rng.integers(0, 3, 400))
    # rank 1 is slower by a fifth; a message takes 2 us
    now, left, entered = 0.0, [[0.0, 0.0]], []
    for steps, refresh in zip(events.steps, events.refreshes, strict=True):
        busy = [factor * (1e-5 * steps + 5e-5 * refresh + 1e-6) for factor in (1.0, 1.2)]
        entered.append([now + b for b in busy])
        now += max(busy) + 2e-6
        left.append([now, now])
    arrive = np.array([[0.0, 0.0], *entered])
    times = [np.column_stack([arrive[:, r], np.array(left)[:, r]]) for r in range(2)]
    found = trace.describe(times, events, boundaries=0)
    total = float((1e-5 * events.steps + 5e-5 * events.refreshes + 1e-6).sum())
    assert found["messages"] == pytest.approx(400 * 2e-6, rel=1e-6)
    assert found["averaging"] + found["refresh messages"] == pytest.approx(found["messages"])
    assert found["waiting"] == pytest.approx(0.5 * 0.2 * total, rel=1e-6)
    assert found["span"] == pytest.approx(1.2 * total + 400 * 2e-6, rel=1e-6)
    assert found["refresh work"] == pytest.approx(1.1 * 5e-5 * events.refreshes.sum(), rel=1e-3)
    assert found["work"][0]["step"] == pytest.approx(1e-5, rel=1e-3)
    assert trace.describe([part[:5] for part in times], events, 0) is None


def test_noise_of_a_trace():
    rng = np.random.default_rng(2)
    steps = rng.geometric(0.1, 20_000)
    zero = np.zeros_like(steps)
    events = schedule.Events(steps, zero, zero + 1, zero)
    work = 1e-5 * (steps + 0.2 * np.sqrt(steps) * rng.standard_normal(steps.size)) + 1e-6
    hit = rng.random(steps.size) < 0.02
    work[hit] += 1e-3
    jitter, rate, seconds = trace.noise(work, events, 0)
    assert jitter == pytest.approx(0.2, rel=0.05)
    assert rate == pytest.approx(hit.sum() / (work.sum() - 1e-3 * hit.sum()), rel=0.05)
    assert seconds == pytest.approx(1e-3, rel=0.05)


def test_figures_are_written(tmp_path):
    shares = {"span": 1.0, "messages": 0.1, "waiting": 0.1, "averaging": 0.06, "refresh messages": 0.04, "refresh work": 0.2}
    rows = table.rows([one(1, 4.0), one(2, 2.1, trace=shares), one(4, 1.2, trace=shares, cores=[[0, 1]] * 4)])
    drawn = figures.draw(tmp_path, rows, "strong", {1: 4.0, 2: 2.0, 4: 1.0})
    assert {path.name for path in drawn} == {f"{n}.{e}" for n in ("time", "efficiency", "shares") for e in ("png", "pdf")}
    assert all(path.stat().st_size > 1000 for path in drawn)


def test_stages():
    assert [study.stages(n) for n in (1, 2, 3, 4, 5, 8, 9)] == [0, 1, 2, 2, 3, 3, 4]


def test_batch_jobs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="print or submit"):
        batch.jobs("now", "strong", "titanic", [2], None, tmp_path, [])
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm" / "scaling-weak.sbatch").write_text("#!/bin/sh\n")
    lines = batch.jobs("print", "weak", "titanic", [2, 4], "rows", tmp_path / "o", ["--steps", "9"])
    assert [line.split()[1] for line in lines] == ["--ntasks=2", "--ntasks=4"]
    assert lines[0].endswith(f"titanic --out {tmp_path / 'o'} --fixed rows --steps 9")
