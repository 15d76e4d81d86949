"""Paths of every sampler against the transcription fed the same draws (specification, section 3 item 4).

The tolerance is 1e-12 of the largest parameter on the path: the two differ in the order of their sums and in shortcuts
such as kept residuals, a few units in the last place a step, which the drift contracts.
"""

import numpy as np
import pytest
from problems import cases, sampling
from problems.draws import CounterDraws

from fald_hpc import FALD, Clients, Gaussian, VRFALDStar
from oracles import models
from oracles import transcription as tr

SEED = 42
TOLERANCE = 1e-12


def start(case):
    """Return a starting point away from the mode."""
    return np.random.default_rng(5).standard_normal(case.d)


def transcribed(case, sampler, steps, chain, shared, fault=None):
    """Run the transcription of one chain."""
    variance_reduced = isinstance(sampler, VRFALDStar)
    batch = None if sampler.batch_size == "full" else sampler.batch_size
    q = sampler.refresh_prob if variance_reduced else 1.0
    return tr.run(
        case.model,
        start(case),
        steps,
        CounterDraws(SEED, chain, case.model.rows, case.d, sampler.comm_prob, q, batch, shared),
        step_size=sampler.step_size,
        noise_sharing=sampler.noise_sharing,
        variance_reduced=variance_reduced,
        fault=fault,
    )


def distance(got, path, every_step=False, records=None):
    """Return the largest difference of the first records (default: all), relative to the largest parameter."""
    expected = path.means if every_step else path.means[path.averaged]
    expected = expected[:records]
    assert got.shape == expected.shape
    assert np.all(np.isfinite(got))
    return np.max(np.abs(got - expected)) / np.max(np.abs(expected))


def samplers(case):
    """Return the settings that a problem is run with: both samplers, full gradients and minibatches."""
    common = dict(step_size=case.step_size, comm_prob=0.15)
    found = {
        "fald": FALD(**common, noise_sharing=0.3),
        "fald-common-noise": FALD(**common, noise_sharing=1.0),
        "vr": VRFALDStar(**common, refresh_prob=0.1, noise_sharing=0.3),
        "vr-frequent-refresh": VRFALDStar(**common, refresh_prob=0.5, noise_sharing=0.0),
    }
    if case.potential.takes_rows:
        found["fald-minibatch"] = FALD(**common, noise_sharing=0.3, batch_size=2)
        found["vr-minibatch"] = VRFALDStar(**common, refresh_prob=0.1, noise_sharing=0.3, batch_size=2)
        found["vr-one-row"] = VRFALDStar(**common, refresh_prob=0.3, noise_sharing=1.0, batch_size=1)
        found["vr-most-rows"] = VRFALDStar(**common, refresh_prob=0.1, noise_sharing=0.0, batch_size=7)
    return found


CONFIGURATIONS = [(name, label, "shared") for name in cases.NAMES for label in samplers(cases.case(name))]
CONFIGURATIONS += [
    (name, label, "independent") for name in ("gaussian", "logistic") for label in samplers(cases.case(name))
]


@pytest.mark.parametrize(("name", "label", "schedule"), CONFIGURATIONS)
def test_path_equals_the_transcription(name, label, schedule):
    """2000 steps of two chains, the second of which is compared, at every communication time.

    With coins of their own, the draws end where the chain with fewer averagings ends.
    """
    case = cases.case(name)
    sampler = samplers(case)[label]
    steps = 2000
    run = sampling.run(case, sampler, steps, chains=2, seed=SEED, burn_in=0, init=start(case), schedule=schedule)
    shared = schedule == "shared"
    path = transcribed(case, sampler, steps, 1, shared)
    other = CounterDraws(SEED, 0, case.model.rows, case.d, sampler.comm_prob, shared=shared)
    records = min(int(path.averaged.sum()), sum(other.averaging(k) for k in range(steps)))
    assert distance(sampling.draws(run)[1], path, records=records) < TOLERANCE


