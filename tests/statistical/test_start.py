"""Where chains start, and what happens to those that leave the finite numbers."""

import numpy as np
import pytest
from problems import cases, sampling

from fald_hpc import FALD, UserError, VRFALDStar
from fald_hpc.chains import Divergence
from oracles import titanic

TINY = 1e-14


def first_draws(case, init, chains=400, seed=3):
    """Return the start of many chains: the first record of a sampler that hardly moves, float64[chains, d]."""
    run = sampling.run(
        case,
        FALD(step_size=TINY, comm_prob=1.0),
        2,
        chains=chains,
        seed=seed,
        burn_in=0,
        init=init,
        record="every-step",
    )
    return np.array(sampling.draws(run))[:, 0]


def laplace(case):
    """Return mode and inverse Hessian of a logistic or linear model by Newton's method with differences."""
    x = np.zeros(case.d)
    b = len(case.model.rows)

    def gradient(point):
        from oracles.transcription import full_gradient

        return sum(full_gradient(case.model, i, point) for i in range(b))

    for _ in range(30):
        h = 1e-6
        hessian = np.array([(gradient(x + h * e) - gradient(x - h * e)) / (2 * h) for e in np.eye(case.d)])
        x = x - np.linalg.solve(hessian, gradient(x))
    return x, np.linalg.inv(hessian)


def test_laplace_of_this_test_finds_the_titanic_mode():
    """The helper above, on a problem with another solution at hand."""
    from oracles import models

    x, y = titanic.rows()
    case = cases.Case(None, None, models.generalised_linear([x], [y], models.logistic_residual), 4, 0.1)
    mode, covariance = laplace(case)
    expected_mode, expected_covariance = titanic.mode()
    assert mode == pytest.approx(expected_mode, abs=1e-8)
    assert covariance == pytest.approx(expected_covariance, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("name", ["linear", "logistic"])
def test_chains_start_at_the_mode_or_two_laplace_sds_around_it(name):
    """400 starts: means and covariances within 4.5 standard errors of N(mode, 4 times Laplace's covariance)."""
    case = cases.case(name)
    mode, covariance = laplace(case)
    at_mode = first_draws(case, "mode", chains=2)
    assert at_mode == pytest.approx(np.tile(mode, (2, 1)), abs=1e-5)
    apart = first_draws(case, "dispersed")
    n = len(apart)
    assert np.all(np.abs(apart.mean(axis=0) - mode) < 4.5 * np.sqrt(4 * np.diag(covariance) / n))
    d = np.sqrt(np.diag(covariance))
    error = 4 * np.sqrt((np.outer(d, d) ** 2 + covariance**2) / n)
    assert np.all(np.abs(np.cov(apart.T) - 4 * covariance) < 4.5 * error)


def test_prior_and_array_starts():
    case = cases.case("logistic")
    apart = first_draws(case, "prior")
    assert np.all(np.abs(apart.mean(axis=0)) < 4.5 * 1.5 / np.sqrt(len(apart)))
    assert apart.std(axis=0) == pytest.approx(1.5 * np.ones(case.d), rel=4.5 / np.sqrt(2 * len(apart)))
    rows = np.arange(3 * case.d).reshape(3, case.d).astype(float)
    assert first_draws(case, rows, chains=3) == pytest.approx(rows, abs=1e-5)
    assert first_draws(case, list(rows[1]), chains=3) == pytest.approx(np.tile(rows[1], (3, 1)), abs=1e-5)


@pytest.mark.parametrize("init", ["nowhere", [1.0, 2.0], [np.nan] * 4])
def test_wrong_starts_are_refused(init):
    case = cases.case("logistic")
    with pytest.raises(UserError, match="init"):
        first_draws(case, init, chains=2)


@pytest.mark.parametrize("sampler", [FALD, VRFALDStar])
@pytest.mark.parametrize("name", ["gaussian", "poisson"])
def test_divergence_stops_the_run_and_says_where(name, sampler):
    """A step far beyond 2/L: one exception with client, chain, step and step size, and no result."""
    case = cases.case(name)
    with pytest.raises(Divergence, match=r"client.*chain \d.*step \d+.*step_size = 50"):
        sampling.run(case, sampler(step_size=50.0, comm_prob=0.2), 20_000, chains=2, seed=1, init="mode")
