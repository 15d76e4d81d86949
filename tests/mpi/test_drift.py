"""The drift watch under MPI: what it sums is the same on any layout, whom the ranks wait for is found, parts add up."""

import json

import numpy as np
import pytest
from problems.ranks import run_on

import fald_hpc
from fald_hpc import config, invariance
from fald_hpc.kernels.jit import DISABLED

pytestmark = pytest.mark.mpi


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())["drift"]


@pytest.mark.parametrize("batch", ["10", '"full"'])
def test_numbers_by_client_on_every_number_of_ranks(world, place, batch):
    """The whole list by client, which only the manifest has; 3 looks fall to other chains, and to other groups."""
    cfg = config.load("titanic", ["run.steps=6000", "run.chains=3", f"sampler.batch_size={batch}"])
    for count in range(1, world.size + 1):
        run_on(world, count, cfg, place / str(count))
    split = None
    if world.size % 3 == 0:
        changes = ["run.steps=6000", "run.chains=3", "run.chain_groups=3", f"sampler.batch_size={batch}"]
        split = config.load("titanic", changes)
        run_on(world, world.size, split, place / "groups")
    if world.rank == 0:
        serial = manifest(place / "1")
        assert serial["looks"] >= 3
        assert serial.pop("waiting") == []
        others = [place / str(count) for count in range(2, world.size + 1)] + ([place / "groups"] if split else [])
        for other in others:
            found = manifest(other)
            found.pop("waiting")
            assert repr(found) == repr(serial), other.name
            assert invariance.first_difference(place / "1", other) is None


@pytest.mark.skipif(DISABLED, reason="messages of the compiled loop are timed, others are not")
def test_the_slow_rank_is_found(world):
    """The last rank's client has 300 times the rows of the others, every step takes them all, and they wait."""
    if world.size < 2:
        pytest.skip("one rank waits for nobody")
    rng = np.random.default_rng(1)
    rows = [*[20] * (world.size - 1), 6000]
    clients = fald_hpc.Clients.from_arrays([(rng.normal(size=(n, 4)), rng.normal(size=n)) for n in rows])
    sampler = fald_hpc.FALD(step_size=1e-6, comm_prob=0.2)
    run = fald_hpc.sample(fald_hpc.Linear(), clients, sampler, steps=10_000, chains=1, comm=world, init="mode")
    if world.rank == 0:
        (part,) = run.manifest["drift"]["waiting"]
        assert part["ranks"] == world.size
        assert part["messages"] == run.manifest["messages"]["made"] + run.manifest["messages"]["repeated"]
        assert part["slowest_rank"] == world.size - 1
        assert part["waiting"]["least"] <= part["waiting"]["mean"] <= part["waiting"]["largest"]
        # the others do a few per cent of the work between two messages, if there is a core for each of them
        assert part["waiting"]["largest"] > 0.2 * run.manifest["seconds"]["sample"]


@pytest.mark.skipif(DISABLED, reason="messages of the compiled loop are timed, others are not")
def test_waiting_adds_up_over_the_parts_of_a_run(world, place):
    if world.size < 2:
        pytest.skip("one rank waits for nobody")
    cfg = config.load("titanic", ["run.steps=2000", "run.segment_steps=61"])
    counts = [world.size, world.size - 1, world.size]
    for count, stop in zip(counts, [2, 4, None], strict=True):
        run_on(world, count, cfg, place / "run", stop, resume=True)
    if world.rank == 0:
        parts = manifest(place / "run")["waiting"]
        assert [part["ranks"] for part in parts] == [count for count in counts if count > 1]
        if world.size > 2:
            edges = [step for part in parts for step in part["steps"]]
            assert edges[0] == 0
            assert edges[-1] == 2000
            assert edges[1::2][:-1] == edges[2::2]
        total = json.loads((place / "run" / "summary.json").read_text())["seconds"]["waiting"]
        assert total["waiting"]["mean"] == pytest.approx(sum(part["waiting"]["mean"] for part in parts))
