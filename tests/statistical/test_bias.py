"""``fald bias`` against the exact moments of the samplers, and its Monte Carlo errors against replications."""

import numpy as np
import pytest

from fald_hpc import bias, config
from fald_hpc.metrics.spread import sd_error
from oracles import moments, quadratics, recursions

pytestmark = pytest.mark.statistical

LIMIT = 4.0
COMM, TAU = 0.3, 1.0


def gaussian_config(folder, step_size: float, steps: int, **sampler):
    """Write three clients with different curvatures to a folder; return the config, and the clients for the oracle."""
    means, precisions = quadratics.random_clients(np.random.default_rng(4), 3, 2, 2.0)
    precisions = precisions * np.array([0.3, 1.0, 3.0])[:, None, None]
    for i, (mean, precision) in enumerate(zip(means, precisions, strict=True)):
        np.savez(folder / f"client-{i}.npz", mean=mean, precision=precision)
    tables = {
        "target": {"potential": "gaussian"},
        "data": {"folder": str(folder)},
        "sampler": {"step_size": step_size, "comm_prob": COMM, "noise_sharing": TAU, **sampler},
        "run": {"steps": steps, "chains": 16, "seed": 3},
    }
    return config.from_dict(tables), quadratics.gaussian(means, precisions)


def oracle(clients, name: str, step_size: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact stationary means and standard deviations of a sampler."""
    if name == "fald":
        recursion = recursions.fald(clients, step_size, COMM, TAU)
    else:
        recursion = recursions.vr_fald_star(clients, step_size, COMM, COMM, TAU)
    found = moments.stationary(recursion)
    return found.mean, np.sqrt(np.diag(found.covariance))


def test_bias_of_fald_agrees_with_the_oracle(tmp_path):
    """The mean is off by more than five errors; Richardson's remainder, by the oracle, is below half an error."""
    gamma = 0.014
    settings, clients = gaussian_config(tmp_path, gamma, 200_000, name="fald")
    found = bias.measure(settings)
    assert found is not None
    centre, covariance = quadratics.target(clients)
    true_sd = np.sqrt(np.diag(covariance))
    (mean, sd), (mean_half, sd_half) = oracle(clients, "fald", gamma), oracle(clients, "fald", gamma / 2)
    richardson, direct = found.richardson, found.against_exact
    assert direct is not None

    np.testing.assert_allclose(found.exact.mean, centre, rtol=1e-12)
    np.testing.assert_allclose(found.exact.sd, true_sd, rtol=1e-12)
    assert np.all(np.abs(richardson.mean - 2 * (mean - mean_half)) < LIMIT * richardson.mean_error)
    assert np.all(np.abs(richardson.sd - 2 * (sd - sd_half)) < LIMIT * richardson.sd_error)
    assert np.all(np.abs(direct.mean - (mean - centre)) < LIMIT * direct.mean_error)
    assert np.all(np.abs(direct.sd - (sd - true_sd)) < LIMIT * direct.sd_error)
    # the first order leads, so that the number is the bias and not only 2 (est - est)
    assert np.all(np.abs(2 * (mean - mean_half) - (mean - centre)) < 0.5 * richardson.mean_error)
    assert np.all(np.abs(2 * (sd - sd_half) - (sd - true_sd)) < 0.5 * richardson.sd_error)
    assert np.max(np.abs(richardson.mean) / richardson.mean_error) > 5


def test_vr_fald_star_with_full_gradients_has_no_bias_of_the_mean(tmp_path):
    gamma = 0.05
    settings, clients = gaussian_config(tmp_path, gamma, 100_000, name="vr_fald_star")
    found = bias.measure(settings)
    assert found is not None
    centre, covariance = quadratics.target(clients)
    mean, sd = oracle(clients, "vr_fald_star", gamma)
    np.testing.assert_allclose(mean, centre, atol=1e-9)
    for kind in (found.richardson, found.against_exact):
        assert np.all(np.abs(kind.mean) < LIMIT * kind.mean_error)
    direct = found.against_exact
    assert np.all(np.abs(direct.sd - (sd - np.sqrt(np.diag(covariance)))) < LIMIT * direct.sd_error)


def test_exact_posterior_of_a_standardised_regression(tmp_path):
    """Conjugate formula in the standardised features, an intercept among them, undone as the results are."""
    rng = np.random.default_rng(5)
    sizes, noise, prior = (30, 50, 7), 0.5, 2.0
    rows = [(3.0 + 2.0 * rng.standard_normal((n, 2)), rng.standard_normal(n)) for n in sizes]
    for i, (x, y) in enumerate(rows):
        np.savez(tmp_path / f"site-{i}.npz", X=x, y=y)
    tables = {
        "target": {"potential": "linear", "noise_sd": noise, "prior_scale": prior, "intercept": True},
        "data": {"folder": str(tmp_path), "standardise": True},
        "sampler": {"step_size": 1e-3},
        "run": {"steps": 400, "chains": 2},
    }
    found = bias.measure(config.from_dict(tables))
    x, y = np.concatenate([x for x, _ in rows]), np.concatenate([y for _, y in rows])
    shift, scale = x.mean(axis=0), x.std(axis=0)
    z = np.column_stack([(x - shift) / scale, np.ones(len(x))])
    covariance = np.linalg.inv(z.T @ z / noise**2 + np.eye(3) / prior**2)
    undo = np.array([[1 / scale[0], 0, 0], [0, 1 / scale[1], 0], [*(-shift / scale), 1]])
    np.testing.assert_allclose(found.exact.mean, undo @ covariance @ z.T @ y / noise**2, rtol=1e-9)
    np.testing.assert_allclose(found.exact.sd, np.sqrt(np.diag(undo @ covariance @ undo.T)), rtol=1e-9)


def test_error_of_an_sd_is_that_of_replications():
    """AR(1) with coefficient 0.8: the error of the sd over 400 replications, known to 1/sqrt(800), within 4 of that."""
    rng = np.random.default_rng(6)
    chains, n, rho, replications = 2, 2000, 0.8, 400
    x = np.empty((replications, chains, n))
    x[:, :, 0] = rng.standard_normal((replications, chains))
    noise = np.sqrt(1 - rho**2) * rng.standard_normal((replications, chains, n))
    for t in range(1, n):
        x[:, :, t] = rho * x[:, :, t - 1] + noise[:, :, t]
    told = np.sqrt(np.mean([sd_error(draws[:, :, None])[0] ** 2 for draws in x]))
    true = np.std([draws.std() for draws in x])
    assert abs(told / true - 1) < 4 / np.sqrt(2 * replications)


def test_too_few_draws_give_no_error():
    assert np.isnan(sd_error(np.random.default_rng(1).standard_normal((4, 20, 1)))).all()
    assert np.isnan(sd_error(np.ones((4, 1000, 1)))).all()
