"""Chains that share their coins depend on each other: MCSE must know (specification, section 3 item 8).

Two heterogeneous clients with H = b⁻¹ Σ‖∇U^i(x*)‖² = 13, FALD, 20 chains: the coins move all chains together.
"""

import numpy as np
import pytest
from problems import sampling
from problems.cases import Case

from fald_hpc import FALD, Gaussian, VRFALDStar
from fald_hpc.data.clients import Clients
from oracles import averages, moments, quadratics, recursions

pytestmark = pytest.mark.statistical

MEANS, PRECISIONS = np.array([[3.0], [-6.0]]), np.array([[[2.0]], [[0.5]]])
CLIENTS = quadratics.gaussian(MEANS, PRECISIONS)
CASE = Case(Gaussian(), Clients.from_gaussians(MEANS, precisions=PRECISIONS), None, 1, 0.1)
STEP, COMM, CHAINS, STEPS, BURN, SEEDS = 0.1, 0.1, 20, 8000, 500, 60


def replicate(sampler, schedule, seeds=SEEDS):
    """Grand means, MCSEs and the naive errors from the spread of the chains' means, of many seeds."""
    grand, mcse, naive = [], [], []
    for seed in range(seeds):
        run = sampling.run(CASE, sampler, STEPS, chains=CHAINS, seed=seed, burn_in=BURN, init="mode", schedule=schedule)
        own = np.array([x.mean() for x in sampling.draws(run)])
        grand.append(own.mean())
        naive.append(own.std(ddof=1) / np.sqrt(CHAINS))
        mcse.append(run.summary()["parameters"][0]["mcse"])
    return np.array(grand), np.array(mcse, dtype=float), np.array(naive)


def predicted(recursion, shared):
    """Exact mean, and the exact standard error of the grand mean."""
    exact = moments.stationary(recursion)
    series = averages.at_communications(recursion, exact)
    variance = averages.mean_variance(series, COMM * (STEPS - BURN), CHAINS, shared=shared)
    return exact.mean[0], np.sqrt(variance[0, 0])


def test_heterogeneity_of_the_example():
    mode = quadratics.target(CLIENTS)[0]
    gradients = [e[0].hessian @ mode - e[0].pull for e in CLIENTS]
    assert np.mean([g @ g for g in gradients]) == pytest.approx(13, rel=0.01)


def test_mcse_knows_that_chains_with_shared_coins_depend_on_each_other():
    """Over 60 seeds the scatter of the grand mean, the mean MCSE and the exact error agree; the naive one does not.

    The sample variance of 60 means has relative standard error sqrt(2/59) = 0.18, so the ratio of standard deviations
    lies within 1 ± 0.41 at 4.5 of them. A batch-means MCSE scatters too, its average hardly.
    """
    error = predicted(recursions.fald(CLIENTS, STEP, COMM, 1.0), shared=True)
    grand, mcse, naive = replicate(FALD(step_size=STEP, comm_prob=COMM), "shared")
    spread = np.sqrt(np.mean((grand - error[0]) ** 2))
    assert spread == pytest.approx(error[1], rel=0.41)
    assert abs(grand.mean() - error[0]) < 4.5 * error[1] / np.sqrt(SEEDS)
    assert np.mean(mcse) == pytest.approx(error[1], rel=0.2)
    # the true variance is 6 to 14 times what the spread between chains suggests
    assert 6 < error[1] ** 2 / np.mean(naive**2) < 14
    assert np.mean(mcse**2) > 4 * np.mean(naive**2)


@pytest.mark.parametrize("name", ["independent coins", "vr_fald_star"])
def test_mcse_where_chains_do_not_depend_on_each_other(name):
    """Independent coins, or VR-FALD* with shared ones: the spread of the chains is right, and so is the MCSE."""
    if name == "vr_fald_star":
        sampler = VRFALDStar(step_size=STEP, comm_prob=COMM, refresh_prob=COMM)
        recursion = recursions.vr_fald_star(CLIENTS, STEP, COMM, COMM, 1.0)
    else:
        sampler, recursion = FALD(step_size=STEP, comm_prob=COMM), recursions.fald(CLIENTS, STEP, COMM, 1.0)
    schedule = "shared" if name == "vr_fald_star" else "independent"
    exact, error = predicted(recursion, shared=schedule == "shared")
    grand, mcse, naive = replicate(sampler, schedule, seeds=16)
    assert abs(grand.mean() - exact) < 4.5 * error / np.sqrt(16)
    assert np.mean(mcse) == pytest.approx(error, rel=0.2)
    assert np.mean(naive) == pytest.approx(error, rel=0.2)
