"""What differs between ranks and must not show: other generators, clients without rows, the number of the first rank."""

import random

import numpy as np
import pytest

import fald_hpc
from fald_hpc import config, execute, invariance
from fald_hpc.data import Partition
from fald_hpc.errors import UserError

pytestmark = pytest.mark.mpi


def alone(world):
    """Return the communicator of the first rank; the others must not use it."""
    return world.split(int(world.rank > 0))


def test_coins_are_immune_to_other_generators(world, place):
    """Ranks consume Python's, NumPy's and numba's generators differently, before the run and on rank 0 while it runs."""
    import numba

    @numba.njit
    def consume(n):
        total = 0.0
        for _ in range(n):
            total += np.random.normal()
        return total

    def disturb(*_):
        np.random.seed(world.rank)
        np.random.random(7 * world.rank + 1)
        random.seed(world.rank)
        consume(world.rank + 1)

    cfg = config.load("titanic", ["run.steps=2000", "run.segment_steps=100", "sampler.noise_sharing=0.5"])
    first = alone(world)
    if world.rank == 0:
        execute.execute(cfg, place / "quiet", comm=first)
    first.free()
    world.together(None)
    disturb()
    execute.execute(cfg, place / "loud", comm=world, progress=disturb)
    if world.rank == 0:
        assert invariance.first_difference(place / "quiet", place / "loud") is None


def test_a_rank_whose_clients_have_no_rows(world, place):
    """A client with zero rows takes part with its share of the prior (users.md row 4)."""
    x = np.linspace(-1.0, 1.0, 60).reshape(30, 2)
    y = (np.arange(30) % 2).astype(float)
    parts = {"a": (x[:20], y[:20]), "b": (x[20:], y[20:])}
    # the last clients, and with them the last rank where there are as many, have none
    parts |= {f"none-{i}": (x[:0], y[:0]) for i in range(4)}
    clients = fald_hpc.Clients.from_arrays(parts)

    def sample(name, communicator):
        sampler = fald_hpc.VRFALDStar(step_size=0.01, batch_size=3)
        fald_hpc.sample(fald_hpc.Logistic(), clients, sampler, steps=1500, out=place / name, comm=communicator)

    first = alone(world)
    if world.rank == 0:
        sample("serial", first)
    first.free()
    world.together(None)
    sample("ranks", world)
    if world.rank == 0:
        assert invariance.first_difference(place / "serial", place / "ranks") is None


def test_ranks_that_read_other_rows_are_refused(world, place):
    """One file, another content on the last rank: a copy on a node's own disk that was forgotten."""
    if world.size < 2:
        pytest.skip("needs two ranks")
    rows = "".join(f"{i / 10},{i % 2}\n" for i in range(40))
    if world.rank == 0:
        (place / "new.csv").write_text("a,y\n" + rows)
        (place / "old.csv").write_text("a,y\n" + rows.replace("3.9,1", "3.9,0"))
    world.together(None)
    last = world.rank == world.size - 1
    clients = fald_hpc.Clients.from_file(
        place / ("old.csv" if last else "new.csv"), partition=Partition("iid", 6), label="y"
    )
    with pytest.raises(UserError, match=rf"rank {world.size - 1} has the content of data\.file = \w+ where rank 0 has \w+"):
        fald_hpc.sample(
            fald_hpc.Logistic(), clients, fald_hpc.FALD(step_size=0.01), steps=100, out=place / "run", comm=world
        )
    assert not (place / "run").exists()


def test_chain_groups_that_see_other_data_are_refused(world, place):
    if world.size < 2:
        pytest.skip("needs two ranks")
    x = np.arange(20.0).reshape(10, 2)
    last = world.rank == world.size - 1
    clients = fald_hpc.Clients.from_arrays({"only": (x + (0.5 if last else 0.0), np.arange(10) % 2)})
    with pytest.raises(UserError, match=rf"rank {world.size - 1} sees other data of client only"):
        fald_hpc.sample(
            fald_hpc.Logistic(), clients, fald_hpc.FALD(step_size=0.001), steps=100, chains=6, out=place / "run", comm=world
        )
    assert not (place / "run").exists()


def test_clients_with_other_columns_on_another_rank_are_refused(world, place):
    """No rank sees both clients; the message names both."""
    if world.size < 2:
        pytest.skip("needs two ranks")
    folder = place / "clients"
    if world.rank == 0:
        folder.mkdir()
        for i in range(world.size):
            names = "a,b,y" if i < world.size - 1 else "b,a,y"
            (folder / f"c{i}.csv").write_text(f"{names}\n1,2,0\n3,4,1\n")
    world.together(None)
    clients = fald_hpc.Clients.from_folder(folder, label="y")
    with pytest.raises(UserError, match=rf"client c{world.size - 1} has the columns b, a and client c0 has a, b"):
        fald_hpc.sample(
            fald_hpc.Logistic(), clients, fald_hpc.FALD(step_size=0.01), steps=100, out=place / "run", comm=world
        )
    assert not (place / "run").exists()
