"""Batches of chains: which are possible, how "auto" decides, what is refused. Bytes and messages: tests/mpi/test_batches.py."""

import pytest

from fald_hpc import FALD, Clients, Gaussian, UserError, config, sample
from fald_hpc.batches import TRIAL_SECONDS, WORTH, Batches, possible
from fald_hpc.chains import Schedule
from fald_hpc.kernels.batches import share
from fald_hpc.layout import Layout, block

SHARED = Schedule()


@pytest.mark.parametrize("n", [1, 2, 5, 11])
def test_batches_are_blocks_of_chains(n):
    for parts in range(1, n + 1):
        for part in range(parts):
            expected = block(n, parts, part)
            assert share(3, 3 + n, parts, part) == (3 + expected.start, 3 + expected.stop)


def test_possible_batches():
    grid = Layout(10, 5, 2, 1)
    assert [possible(asked, grid, SHARED) for asked in (1, 2, 5, 9)] == [1, 2, 5, 5]
    assert possible(3, Layout(10, 5, 2, 2), SHARED) == 3  # three and two chains
    assert possible(4, Layout(10, 5, 1, 2), SHARED) == 1  # no message between ranks
    assert possible(4, grid, Schedule(shared=False)) == 1


def never():
    raise AssertionError("nothing to measure")


def test_a_given_number_is_not_measured():
    assert Batches(3, Layout(10, 5, 2, 1), SHARED, never).number == 3
    assert Batches("auto", Layout(10, 1, 2, 1), SHARED, never).number == 1


def test_automatic_on_one_node():
    found = Batches("auto", Layout(10, 4, 2, 1), SHARED, lambda: False)
    found.take(1, 0)
    assert [found.next(1000, 1.0) for _ in range(5)] == [1] * 5
    assert found.describe() == {"asked": "auto", "used": 1}


@pytest.mark.parametrize(("ratio", "chosen"), [(0.99 * WORTH, 2), (1.01 * WORTH, 1), (1.5, 1)])
def test_automatic_between_nodes_keeps_the_faster(ratio, chosen):
    found = Batches("auto", Layout(10, 4, 2, 1), SHARED, lambda: True)
    found.take(1, 0)
    k, seconds = 0, {1: 1e-3, 2: ratio * 1e-3}
    tried = []
    for _ in range(20):
        tried.append(found.number)
        k += 200
        found.take(found.next(200, 200 * seconds[found.number]), k)
    segments = int(TRIAL_SECONDS / 0.2) + 2  # of each, of 0.2 s or a little less
    assert set(tried[:4]) == {1, 2}
    assert tried[:4].count(1) == 2
    assert set(tried[2 * segments :]) == {chosen}
    assert found.describe()["used"] == chosen
    assert found.describe()["seconds_per_step"] == {"1": pytest.approx(1e-3), "2": pytest.approx(ratio * 1e-3)}
    assert found.spans[:3] == [(0, 1), (200, 2), (400, 1)]


def test_independent_coins_are_refused():
    clients = Clients.from_gaussians([[0.0], [1.0]], covariances=[[[1.0]], [[1.0]]])
    settings = {"steps": 10, "init": [0.0], "schedule": "independent"}
    with pytest.raises(UserError, match=r'chain_batches = 2 needs schedule = "shared".*leave chain_batches out\.'):
        sample(Gaussian(), clients, FALD(step_size=0.1), chain_batches=2, **settings)
    sample(Gaussian(), clients, FALD(step_size=0.1), chain_batches=1, **settings)
    with pytest.raises(UserError, match="chain_batches = 2 needs"):
        config.load("titanic", ["sampler.schedule=independent", "run.chain_batches=2"])


@pytest.mark.parametrize("value", [0, 1.5, True, "many"])
def test_numbers_of_batches_that_are_none(value):
    clients = Clients.from_gaussians([[0.0]], covariances=[[[1.0]]])
    with pytest.raises(UserError, match=r"chain_batches = .*: give a whole number of at least 1"):
        sample(Gaussian(), clients, FALD(step_size=0.1), steps=10, init=[0.0], chain_batches=value)
