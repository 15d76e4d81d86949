"""Chains in batches, one computing while the messages of the others are under way: the same bytes, messages as planned."""

import json
from functools import partial

import numpy as np
import pytest
from problems.ranks import run_on
from problems.stops import asked_to_stop

import fald_hpc
from fald_hpc import batches, config, engine, execute, invariance
from fald_hpc.errors import Stopped
from fald_hpc.failures import Divergence, GradientFailure

pytestmark = pytest.mark.mpi

# every kind of message; windows that are widened while others are under way are below
CASES = {
    "titanic": ["titanic", "run.steps=1500"],
    "fald": ["titanic", "sampler.name=fald", "run.chains=5", "run.steps=1500"],
    "always": ["titanic", "sampler.comm_prob=1.0", "sampler.refresh_prob=0.5", "run.steps=200"],
    "refreshes alone": ["titanic", "sampler.comm_prob=0.02", "sampler.refresh_prob=0.6", "run.steps=400"],
    "short segments": ["titanic", "run.segment_steps=7", "run.steps=300", "sampler.noise_sharing=0.3"],
    "lanes": ["gaussian", "run.chains=11", "sampler.noise_sharing=0.3", "run.steps=400"],
    "lanes of clients": ["gaussian", "run.chains=3", "sampler.name=fald", "run.steps=400"],
    "refreshes in lanes of clients": ["gaussian", "run.chains=3", "sampler.refresh_prob=0.3", "sampler.noise_sharing=0.3",
                                      "run.steps=400"],
}


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_any_number_of_batches_gives_the_serial_bytes(world, place, name):
    """Two batches of unequal size, three, and more batches than chains, on all ranks and on all but one."""
    cfg = config.load(CASES[name][0], CASES[name][1:])
    run_on(world, 1, cfg, place / "serial")
    for count in range(max(2, world.size - 1), world.size + 1):
        once = execute.plan(cfg, count) if world.rank == 0 else None
        for number in (1, 2, 3, 20):
            folder = place / f"{count}-{number}"
            asked = config.load(CASES[name][0], [*CASES[name][1:], f"run.chain_batches={number}"])
            run_on(world, count, asked, folder)
            if world.rank == 0:
                assert invariance.first_difference(place / "serial", folder) is None, f"{count} ranks, {number} batches"
                plan, written = execute.plan(asked, count), manifest(folder)
                chains = cfg.run.chains
                assert written["chain_batches"] == {"asked": number, "used": min(number, chains)}
                assert written["messages"]["made"] == written["messages"]["predicted"] == plan.messages
                assert plan.chain_batches == min(number, chains)
                start = int(cfg.sampler.name != "fald")
                assert plan.messages - start == min(number, chains) * (once.messages - start)
                assert plan.total_bytes == once.total_bytes


def test_batches_of_chain_groups(world, place):
    """Five chains in two groups of ranks: three and two, in three batches at most."""
    ranks = world.size // 2 * 2
    if ranks < 4:
        pytest.skip("two chain groups that send messages need four ranks")
    changes = ["run.chains=5", "run.steps=800", "run.chain_batches=3"]
    run_on(world, 1, config.load("titanic", changes), place / "serial")
    run_on(world, ranks, config.load("titanic", [*changes, "run.chain_groups=2"]), place / "grid")
    if world.rank == 0:
        assert invariance.first_difference(place / "serial", place / "grid") is None
        written = manifest(place / "grid")
        assert written["chain_batches"]["used"] == 3
        assert written["messages"]["made"] == written["messages"]["predicted"]


def gaussians(mean, n=3):
    """Clients around a mean."""
    means = mean + np.array([[0.0, 1.0], [2.0, -1.0], [1.0, 3.0], [-1.0, 0.0], [0.5, 0.5]])[:n]
    return fald_hpc.Clients.from_gaussians(means, precisions=np.tile(np.eye(2), (n, 1, 1)))


def sample(world, count, number, **more):
    """Sample on the first ranks; all ranks call it. Return the run."""
    settings = {"steps": 300, "chains": 4, "burn_in": 0, **more}
    group = world.split(int(world.rank < count))
    try:
        if world.rank < count:
            return fald_hpc.sample(comm=group, chain_batches=number, **settings)
    finally:
        group.free()
    return None


