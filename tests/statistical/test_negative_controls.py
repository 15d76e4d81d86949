"""What must be caught is caught: the biased sampler, and samplers that are wrong on purpose (section 3 item 5).

A wrong sampler is the transcription with a fault, run on NumPy's own random numbers; the check that it has to fail is
the one that the package passes (``problems.agreement``). Faults that hardly move moments, the refresh from values
after the step among them, are caught by ``test_trajectories.test_every_fault_leaves_the_path``.
"""

import numpy as np
import pytest
from problems import agreement, sampling
from problems.cases import Case

from fald_hpc import FALD, Gaussian, VRFALDStar
from fald_hpc.data.clients import Clients
from oracles import models, moments, quadratics, recursions
from oracles import transcription as tr

pytestmark = pytest.mark.statistical

STEP, COMM, REFRESH, TAU = 0.1, 0.2, 0.2, 1.0
MEANS, PRECISIONS = quadratics.random_clients(np.random.default_rng(11), 3, 2, 2.0)
CLIENTS = quadratics.gaussian(MEANS, PRECISIONS)
CASE = Case(Gaussian(), Clients.from_gaussians(MEANS, precisions=PRECISIONS), None, 2, STEP)


class Numpy:
    """Draws of many chains from a NumPy generator, coins shared."""

    def __init__(self, seed, chains, d, p, q, rows=None):
        self.rng = np.random.default_rng(seed)
        self.shape, self.p, self.q, self.rows = (chains, d), p, q, rows

    def common(self, k):
        return self.rng.standard_normal(self.shape)

    def private(self, client, k):
        return self.rng.standard_normal(self.shape)

    def subset(self, client, k, again=0):
        return np.arange(1) if self.rows is None else self.rng.integers(0, self.rows[client], 1)

    def averaging(self, k):
        return np.broadcast_to(self.rng.random() < self.p, self.shape[:1])

    def refresh(self, k):
        return np.broadcast_to(self.rng.random() < self.q, self.shape[:1])


def transcribed(variance_reduced, fault):
    """Return the records of 64 chains of a transcription, after a burn-in."""
    chains, steps, burn = 64, 6000, 500
    path = tr.run(
        models.gaussian(MEANS, PRECISIONS),
        np.tile(quadratics.target(CLIENTS)[0], (chains, 1)),
        steps,
        Numpy(4, chains, 2, COMM, REFRESH),
        step_size=STEP,
        noise_sharing=TAU,
        variance_reduced=variance_reduced,
        fault=fault,
        mean=lambda stack: stack.mean(axis=0),
    )
    kept = path.means[burn:][path.averaged[burn:, 0]]
    return list(np.moveaxis(kept, 1, 0))


@pytest.mark.parametrize("variance_reduced", [False, True])
def test_the_check_accepts_the_right_transcription(variance_reduced):
    if variance_reduced:
        right = recursions.vr_fald_star(CLIENTS, STEP, COMM, REFRESH, TAU)
    else:
        right = recursions.fald(CLIENTS, STEP, COMM, TAU)
    agreement.check(transcribed(variance_reduced, None), right, shared=True)


@pytest.mark.parametrize("fault", ["printed_noise", "wrong_sign"])
def test_moments_catch_a_wrong_variance_reduced_sampler(fault):
    right = recursions.vr_fald_star(CLIENTS, STEP, COMM, REFRESH, TAU)
    with pytest.raises(AssertionError, match=r"off by|fluctuates"):
        agreement.check(transcribed(True, fault), right, shared=True)


def test_moments_catch_the_printed_noise_in_fald():
    right = recursions.fald(CLIENTS, STEP, COMM, TAU)
    found = agreement.compare(transcribed(False, "printed_noise"), right, shared=True)
    assert np.max(found.covariance) > 20


def test_moments_catch_weights_by_sample_size():
    """FedAvg's weights sample another posterior; clients of 1, 1 and 8 rows, as sums of as many Gaussian terms."""
    clients = CLIENTS
    right = moments.stationary(recursions.fald(clients, STEP, COMM, TAU))
    weighted = moments.stationary(recursions.fald(clients, STEP, COMM, TAU, weights=np.array([1.0, 1.0, 8.0])))
    case_steps = 20_000
    run = sampling.run(
        CASE, FALD(step_size=STEP, comm_prob=COMM, noise_sharing=TAU), case_steps, chains=64, burn_in=500, init="mode"
    )
    draws = sampling.draws(run)
    agreement.check(draws, recursions.fald(clients, STEP, COMM, TAU), shared=True)
    gap = np.max(np.abs(weighted.mean - right.mean))
    error = np.max(np.abs(np.mean([x.mean(axis=0) for x in draws], axis=0) - right.mean))
    assert error < 0.05 * gap


def test_moments_catch_a_minibatch_drawn_twice():
    """Linear regression on tiny clients whose minibatches can be enumerated: exact moments of right and wrong.

    The package agrees with the right ones; the wrong ones lie far outside its tolerance.
    """
    from fald_hpc.potentials.linear import Linear

    rng = np.random.default_rng(8)
    rows = [(rng.standard_normal((n, 1)) + 1, rng.standard_normal(n)) for n in (4, 3)]
    clients = quadratics.regression(rows, 1.0, 1.0, batch=1)
    arguments = (clients, 0.1, 0.3, 0.3, 0.5)
    right = recursions.vr_fald_star(*arguments)
    wrong = recursions.vr_fald_star(*arguments, two_minibatches=True)
    case = Case(Linear(), Clients.from_arrays(rows), None, 1, 0.1)
    sampler = VRFALDStar(step_size=0.1, comm_prob=0.3, refresh_prob=0.3, noise_sharing=0.5, batch_size=1)
    run = sampling.run(case, sampler, 20_000, chains=64, seed=2, burn_in=500, init="mode")
    draws = sampling.draws(run)
    agreement.check(draws, right, shared=True)
    found = agreement.compare(draws, wrong, shared=True)
    assert np.max(np.abs(found.covariance)) > 3 * agreement.LIMIT


def test_fald_misses_the_mean_by_the_predicted_bias_and_vr_fald_star_does_not():
    """The bias is above 20 standard errors for FALD, found to within 4.5; VR-FALD* is within 4.5 of the mode."""
    steps, chains = 20_000, 64
    fald = FALD(step_size=STEP, comm_prob=COMM, noise_sharing=TAU)
    vr = VRFALDStar(step_size=STEP, comm_prob=COMM, refresh_prob=REFRESH, noise_sharing=TAU)
    options = dict(chains=chains, seed=6, burn_in=500, init="mode", schedule="independent")
    biased = sampling.draws(sampling.run(CASE, fald, steps, **options))
    found = agreement.check(biased, recursions.fald(CLIENTS, STEP, COMM, TAU), shared=False)
    assert np.max(np.abs(found.bias)) > 20
    exact = sampling.draws(sampling.run(CASE, vr, steps, **options))
    found = agreement.check(exact, recursions.vr_fald_star(CLIENTS, STEP, COMM, REFRESH, TAU), shared=False)
    assert np.max(np.abs(found.bias)) < 1e-6
