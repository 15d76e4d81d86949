"""Layout invariance (design contract 1): the same bytes on 1, 2, ... ranks and on every process grid.

Each layout runs on the first ranks of the job (a split of the communicator) and is compared with the serial run, file by
file. The same tests run under Open MPI and MPICH; as the serial run uses neither, both give the same bytes.
"""

import json

import numpy as np
import pytest
from problems.ranks import run_on

from fald_hpc import checkpoint, config, execute, invariance

pytestmark = pytest.mark.mpi

STEPS = 3000
CASES = {
    "titanic": ["titanic"],
    "titanic-fald-independent": ["titanic", "sampler.name=fald", "sampler.schedule=independent"],
    "titanic-short-segments": ["titanic", "run.segment_steps=7", "run.steps=700"],
    "titanic-one-segment": ["titanic", "run.segment_steps=100000"],
    "titanic-five-chains": ["titanic", "run.chains=5", "sampler.noise_sharing=0.3"],
    "gaussian": ["gaussian", "sampler.noise_sharing=0.0"],
    "gaussian-independent": ["gaussian", "sampler.schedule=independent", "sampler.noise_sharing=0.3"],
    "quickstart-regression": ["quickstart-regression"],
}


def load(source, *changes):
    return config.load(source, [f"run.steps={STEPS}", *changes])


@pytest.mark.parametrize("name", list(CASES))
def test_every_number_of_ranks_gives_the_serial_bytes(world, place, name):
    cfg = load(*CASES[name])
    for count in range(1, world.size + 1):
        run_on(world, count, cfg, place / str(count))
    if world.rank == 0:
        for count in range(2, world.size + 1):
            assert invariance.first_difference(place / "1", place / str(count)) is None, f"{count} ranks"
        assert_it_moved(place / "1", looks=name != "titanic-short-segments")


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("schedule", ["shared", "independent"])
def test_grids_of_chain_groups(world, place, groups, schedule):
    ranks = world.size // groups * groups
    if ranks == 0:
        pytest.skip(f"{groups} chain groups need as many ranks")
    cfg = load("titanic", f"sampler.schedule={schedule}", "run.chains=4")
    run_on(world, 1, cfg, place / "serial")
    grid = load("titanic", f"sampler.schedule={schedule}", "run.chains=4", f"run.chain_groups={groups}")
    run_on(world, ranks, grid, place / "grid")
    if world.rank == 0:
        assert invariance.first_difference(place / "serial", place / "grid") is None


def test_segments_do_not_show(world, place):
    run_on(world, world.size, load("titanic", "run.segment_steps=7", "run.steps=700"), place / "short")
    run_on(world, world.size, load("titanic", "run.segment_steps=100000", "run.steps=700"), place / "long")
    if world.rank == 0:
        assert invariance.first_difference(place / "short", place / "long") is None


def test_another_seed_differs(world, place):
    run_on(world, world.size, load("titanic"), place / "one")
    run_on(world, world.size, load("titanic", "run.seed=2"), place / "two")
    if world.rank == 0:
        assert invariance.first_difference(place / "one", place / "two") is not None


@pytest.mark.parametrize("name", ["titanic", "titanic-fald-independent", "gaussian"])
def test_messages_made_are_those_predicted(world, place, name):
    cfg = load(*CASES[name])
    run_on(world, world.size, cfg, place / "run")
    if world.rank == 0:
        made = json.loads((place / "run" / "manifest.json").read_text())["messages"]
        assert made["made"] == made["predicted"]
        assert made["made"] == execute.plan(cfg, world.size).messages


def assert_it_moved(folder, looks):
    """Guard against equal nonsense: all numbers finite, every parameter spread out, clients that differ."""
    found = json.loads((folder / "summary.json").read_text())
    assert all(np.isfinite(row["mean"]) and row["sd"] > 0.0 for row in found["parameters"])
    # the watch of the drift is among what is compared: sums in the checkpoint, numbers in the summary
    arrays, _ = checkpoint.load(folder / "checkpoint")
    assert np.all(arrays["drift_apart"] > 0.0)
    assert np.all(arrays["drift_sums"][:, 0] > 0.0) == looks
    assert found["drift"]["looks"] == arrays["drift_taken"][0] >= looks
