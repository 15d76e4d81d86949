"""Models with a posterior in closed form: a normal mean, linear regression (specification, section 3 item 6)."""

import numpy as np
import pytest
from problems import agreement, sampling
from problems.cases import Case

from fald_hpc import VRFALDStar
from fald_hpc.data.clients import Clients
from fald_hpc.potentials.linear import Linear
from oracles import moments, quadratics, recursions

pytestmark = pytest.mark.statistical

NOISE, SCALE = 1.5, 2.0


def normal_mean(copies=1):
    """Rows of three clients with a single feature 1: a normal mean with known variance."""
    rng = np.random.default_rng(3)
    parts = [2.0 + NOISE * rng.standard_normal(n) for n in (5, 9, 2)]
    return [(np.ones((copies * len(y), 1)), np.tile(y, copies)) for y in parts]


def linear_regression(copies=1):
    """Rows of three clients in two dimensions."""
    rng = np.random.default_rng(4)
    parts = []
    for n in (6, 3, 10):
        x = rng.standard_normal((n, 2))
        parts.append((np.tile(x, (copies, 1)), np.tile(x @ [1.0, -2.0] + NOISE * rng.standard_normal(n), copies)))
    return parts


def textbook(parts):
    """Posterior mean and covariance from the normal equations of all rows together."""
    x = np.concatenate([p[0] for p in parts])
    y = np.concatenate([p[1] for p in parts])
    covariance = np.linalg.inv(x.T @ x / NOISE**2 + np.eye(x.shape[1]) / SCALE**2)
    return covariance @ x.T @ y / NOISE**2, covariance


def sample(parts, step, batch, seed=1, steps=25_000, chains=24):
    """Draws of VR-FALD*, and its exact recursion at full gradients."""
    potential = Linear(noise_sd=NOISE, prior_scale=SCALE)
    case = Case(potential, Clients.from_arrays(parts), None, parts[0][0].shape[1], step)
    sampler = VRFALDStar(step_size=step, comm_prob=0.3, refresh_prob=0.3, noise_sharing=1.0, batch_size=batch)
    run = sampling.run(case, sampler, steps, chains=chains, seed=seed, burn_in=1000, init="mode")
    return run, recursions.vr_fald_star(quadratics.regression(parts, NOISE, SCALE), step, 0.3, 0.3, 1.0)


@pytest.mark.parametrize("model", [normal_mean, linear_regression])
def test_posterior_of_conjugate_models(model):
    """Full gradients: the exact moments at this step, which lie within 2 % of the textbook posterior."""
    parts = model()
    mean, covariance = textbook(parts)
    run, recursion = sample(parts, 0.01, "full")
    agreement.check(sampling.draws(run), recursion, shared=True)
    exact = moments.stationary(recursion)
    assert exact.mean == pytest.approx(mean, rel=1e-9)
    assert np.sqrt(np.diag(exact.covariance)) == pytest.approx(np.sqrt(np.diag(covariance)), rel=0.02)


@pytest.mark.parametrize("model", [normal_mean, linear_regression])
def test_minibatches_keep_the_mean(model):
    """Minibatches of 2: unbiased, hence the same mean; the variance of that noise at this step is below 2 %.

    Standard errors are those of full gradients, within that margin.
    """
    parts = model()
    _, covariance = textbook(parts)
    run, recursion = sample(parts, 0.01, 2, seed=2)
    found = agreement.compare(sampling.draws(run), recursion, shared=True)
    assert np.all(np.abs(found.mean) < 4.5)
    draws = np.concatenate(sampling.draws(run))
    assert draws.std(axis=0) == pytest.approx(np.sqrt(np.diag(covariance)), rel=0.03)


@pytest.mark.parametrize("model", [normal_mean, linear_regression])
def test_doubling_the_data_doubles_the_precision_of_the_likelihood(model):
    """Every row twice: precision minus that of the prior doubles (to 4 %: step size and Monte Carlo, both computed).

    An estimate that forgot N_i/n_i, or counted the prior once per client, would be off by far more.
    """
    precisions = []
    for copies in (1, 2):
        run, recursion = sample(model(copies), 0.005 / copies, 2, seed=copies)
        precisions.append(np.linalg.inv(np.atleast_2d(run.covariance)))
        exact = np.linalg.inv(moments.stationary(recursion).covariance)
        assert precisions[-1] == pytest.approx(exact, rel=0.04, abs=0.03 * np.abs(exact).max())
    prior = np.eye(len(precisions[0])) / SCALE**2
    ratio = np.diag(precisions[1] - prior) / np.diag(precisions[0] - prior)
    assert ratio == pytest.approx(2 * np.ones(len(prior)), rel=0.04)
