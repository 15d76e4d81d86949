"""One client that averages always: FALD is SGLD and LSD, VR-FALD* is SVRG-LD (specification, section 4).

The recursions are written out here in the usual form of those samplers, not taken from the transcription. With b = 1
the noise √τ Z + √(1-τ) Z¹ is one standard normal vector for any τ.
"""

import numpy as np
import pytest
from problems import sampling
from problems.cases import Case
from problems.draws import CounterDraws

from fald_hpc import FALD, VRFALDStar
from fald_hpc.data.clients import Clients
from fald_hpc.potentials.logistic import Logistic

N, D, STEP, STEPS, SEED = 12, 3, 0.05, 3000, 9


def pooled():
    """Return one client with twelve rows, and its data."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((N, D))
    y = rng.integers(0, 2, N).astype(float)
    return Case(Logistic(), Clients.from_arrays([(x, y)]), None, D, STEP), x, y


def gradient(x, y, theta, rows):
    """Return the estimate of the pooled gradient from some rows, with the prior N(0, I)."""
    p = 1 / (1 + np.exp(-x[rows] @ theta))
    return theta + N / len(rows) * x[rows].T @ (p - y[rows])


def noise(draws, tau, k):
    """Return the standard normal of a step."""
    return np.sqrt(tau) * draws.common(k) + np.sqrt(1 - tau) * draws.private(0, k)


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("batch", [3, "full"])
def test_fald_is_sgld_and_with_full_gradients_lsd(tau, batch):
    case, x, y = pooled()
    sampler = FALD(step_size=STEP, comm_prob=1.0, noise_sharing=tau, batch_size=batch)
    run = sampling.run(case, sampler, STEPS, chains=1, seed=SEED, burn_in=0, init=np.zeros(D))
    draws = CounterDraws(SEED, 0, [N], D, 1.0, batch=None if batch == "full" else batch)
    theta, path = np.zeros(D), []
    for k in range(STEPS):
        theta = theta - STEP * gradient(x, y, theta, draws.subset(0, k)) + np.sqrt(2 * STEP) * noise(draws, tau, k)
        path.append(theta)
    assert sampling.draws(run)[0] == pytest.approx(np.array(path), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
def test_vr_fald_star_is_svrg_ld(tau):
    """The anchor is the state before the step at which the refresh coin fires."""
    case, x, y = pooled()
    q = 0.1
    sampler = VRFALDStar(step_size=STEP, comm_prob=1.0, refresh_prob=q, noise_sharing=tau, batch_size=3)
    run = sampling.run(case, sampler, STEPS, chains=1, seed=SEED, burn_in=0, init=np.zeros(D))
    draws = CounterDraws(SEED, 0, [N], D, 1.0, q, batch=3)
    every = np.arange(N)
    theta = anchor = np.zeros(D)
    at_anchor, path = gradient(x, y, anchor, every), []
    for k in range(STEPS):
        rows = draws.subset(0, k)
        g = gradient(x, y, theta, rows) - gradient(x, y, anchor, rows) + at_anchor
        new = theta - STEP * g + np.sqrt(2 * STEP) * noise(draws, tau, k)
        if draws.refresh(k):
            anchor, at_anchor = theta, gradient(x, y, theta, every)
        theta = new
        path.append(theta)
    assert sampling.draws(run)[0] == pytest.approx(np.array(path), rel=1e-12, abs=1e-12)
