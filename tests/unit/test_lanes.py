"""Whole runs of dense Gaussians: which chains are side by side, and how often events meet, changes no byte."""

import itertools

import numpy as np
import pytest

from fald_hpc import FALD, Clients, Gaussian, VRFALDStar, sample
from fald_hpc.failures import Divergence
from fald_hpc.kernels import quadratic, quadratic_sums, state


def clients(n, d, scale=1.0):
    """Return clients that disagree in mean and precision."""
    rng = np.random.default_rng(10 * n + d)
    factors = rng.normal(size=(n, d, d)) / np.sqrt(d)
    return Clients.from_gaussians(scale * rng.normal(size=(n, d)), precisions=factors @ factors.transpose(0, 2, 1) + np.eye(d))


def draws(run):
    """Return the draws: float64[s, k, d]."""
    return np.asarray(run.draws)


SAMPLERS = {
    "fald": lambda p, q, tau: FALD(step_size=0.02, comm_prob=p, noise_sharing=tau),
    "vr_fald_star": lambda p, q, tau: VRFALDStar(step_size=0.02, comm_prob=p, refresh_prob=q, noise_sharing=tau),
}


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize(("n", "d"), [(1, 3), (3, 2), (5, 4), (9, 20)])
def test_a_chain_alone_equals_the_same_chain_in_a_run_of_many(name, n, d):
    """One chain takes the plain steps or has clients in its lanes; of 37, eight or sixteen are side by side.

    Refreshes follow averagings, refreshes and both, after no step, one and many, so positions are stored, kept and at the mean.
    """
    assert 2 * quadratic.TOGETHER < 37
    for p, q, tau in [(0.5, 0.5, 1.0), (0.05, 0.6, 0.4), (0.6, 0.05, 1.0), (1.0, 0.3, 0.0)]:
        settings = {"steps": 400, "seed": 3, "burn_in": 0, "init": np.full(d, 0.3)}
        sampler = SAMPLERS[name](p, q, tau)
        many = draws(sample(Gaussian(), clients(n, d), sampler, chains=37, **settings))
        one = draws(sample(Gaussian(), clients(n, d), sampler, chains=1, **settings))
        assert one.shape[1] > 10
        assert many[0].tobytes() == one[0].tobytes(), (p, q, tau)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("chains", [2, 5, 19])
def test_values_that_leave_their_windows(name, chains):
    """A start far from the mode: sums of eight lanes are void again and again, and computed from stored vectors then."""
    for n, p, q in [(3, 0.3, 0.3), (3, 0.5, 0.5), (6, 0.1, 0.4)]:
        settings = {"steps": 300, "seed": 1, "burn_in": 0, "init": np.zeros(3)}
        sampler, far = SAMPLERS[name](p, q, 0.5), clients(n, 3, 1e9)
        many = sample(Gaussian(), far, sampler, chains=chains, **settings)
        one = sample(Gaussian(), far, sampler, chains=1, **settings)
        assert draws(many)[0].tobytes() == draws(one)[0].tobytes()
        assert many.manifest["messages"]["repeated"] > 0


def test_flags_are_distinct_bits():
    here = [quadratic_sums.BY_CLIENTS, quadratic.HAS_REFERENCE, quadratic.FROM_START, quadratic.FROM_KEPT, quadratic.OFFSETS]
    flags = [*here, state.STORE, state.ADD, state.KEEP, state.AHEAD, state.GOES_ON]
    assert all(a & b == 0 for a, b in itertools.combinations(flags, 2))
    # the width of vectors begins there
    assert max(flags) < 1 << 10


@pytest.mark.parametrize("name", SAMPLERS)
def test_private_noise_of_more_chains_than_a_block_holds(name):
    """Blocks of common noise get shorter with more chains; no pass may be longer than one."""
    settings = {"steps": 500, "seed": 2, "burn_in": 0, "init": np.zeros(8)}
    sampler = SAMPLERS[name](0.01, 0.01, 0.5)
    many, one = (draws(sample(Gaussian(), clients(2, 8), sampler, chains=s, **settings)) for s in (200, 1))
    assert one.shape[1] > 2
    assert many[0].tobytes() == one[0].tobytes()


def test_the_first_chain_to_diverge_is_named_whatever_part_it_is_in():
    """Sixteen chains run together; the twenty-first begins far out and leaves the range of numbers first."""
    start = np.ones((40, 1))
    start[20:] = 1e60
    flat = Clients.from_gaussians(np.zeros((4, 1)), precisions=np.ones((4, 1, 1)))
    with pytest.raises(Divergence, match=r"client 0 \(client-0\), chain 20") as found:
        sample(Gaussian(), flat, FALD(step_size=3.0, comm_prob=0.1), chains=40, steps=5000, init=start)
    assert 600 < found.value.step < 800  # 2^n 1e60 = 2^900


def test_repeated_messages_are_counted_once_for_all_parts():
    # far outside: all chains jump by 10^8 times their noise, so they leave their windows with the same messages
    far = clients(5, 3, 1e9)
    counts = [
        sample(Gaussian(), far, FALD(step_size=0.1, comm_prob=0.5), chains=s, steps=100, init=np.zeros(3)).manifest["messages"]
        for s in (16, 160)
    ]
    assert counts[0]["made"] == counts[1]["made"]
    assert counts[0]["repeated"] == counts[1]["repeated"] > 0
