"""Resume under MPI, bitwise: stopped by one rank, continued on another number of ranks (users.md rows 33, 36, 39)."""


import pytest
from problems.ranks import run_on

import fald_hpc
from fald_hpc import config, execute, invariance
from fald_hpc.errors import UserError

pytestmark = pytest.mark.mpi

STEPS = 2500
CAP = "output.draws_megabytes=0.01"
CASES = {
    "minibatch": ["titanic", "run.chains=3", "sampler.comm_prob=0.3", CAP],
    "independent coins": ["titanic", "sampler.schedule=independent", "sampler.noise_sharing=0.3", CAP],
    "gaussian": ["gaussian", "sampler.schedule=independent", "sampler.comm_prob=0.7", "sampler.refresh_prob=0.4", "run.chains=3"],
    "fald": ["gaussian", "sampler.name=fald", "run.chains=2"],
}


def load(source, *changes):
    return config.load(source, [f"run.steps={STEPS}", "run.segment_steps=61", *changes])


@pytest.mark.parametrize("case", CASES)
def test_stopped_and_resumed_on_other_ranks(world, place, case):
    cfg = load(*CASES[case])
    run_on(world, 1, cfg, place / "whole")
    counts = [world.size, max(1, world.size - 1), 1, world.size]
    for i, count in enumerate(counts):
        # the rank that is asked is another one each time
        assert run_on(world, count, cfg, place / "parts", stop_after=2, asked=i % count, resume=True), "must have been stopped"
    assert not run_on(world, world.size, cfg, place / "parts", resume=True)
    if world.rank == 0:
        assert invariance.first_difference(place / "whole", place / "parts") is None


def test_extension_on_other_ranks(world, place):
    run_on(world, world.size, load(*CASES["minibatch"], "run.steps=800"), place / "run")
    run_on(world, max(1, world.size - 1), load(*CASES["minibatch"]), place / "run", resume=True)
    run_on(world, 1, load(*CASES["minibatch"], "run.burn_in=80"), place / "long")
    if world.rank == 0:
        assert invariance.first_difference(place / "run", place / "long") is None


def test_chain_groups_stop_together(world, place):
    if world.size < 2:
        pytest.skip("needs two ranks")
    cfg = load("titanic", "run.chains=4", f"run.chain_groups={2 if world.size % 2 == 0 else world.size}")
    if world.size > 4:
        pytest.skip("four chains")
    run_on(world, 1, cfg.model_copy(update={"run": cfg.run.model_copy(update={"chain_groups": 1})}), place / "whole")
    assert run_on(world, world.size, cfg, place / "parts", stop_after=3, asked=world.size - 1, resume=True)
    assert not run_on(world, world.size, cfg, place / "parts", resume=True)
    if world.rank == 0:
        assert invariance.first_difference(place / "whole", place / "parts") is None


def test_ranks_that_see_different_settings_are_refused(world, place):
    if world.size < 2:
        pytest.skip("needs two ranks")
    last = world.rank == world.size - 1
    for change, named in (("run.seed=2", "run.seed = 2"), ("sampler.comm_prob=0.2", "sampler.comm_prob = 0.2")):
        cfg = load("titanic", *([change] if last else []))
        with pytest.raises(UserError, match=f"rank {world.size - 1} has {named} where rank 0 has"):
            execute.execute(cfg, place / "run", comm=world)
    assert not (place / "run").exists()


def test_more_ranks_than_work_are_refused(world, place):
    if world.size < 3:
        pytest.skip("needs three ranks")
    clients = fald_hpc.Clients.from_gaussians([[0.0], [1.0]], covariances=[[[1.0]], [[1.0]]])
    with pytest.raises(UserError, match="ranks"):
        fald_hpc.sample(
            fald_hpc.Gaussian(), clients, fald_hpc.FALD(step_size=0.1), steps=100, chains=1, out=place / "run", comm=world
        )
    assert not (place / "run").exists()
