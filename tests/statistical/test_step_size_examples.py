"""``step_size = "auto"`` on the built-in examples: standard deviations within 5 % of the posterior's."""

import numpy as np
import pytest

from fald_hpc import FALD, Gaussian, Linear, Logistic, VRFALDStar, sample
from fald_hpc.chains import Schedule
from fald_hpc.comm import Serial
from fald_hpc.data import builtin
from fald_hpc.study import Request, prepare
from tests.oracles import moments, quadratics, recursions, titanic


def automatic(potential, clients, sampler) -> float:
    """Return the step that a run would take."""
    return float(prepare(Request(potential, clients, sampler, 10, 1, 1, Schedule()), Serial()).sampler.step_size)


@pytest.mark.parametrize("sampler", [FALD(comm_prob=0.2), VRFALDStar(comm_prob=0.2, refresh_prob=0.2)], ids=["fald", "vr"])
@pytest.mark.parametrize(("example", "blocks"), [("gaussian", (0, 1)), ("gaussian-table1", (0, 9))])
def test_gaussian_examples(example, blocks, sampler):
    """The clients are made of blocks of two parameters: the exact sds of some blocks at the step for all of them."""
    clients = builtin.EXAMPLES[example]()
    gamma = automatic(Gaussian(), clients, sampler)
    loaded = clients.load(range(len(clients)))
    for block in blocks:
        here = slice(2 * block, 2 * block + 2)
        means = np.array([c.mean[here] for c in loaded])
        precisions = np.array([c.precision[here, here] for c in loaded])
        assert all(not np.any(c.precision[here, here.stop :]) for c in loaded)
        parts = quadratics.gaussian(means, precisions)
        if isinstance(sampler, VRFALDStar):
            recursion = recursions.vr_fald_star(parts, gamma, sampler.comm_prob, sampler.refresh_prob, 1.0)
        else:
            recursion = recursions.fald(parts, gamma, sampler.comm_prob, 1.0)
        sds = np.sqrt(np.diag(moments.stationary(recursion).covariance))
        exact = np.sqrt(np.diag(quadratics.target(parts)[1]))
        assert np.abs(sds / exact - 1.0).max() < 0.05


def test_quickstart_regression():
    """Against the conjugate posterior."""
    clients = builtin.EXAMPLES["quickstart-regression"]()
    potential = Linear(noise_sd=0.5, prior_scale=10.0, intercept=True)
    rows = [(np.column_stack([c.features, np.ones(len(c.target))]), c.target) for c in clients.load(range(len(clients)))]
    exact = np.sqrt(np.diag(quadratics.target(quadratics.regression(rows, 0.5, 10.0))[1]))
    sampler = VRFALDStar(comm_prob=0.1, refresh_prob=0.1, batch_size=10)
    check(sample(potential, clients, sampler, steps=400_000, seed=2), exact)


def test_titanic():
    """Against importance sampling."""
    sampler = VRFALDStar(comm_prob=0.05, refresh_prob=0.05, batch_size=10)
    run = sample(Logistic(), builtin.EXAMPLES["titanic"](), sampler, steps=400_000, seed=2)
    check(run, np.asarray(titanic.posterior().sd))


def check(run, exact: np.ndarray) -> None:
    """Compare sds; an estimated one has a relative error of about 1/sqrt(2 ESS), and four of them must fit in 5 %."""
    ess = np.array([row["ess"] for row in run.summary()["parameters"]])
    assert ess.min() > 3200  # 1/sqrt(2 * 3200) = 1.25 %, so an sd that is exact stays inside 5 % at four errors
    assert np.abs(run.sd / exact - 1.0).max() < 0.05