@pytest.mark.parametrize("n", [3, 5])
@pytest.mark.parametrize("sampler", [fald_hpc.FALD, partial(fald_hpc.VRFALDStar, refresh_prob=0.3)])
def test_windows_are_widened_while_other_messages_are_under_way(world, sampler, n):
    """From 1e-3 to 1e7: beyond the window of the start, so messages are repeated, chain by chain at different times.

    With three clients chains lie side by side, with five clients do; a refresh then takes its step before its message is back.
    """
    start = np.array([[1e-3, 0.0], [0.0, 1e7], [1.0, 1.0], [1e4, 1e-3]])
    more = {
        "potential": fald_hpc.Gaussian(), "clients": gaussians(1e7, n), "init": start,
        "sampler": sampler(step_size=0.02, comm_prob=0.3),
    }  # fmt: skip
    count = min(world.size, 3)
    serial = sample(world, 1, 1, **more)
    for number in (1, 2, 3):
        found = sample(world, count, number, **more)
        if world.rank == 0:
            assert found.messages["repeated"] > 0
            assert found.messages["made"] == found.messages["predicted"]
            assert np.array_equal(np.asarray(found.draws), np.asarray(serial.draws))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_divergence_ends_all_ranks_and_leaves_no_message(world, number):
    more = {"potential": fald_hpc.Gaussian(), "clients": gaussians(0.0), "init": np.ones(2), "steps": 100000}
    count = min(world.size, 3)
    if world.rank < count:
        group = world.split(1)
        with pytest.raises(Divergence, match="not finite"):
            fald_hpc.sample(
                sampler=fald_hpc.VRFALDStar(step_size=50.0, comm_prob=0.3), comm=group, chain_batches=number, **more
            )
        # the same communicator goes on: the next message is the next one
        assert group.maximum(np.array([float(group.rank)]))[0] == count - 1
        group.free()
    else:
        world.split(0).free()
    good = sample(world, count, number, sampler=fald_hpc.FALD(step_size=0.02, comm_prob=0.3), **{**more, "steps": 100})
    if world.rank == 0:
        assert good.messages["made"] == good.messages["predicted"]


def test_a_gradient_that_raises_on_one_rank(world):
    if world.size < 2:
        pytest.skip("needs two ranks")

    # at the checks of set-up theta is 0.15 at most, and 0.5 at the start; from there it drifts down
    def gradient(theta, x, y, out):
        if x[0] > 0.5 and 0.2 < theta[0] < 0.4:
            raise ValueError("no")
        out[:] = theta

    import numba

    potential = fald_hpc.row_potential(numba.njit(gradient), dimension=1, prior_scale=None)
    clients = fald_hpc.Clients.from_arrays([(np.full((2, 1), float(i == 1)), np.zeros(2)) for i in range(2)])
    group = world.split(int(world.rank < 2))
    if world.rank < 2:
        with pytest.raises(GradientFailure, match="client 1"):
            fald_hpc.sample(
                potential, clients, fald_hpc.FALD(step_size=0.002, comm_prob=0.2), steps=10000, chains=3,
                init=[0.5], comm=group, chain_batches=2,
            )  # fmt: skip
    group.free()


def test_stopped_and_resumed_with_other_batches(world, place):
    changes = ["run.steps=1200", "run.segment_steps=61"]
    run_on(world, 1, config.load("titanic", changes), place / "whole")
    for number in (2, 3, 1):
        stopped = 0.0
        with asked_to_stop(2 if world.rank == world.size - 1 else None):
            try:
                cfg = config.load("titanic", [*changes, f"run.chain_batches={number}"])
                execute.execute(cfg, place / "parts", comm=world, resume=True)
            except Stopped:
                stopped = 1.0
        assert world.maximum([stopped])[0] == stopped == 1.0
    run_on(world, world.size, config.load("titanic", [*changes, "run.chain_batches=4"]), place / "parts", resume=True)
    if world.rank == 0:
        assert invariance.first_difference(place / "whole", place / "parts") is None


def test_automatic_on_one_node_is_one_batch(world, place):
    run_on(world, world.size, config.load("titanic", ["run.steps=200"]), place / "run")
    if world.rank == 0:
        assert manifest(place / "run")["chain_batches"] == {"asked": "auto", "used": 1}


def test_automatic_between_nodes_is_tried_on_the_run_itself(world, place, monkeypatch):
    """As if on several nodes: both numbers are measured; results and the count of messages are right all the same."""
    monkeypatch.setattr(engine.Engine, "_between_nodes", lambda self: True)
    monkeypatch.setattr(batches, "TRIAL_SECONDS", 1e-3)
    cfg = config.load("titanic", ["run.steps=3000", "run.segment_steps=100"])
    run_on(world, 1, cfg, place / "serial")
    run_on(world, world.size, cfg, place / "run")
    if world.rank == 0:
        assert invariance.first_difference(place / "serial", place / "run") is None
        written = manifest(place / "run")
        assert written["messages"]["made"] == written["messages"]["predicted"]
        if world.size > 1:
            assert set(written["chain_batches"]["seconds_per_step"]) == {"1", "2"}
            assert written["messages"]["made"] > execute.plan(cfg, world.size).messages
