"""``step_size = "auto"``: the exact standard deviations at the chosen step, by the oracle, within 5 % of the posterior's."""

import numpy as np
import pytest

from fald_hpc import FALD, Clients, Gaussian, Linear, VRFALDStar, step_size
from fald_hpc.chains import Schedule
from fald_hpc.comm import Serial
from fald_hpc.study import Request, prepare
from tests.oracles import moments, quadratics, recursions

SAMPLERS = [FALD, VRFALDStar]


def chosen(potential, clients, sampler) -> float:
    """Return the step that a run would take."""
    request = Request(potential, clients, sampler, 10, 1, 1, Schedule())
    return float(prepare(request, Serial()).sampler.step_size)


def settings(rng: np.random.Generator, cls) -> dict[str, float]:
    """Return random p_c, q_c and τ over the ranges that the samplers take."""
    keys = {"comm_prob": float(np.exp(rng.uniform(np.log(0.05), 0.0))), "noise_sharing": float(rng.choice([0.0, 0.3, 1.0]))}
    if cls is VRFALDStar:
        keys["refresh_prob"] = float(np.exp(rng.uniform(np.log(0.05), 0.0)))
    return keys


def stationary_sds(cls, clients, gamma: float, keys: dict[str, float]) -> np.ndarray:
    """Return the exact stationary standard deviations of the average over clients."""
    if cls is FALD:
        recursion = recursions.fald(clients, gamma, keys["comm_prob"], keys["noise_sharing"])
    else:
        recursion = recursions.vr_fald_star(
            clients, gamma, keys["comm_prob"], keys["refresh_prob"], keys["noise_sharing"]
        )
    return np.sqrt(np.diag(moments.stationary(recursion).covariance))


@pytest.mark.parametrize("cls", SAMPLERS)
def test_random_quadratics(cls):
    """40 random quadratics, half of them with curvatures of clients spread over two orders of magnitude."""
    rng = np.random.default_rng(7)
    for trial in range(40):
        b, d = int(rng.integers(1, 8)), int(rng.integers(1, 5))
        means, precisions = quadratics.random_clients(rng, b, d, float(rng.choice([0.3, 1.0, 3.0])))
        if trial % 2:
            precisions *= 10.0 ** rng.uniform(-1.0, 1.0, (b, 1, 1))
        keys = settings(rng, cls)
        gamma = chosen(Gaussian(), Clients.from_gaussians(means, precisions=precisions), cls(**keys))
        sds = stationary_sds(cls, quadratics.gaussian(means, precisions), gamma, keys)
        exact = np.sqrt(np.diag(np.linalg.inv(np.sum(precisions, axis=0))))
        assert np.abs(sds / exact - 1.0).max() < 0.05, (b, d, keys, gamma)


@pytest.mark.parametrize("cls", SAMPLERS)
def test_minibatch_regressions(cls):
    """Linear regressions of few rows with every minibatch enumerated: the minibatch noise is in the exact sds."""
    rng = np.random.default_rng(11)
    for _ in range(6):
        b, d, n, batch = int(rng.integers(1, 4)), int(rng.integers(1, 3)), 4, int(rng.integers(1, 4))
        truth = rng.standard_normal(d)
        rows = []
        for _ in range(b):
            x = rng.standard_normal((n, d))
            rows.append((x, x @ truth + rng.standard_normal(n)))
        keys = settings(rng, cls)
        gamma = chosen(Linear(), Clients.from_arrays(rows), cls(batch_size=batch, **keys))
        clients = quadratics.regression(rows, 1.0, 1.0, batch)
        sds = stationary_sds(cls, clients, gamma, keys)
        exact = np.sqrt(np.diag(quadratics.target(clients)[1]))
        assert np.abs(sds / exact - 1.0).max() < 0.05, (b, d, batch, keys, gamma)


def test_rounding_down():
    """Two significant digits, never up, whole powers of ten kept."""
    assert step_size.round_down(0.0123999) == 0.012
    assert step_size.round_down(1.0) == 1.0
    assert step_size.round_down(9.99e-5) == 9.9e-5
    for value in np.random.default_rng(0).lognormal(0.0, 20.0, 1000):
        rounded = step_size.round_down(float(value))
        assert 0.9 * value < rounded <= value * (1 + 1e-11)
