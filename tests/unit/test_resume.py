"""A run that is stopped and resumed is, byte for byte, the run that was never stopped (users.md rows 29, 31, 32, 43)."""

import json
import shutil

import numpy as np
import pytest
from problems.stops import asked_to_stop

import fald_hpc
from fald_hpc import checkpoint, config, execute, invariance
from fald_hpc.errors import Stopped, UserError

STEPS = 4000
# thinning at its cap: 8 x 3 x 4 bytes a draw, so 0.01 MB holds 104 draws, and the stride doubles several times
CAP = "output.draws_megabytes=0.01"
CASES = {
    "minibatch": ["titanic", "run.chains=3", "sampler.comm_prob=0.3", CAP],
    "fald": ["titanic", "sampler.name=fald", "run.chains=3", CAP],
    "full batch": ["titanic", "sampler.batch_size=full", "run.chains=2", "run.steps=1500"],
    "independent coins": ["titanic", "sampler.schedule=independent", "run.chains=3", "sampler.noise_sharing=0.3", CAP],
    "independent fald": ["gaussian", "sampler.name=fald", "sampler.schedule=independent", "sampler.noise_sharing=0"],
    "events at once": ["gaussian", "sampler.schedule=independent", "sampler.comm_prob=0.7", "sampler.refresh_prob=0.4",
                       "sampler.noise_sharing=0.3"],
    "every step": ["gaussian", "run.record=every-step", CAP],
    "every step, independent": ["titanic", "run.record=every-step", "sampler.schedule=independent", "run.steps=1200", CAP],
    "gaussian": ["gaussian", "sampler.noise_sharing=0.3", "output.thin=3"],
    "rare averagings": ["titanic", "sampler.comm_prob=0.01", "sampler.refresh_prob=0.05"],
    "refresh often": ["quickstart-regression", "sampler.comm_prob=0.02", "sampler.refresh_prob=0.5"],
}


def load(source, *changes):
    return config.load(source, [f"run.steps={STEPS}", "run.segment_steps=61", *changes])


def run_with_stops(cfg, folder, stops):
    """Run a config, stopped after so many segments each time; return how often it was stopped."""
    count = 0
    for after in [*stops, None]:
        with asked_to_stop(after):
            try:
                execute.execute(cfg, folder, resume=True)
                return count
            except Stopped:
                count += 1
    raise AssertionError("the last start must end the run")


@pytest.mark.parametrize("case", CASES)
def test_stopped_run_equals_uninterrupted(tmp_path, case):
    cfg = load(*CASES[case])
    execute.execute(cfg, tmp_path / "whole")
    assert run_with_stops(cfg, tmp_path / "parts", [0, 1, 3, 0, 5]) == 5
    assert invariance.first_difference(tmp_path / "whole", tmp_path / "parts") is None
    twin = load(*CASES[case], "run.seed=2")
    execute.execute(twin, tmp_path / "twin")
    assert invariance.first_difference(tmp_path / "whole", tmp_path / "twin") is not None


@pytest.mark.parametrize("case", ["events at once", "independent coins", "every step"])
def test_segments_do_not_show(tmp_path, case):
    """Wherever the loop returns to Python: amid a gap, right before an event, between two."""
    for length in (1, 7, 1000):
        execute.execute(load(*CASES[case], "run.steps=1000", f"run.segment_steps={length}"), tmp_path / str(length))
    for length in (1, 7):
        assert invariance.first_difference(tmp_path / "1000", tmp_path / str(length)) is None, length