@pytest.mark.parametrize("label", ["fald-minibatch", "vr-minibatch"])
def test_path_recorded_at_every_step(label):
    """Between communications too: 6000 steps."""
    case = cases.case("logistic")
    sampler = samplers(case)[label]
    run = sampling.run(case, sampler, 6000, chains=1, seed=SEED, burn_in=0, init=start(case), record="every-step")
    assert distance(sampling.draws(run)[0], transcribed(case, sampler, 6000, 0, True), every_step=True) < TOLERANCE


@pytest.mark.parametrize("fault", tr.FAULTS)
def test_every_fault_leaves_the_path(fault):
    """Negative control: the comparison above sees each wrong sampler from afar (at 10^6 times the tolerance)."""
    case = cases.case("logistic")
    sampler = samplers(case)["vr-minibatch"]
    run = sampling.run(case, sampler, 1000, chains=1, seed=SEED, burn_in=0, init=start(case))
    got = sampling.draws(run)[0]
    assert distance(got, transcribed(case, sampler, 1000, 0, True)) < TOLERANCE
    with np.errstate(over="ignore", invalid="ignore"):
        wrong = transcribed(case, sampler, 1000, 0, True, fault=fault)
    expected = wrong.means[wrong.averaged]
    assert not np.max(np.abs(got - expected)) / np.max(np.abs(got)) < 1e6 * TOLERANCE


def test_another_seed_gives_another_path():
    case = cases.case("gaussian")
    sampler = samplers(case)["vr"]
    a, b = (
        sampling.draws(sampling.run(case, sampler, 200, chains=1, seed=s, burn_in=0, init=start(case)))[0]
        for s in (SEED, SEED + 1)
    )
    assert a.shape != b.shape or not np.array_equal(a, b)


def test_windows_widen_and_the_path_stays_right():
    """Chains that start at 1e-12 and travel to 1e6 leave their windows: messages are repeated, nothing is lost."""
    means, precisions = np.full((3, 2), 1e6) + np.arange(6).reshape(3, 2), np.array([np.eye(2)] * 3)
    clients = Clients.from_gaussians(means, precisions=precisions)
    case = cases.Case(Gaussian(), clients, models.gaussian(means, precisions), 2, 0.01)
    first = np.full(2, 1e-12)
    sampler = VRFALDStar(step_size=0.01, comm_prob=0.15, refresh_prob=0.1, noise_sharing=0.3)
    run = sampling.run(case, sampler, 1500, chains=1, seed=SEED, burn_in=0, init=first)
    assert run.messages["repeated"] > 0
    draws = CounterDraws(SEED, 0, [1] * 3, 2, 0.15, 0.1)
    path = tr.run(case.model, first, 1500, draws, step_size=0.01, noise_sharing=0.3, variance_reduced=True)
    got = sampling.draws(run)[0]
    expected = path.means[path.averaged]
    # relative to each value: the early, small part of the path too
    assert got == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("label", ["fald-minibatch", "vr-minibatch"])
@pytest.mark.parametrize("schedule", ["shared", "independent"])
def test_a_chain_alone_is_the_same_among_sixteen(label, schedule):
    """To the last bit, since what a kernel computes may not depend on how many chains are local."""
    case = cases.case("logistic")
    sampler = samplers(case)[label]
    alone, among = (
        sampling.draws(
            sampling.run(case, sampler, 1500, chains=n, seed=SEED, burn_in=0, init=start(case), schedule=schedule)
        )[0]
        for n in (1, 16)
    )
    shortest = min(len(alone), len(among))
    assert shortest > 100
    assert np.array_equal(alone[:shortest], among[:shortest])


@pytest.mark.parametrize("schedule", ["shared", "independent"])
@pytest.mark.parametrize("record", ["communication", "every-step"])
def test_segment_length_does_not_show(schedule, record):
    """Segments of 7 and of 10^5 steps: draws, means and covariances are the same bits."""
    case = cases.case("logistic")
    runs = [
        sampling.run(
            case,
            samplers(case)["vr-minibatch"],
            3000,
            chains=3,
            seed=SEED,
            schedule=schedule,
            record=record,
            segment_steps=length,
        )
        for length in (7, 100_000)
    ]
    assert np.array_equal(np.asarray(runs[0].draws), np.asarray(runs[1].draws))
    assert np.array_equal(runs[0].mean, runs[1].mean)
    assert np.array_equal(runs[0].covariance, runs[1].covariance)
