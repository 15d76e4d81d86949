"""The peers of the benchmark sample the same posterior: a faster wrong sampler would prove nothing."""

from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.statistical,
    pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="needs the sources, not an installed package"),
]

B, D, STEPS, P = 3, 2, 40_000, 0.5


def quadratics():
    """Return precisions, means, the mode, the target's covariance and a step size."""
    random = np.random.default_rng(3)
    factors = random.normal(size=(B, D, D))
    precision = factors @ np.swapaxes(factors, 1, 2) + np.eye(D)
    mean = random.normal(size=(B, D))
    covariance = np.linalg.inv(precision.sum(axis=0))
    mode = covariance @ np.einsum("ijk,ik->j", precision, mean)
    return precision, mean, mode, covariance, 0.1 / float(np.linalg.eigvalsh(precision).max())


def assert_mean(found, gamma, precision, mode, covariance):
    """Compare with VR-FALD*'s exact mean at full gradients, five standard errors.

    X̄ moves like an autoregression with coefficient 1 - γh, h the mean curvature, slowest at the smallest eigenvalue: the
    integrated autocorrelation time is below 2/(γ h_min) iterations.
    """
    time = 2.0 / (gamma * float(np.linalg.eigvalsh(precision.mean(axis=0)).min()))
    error = np.sqrt(np.diag(covariance) * time / STEPS)
    assert np.all(np.abs(found - mode) <= 5.0 * error), (found, mode, error)
    assert np.all(error < 0.1 * np.sqrt(np.diag(covariance)))


@pytest.mark.parametrize("tau", [1.0, 0.0])
@pytest.mark.parametrize("module", ["numpy_loop", "numba_loop"])
def test_loops_have_the_mean_of_the_target(module, tau, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    peer = pytest.importorskip(f"benchmarks.{module}")
    precision, mean, mode, covariance, gamma = quadratics()
    total, count = peer.quadratic(precision, mean, mode + 0.1, gamma, tau, P, P, 1, STEPS, True)
    # averagings are Binomial(STEPS, P), five standard deviations
    assert abs(count - STEPS * P) <= 5.0 * np.sqrt(STEPS * P * (1 - P))
    assert_mean(np.ravel(total) / count, gamma, precision, mode, covariance)


@pytest.mark.parametrize("tau", [1.0, 0.0])
def test_jax_has_the_mean_of_the_target(tau, monkeypatch):
    pytest.importorskip("jax", reason="JAX is in the benchmark's own environment")
    monkeypatch.syspath_prepend(str(ROOT))
    import jax

    from benchmarks import jax_quadratic

    precision, mean, mode, covariance, gamma = quadratics()
    forms = jax_quadratic.variants(precision, mean, mode + 0.1, gamma, tau, P, P, 1, STEPS, True)
    assert len(forms) == 4
    for run in forms.values():
        *_, total, _, count = run(jax.random.key(1, impl=run.generator))
        assert_mean(np.ravel(total) / int(count), gamma, precision, mode, covariance)


def test_logistic_loops_of_numba_and_jax_agree_with_the_mode(monkeypatch):
    """Half a posterior standard deviation: Monte Carlo error and the gap between mode and mean are each below 0.15."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import numba_loop

    random = np.random.default_rng(4)
    rows = random.normal(size=(2, 400, 3))
    labels = (rows @ np.array([1.0, -0.5, 0.0]) + random.logistic(size=(2, 400)) > 0.0).astype(float)
    mode, precision = newton(rows, labels)
    sd = np.sqrt(np.diag(np.linalg.inv(precision)))
    gamma = 0.1 / float(np.linalg.eigvalsh(precision).max())
    total, count = numba_loop.logistic(rows, labels, mode, gamma, 0.5, 0.05, 10, 40_000, True)
    assert np.all(np.abs(total / count - mode) <= 0.5 * sd)
    jax = pytest.importorskip("jax", reason="JAX is in the benchmark's own environment")
    from benchmarks import jax_rows

    for run in jax_rows.variants(rows, labels, mode[:, None], gamma, 0.5, 0.05, 10, 40_000, True).values():
        *_, total, _, count = run(jax.random.key(1, impl=run.generator))
        assert np.all(np.abs(np.ravel(total) / int(count) - mode) <= 0.5 * sd)


def newton(rows, labels):
    """Return the mode with a standard normal prior and the Hessian there."""
    z, y, x = rows.reshape(-1, rows.shape[2]), labels.ravel(), np.zeros(rows.shape[2])
    for _ in range(20):
        p = 1.0 / (1.0 + np.exp(-z @ x))
        hessian = (z * (p * (1 - p))[:, None]).T @ z + np.eye(x.size)
        x = x - np.linalg.solve(hessian, z.T @ (p - y) + x)
    return x, hessian