@pytest.mark.parametrize("case", ["minibatch", "independent coins", "events at once", "every step", "rare averagings"])
def test_extension_equals_one_long_run(tmp_path, case):
    """``burn_in`` is what the first start made of the fraction; everything else is as if the run had been long at once."""
    short = load(*CASES[case], "run.steps=1000", "run.burn_in=0.25")
    execute.execute(short, tmp_path / "run")
    execute.execute(load(*CASES[case], "run.steps=2000", "run.burn_in=0.25"), tmp_path / "run", resume=True)
    execute.execute(load(*CASES[case], "run.steps=3000", "run.burn_in=0.25"), tmp_path / "run", resume=True)
    execute.execute(load(*CASES[case], "run.steps=3000", "run.burn_in=250"), tmp_path / "long")
    assert invariance.first_difference(tmp_path / "run", tmp_path / "long") is None


def test_resume_of_a_finished_run_changes_nothing(tmp_path):
    cfg = load(*CASES["minibatch"])
    execute.execute(cfg, tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    execute.execute(cfg, tmp_path / "run", resume=True)
    assert invariance.first_difference(tmp_path / "run", tmp_path / "copy") is None


def test_resume_starts_a_run_that_has_not_begun(tmp_path):
    cfg = load("gaussian", "run.steps=500")
    execute.execute(cfg, tmp_path / "whole")
    execute.execute(cfg, tmp_path / "missing", resume=True)
    (tmp_path / "empty").mkdir()
    execute.execute(cfg, tmp_path / "empty", resume=True)
    (tmp_path / "lock").mkdir()
    (tmp_path / "lock" / ".lock").write_text("")
    execute.execute(cfg, tmp_path / "lock", resume=True)
    shutil.copytree(tmp_path / "whole", tmp_path / "begun")
    shutil.rmtree(tmp_path / "begun" / "checkpoint")
    execute.execute(cfg, tmp_path / "begun", resume=True)
    for name in ("missing", "empty", "lock", "begun"):
        assert invariance.first_difference(tmp_path / "whole", tmp_path / name) is None


def test_auto_step_size_is_that_of_the_first_start(tmp_path):
    cfg = load("quickstart-regression", "run.steps=1500")
    assert cfg.sampler.step_size == "auto"
    whole = execute.execute(cfg, tmp_path / "whole")
    run_with_stops(cfg, tmp_path / "parts", [1, 2])
    assert invariance.first_difference(tmp_path / "whole", tmp_path / "parts") is None
    manifest = json.loads((tmp_path / "parts" / "manifest.json").read_text())
    assert manifest["step_size"] == whole.manifest["step_size"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["sampler.comm_prob=0.1"], ["sampler.comm_prob = 0.1", "0.05"]),
        (["sampler.step_size=1e-5"], ["sampler.step_size = 1e-05"]),
        (["sampler.batch_size=11"], ["sampler.batch_size = 11", "10"]),
        (["sampler.name=fald"], ["sampler.name = fald", "vr_fald_star"]),
        (["sampler.schedule=independent"], ["sampler.schedule"]),
        (["sampler.init=mode"], ["sampler.init = mode", "dispersed"]),
        (["run.chains=3"], ["run.chains = 3"]),
        (["run.seed=2"], ["run.seed = 2"]),
        (["run.record=every-step"], ["run.record"]),
        (["run.burn_in=0.2"], ["run.burn_in = 0.2", "0.1"]),
        (["target.prior_scale=2.0"], ["target.prior_scale = 2.0"]),
        (["output.thin=2"], ["output.thin = 2"]),
        (["output.covariance=diagonal"], ["output.covariance"]),
        (["run.steps=100"], ["run.steps = 100", "at step"]),
        (["data.standardise=true"], ["data.standardise"]),
    ],
)
def test_a_forbidden_difference_is_named(stopped, changes, words):
    with pytest.raises(UserError) as caught:
        execute.execute(load("titanic", "run.steps=1000", *changes), stopped, resume=True)
    for word in words:
        assert word in str(caught.value)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Return the folder of a run of 1000 steps that was stopped half-way."""
    folder = tmp_path_factory.mktemp("stopped") / "run"
    with asked_to_stop(5), pytest.raises(Stopped):
        execute.execute(load("titanic", "run.steps=1000"), folder)
    return folder


def test_allowed_differences(stopped, tmp_path):
    whole = tmp_path / "whole"
    execute.execute(load("titanic", "run.steps=1000"), whole)
    moved = tmp_path / "moved"
    shutil.copytree(stopped, moved)
    changed = load("titanic", "run.steps=1000", "run.segment_steps=13", "run.time_limit=1e6", "output.draws_megabytes=32")
    execute.execute(changed, moved, resume=True)
    assert invariance.first_difference(whole, moved) is None


@pytest.mark.parametrize("name", ["fald_hpc", "numpy", "numba", "the random numbers", "the saved state"])
def test_another_version_is_named(stopped, tmp_path, name):
    folder = tmp_path / "run"
    shutil.copytree(stopped, folder)
    arrays, meta = checkpoint.load(folder / "checkpoint")
    meta["settings"][f"version of {name}"] = "0.0.0"
    checkpoint.save(folder / "checkpoint", arrays, meta)
    with pytest.raises(UserError, match=f"version of {name} = .* has 0.0.0"):
        execute.execute(load("titanic", "run.steps=1000"), folder, resume=True)


def _clients(seed=0, names=("a", "b")):
    x = np.linspace(-1.0, 1.0, 24).reshape(12, 2) + 0.1 * seed
    y = (np.arange(12) % 2).astype(float)
    return fald_hpc.Clients.from_arrays({names[0]: (x, y), names[1]: (x[::-1].copy(), y)})


def test_changed_data_and_clients_are_named(tmp_path):
    def sample(clients, **more):
        sampler = fald_hpc.VRFALDStar(step_size=0.01, batch_size=4)
        return fald_hpc.sample(fald_hpc.Logistic(), clients, sampler, steps=600, out=tmp_path / "run", **more)

    with asked_to_stop(2), pytest.raises(Stopped):
        sample(_clients(), segment_steps=50)
    with pytest.raises(UserError, match="the data of client a have changed"):
        sample(_clients(seed=1), resume=True)
    with pytest.raises(UserError, match=r"data\.clients"):
        sample(_clients(names=("a", "c")), resume=True)
    sample(_clients(), resume=True)


def test_a_changed_user_function_is_named(tmp_path):
    def sample(factor, **more):
        def gradient(theta, x, y, out):
            for j in range(theta.size):
                out[j] = factor * (theta[j] - x[j])

        potential = fald_hpc.row_potential(gradient)
        sampler = fald_hpc.FALD(step_size=0.001)
        return fald_hpc.sample(potential, _clients(), sampler, steps=600, out=tmp_path / "run", **more)

    with asked_to_stop(2), pytest.raises(Stopped):
        sample(2.0, segment_steps=50)
    with pytest.raises(UserError, match=r"target\.function"):
        sample(3.0, resume=True)
    sample(2.0, resume=True)


def test_a_torn_newest_checkpoint_falls_back_to_the_older(tmp_path):
    cfg = load(*CASES["minibatch"])
    execute.execute(cfg, tmp_path / "whole")
    with asked_to_stop(6), pytest.raises(Stopped):
        execute.execute(cfg, tmp_path / "run")
    newest = tmp_path / "run" / "checkpoint" / "newest"
    newest.write_bytes(newest.read_bytes()[:-40])
    with pytest.warns(checkpoint.CheckpointWarning, match="damaged"):
        execute.execute(cfg, tmp_path / "run", resume=True)
    assert invariance.first_difference(tmp_path / "whole", tmp_path / "run") is None


def test_folders_that_are_not_to_be_touched(tmp_path):
    cfg = load("gaussian", "run.steps=200")
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("")
    for more in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(UserError, match="holds no run"):
            execute.execute(cfg, other, **more)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file"):
        execute.execute(cfg, tmp_path / "file")
    execute.execute(cfg, tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(UserError, match="--resume or replace it with --overwrite"):
        execute.execute(cfg, tmp_path / "run")
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before
