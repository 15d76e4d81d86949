"""FALD and VR-FALD* on random quadratics: mean and covariance against the exact ones (specification, section 3)."""

import numpy as np
import pytest
from problems import agreement, sampling
from problems.cases import Case

from fald_hpc import FALD, Gaussian, VRFALDStar
from fald_hpc.data.clients import Clients
from oracles import closed_forms, moments, quadratics, recursions

pytestmark = pytest.mark.statistical

# seed, b, d, τ, p_c, q_c: every b from 1 to 7 and d from 1 to 6, both ends of the probabilities
PROBLEMS = [
    (1, 1, 1, 0.3, 0.3, 0.2),
    (2, 2, 6, 0.0, 1.0, 0.05),
    (3, 3, 2, 1.0, 0.05, 0.05),
    (4, 4, 5, 0.3, 0.2, 0.1),
    (5, 5, 3, 0.0, 0.1, 1.0),
    (6, 6, 4, 1.0, 0.5, 0.3),
    (7, 7, 1, 0.3, 0.05, 0.5),
    (8, 7, 6, 0.0, 0.3, 0.3),
    (9, 2, 2, 1.0, 1.0, 1.0),
]


def problem(seed, b, d):
    """Return random clients, for the package and for the oracle."""
    means, precisions = quadratics.random_clients(np.random.default_rng(seed), b, d, 1.5)
    clients = Clients.from_gaussians(means, precisions=precisions)
    return Case(Gaussian(), clients, None, d, 0.1), quadratics.gaussian(means, precisions)


@pytest.mark.parametrize("schedule", ["shared", "independent"])
@pytest.mark.parametrize("name", ["fald", "vr_fald_star"])
@pytest.mark.parametrize(("seed", "b", "d", "tau", "p", "q"), PROBLEMS)
def test_moments_of_random_quadratics(seed, b, d, tau, p, q, name, schedule):
    """32 chains, some 10^4 to 10^5 records, all tolerances 4.5 standard errors (see ``problems.agreement``)."""
    case, clients = problem(seed, b, d)
    if name == "fald":
        sampler = FALD(step_size=0.1, comm_prob=p, noise_sharing=tau)
        recursion = recursions.fald(clients, 0.1, p, tau)
    else:
        sampler = VRFALDStar(step_size=0.1, comm_prob=p, refresh_prob=q, noise_sharing=tau)
        recursion = recursions.vr_fald_star(clients, 0.1, p, q, tau)
    shared = schedule == "shared"
    steps = int(1000 + max(6000, 500 / p))
    run = sampling.run(case, sampler, steps, chains=32, seed=seed, burn_in=1000, schedule=schedule, init="mode")
    draws = sampling.draws(run)
    found = agreement.check(draws, recursion, shared=shared)
    # the streamed moments are of all records; those of chains with own coins go on beyond the draws
    error = agreement.mean_error(recursion, p * (steps - 1000), 32, shared=shared)
    assert np.all(np.abs(run.mean - moments.stationary(recursion).mean) < agreement.LIMIT * error)
    if shared:
        pooled = np.concatenate(draws)
        assert run.mean == pytest.approx(pooled.mean(axis=0), abs=1e-9)
        assert run.covariance == pytest.approx(np.cov(pooled.T).reshape(d, d), rel=0.01, abs=1e-3)
        assert run.sd**2 == pytest.approx(np.diag(run.covariance), rel=1e-9)
    if name == "vr_fald_star":
        assert np.max(np.abs(found.bias)) < 1e-6
    elif p < 1 and b > 1:
        # the bias is far above what the comparison can miss
        assert np.max(np.abs(found.bias)) > 2 * agreement.LIMIT


def test_one_client_has_the_variance_of_item_1():
    """``1/(h (1 - γ h / 2))`` with h = 2, γ = 0.4: 0.8333 where the target has 0.5."""
    h, step = 2.0, 0.4
    clients = Clients.from_gaussians(np.array([[1.0]]), precisions=np.array([[[h]]]))
    case = Case(Gaussian(), clients, None, 1, step)
    sampler = FALD(step_size=step, comm_prob=1.0)
    run = sampling.run(case, sampler, 20_000, chains=16, seed=3, burn_in=100, init="mode")
    recursion = recursions.fald(quadratics.gaussian(np.array([[1.0]]), np.array([[[h]]])), step, 1.0, 1.0)
    agreement.check(sampling.draws(run), recursion, shared=True)
    expected = closed_forms.one_client_variance(h, step)
    n = 16 * 19_900
    # AR(1) with coefficient a = 1 - γh: n var(s²)/σ⁴ = 2 (1 + a²)/(1 - a²)
    a = 1 - step * h
    error = expected * np.sqrt(2 * (1 + a**2) / (1 - a**2) / n)
    assert abs(np.asarray(run.covariance).item() - expected) < 4.5 * error
