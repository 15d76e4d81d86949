"""The Titanic example against its posterior by importance sampling, and what the step size adds to it.

The error of a posterior moment at step size γ has no constant term and grows at least linearly, so an error measured at
16 times the built-in step, where it can be told from Monte Carlo noise, divided by 16 bounds that of the built-in step.
A standard deviation estimated from n effective draws has relative standard error 1/sqrt(2 n).
"""

from functools import cache

import numpy as np
import pytest

from fald_hpc import VRFALDStar, config, execute, sample
from fald_hpc.data import builtin
from fald_hpc.potentials.logistic import Logistic
from oracles import titanic

pytestmark = pytest.mark.statistical


@cache
def reference():
    """Return the reference posterior."""
    return titanic.posterior()


def column(run, key):
    """Return one column of the summary."""
    return np.array([row[key] for row in run.summary()["parameters"]], dtype=float)


@cache
def coarse(times, steps):
    """Run the example at a multiple of its step size, with more chains."""
    settings = config.load("titanic", []).sampler_options
    sampler = VRFALDStar(**{**settings, "step_size": times * settings["step_size"]})
    run = sample(Logistic(), builtin.titanic(), sampler, steps=steps, chains=16, seed=3)
    return run, column(run, "sd") / reference().sd - 1, 1 / np.sqrt(2 * column(run, "ess"))


def test_built_in_rows_are_those_of_the_table():
    x, y = builtin.titanic_rows()
    expected_x, expected_y = titanic.rows()
    order, expected_order = (np.lexsort((*a.T, b)) for a, b in ((x, y), (expected_x, expected_y)))
    assert x[order] == pytest.approx(expected_x[expected_order], abs=1e-13)
    assert np.array_equal(y[order], expected_y[expected_order])


def test_built_in_clients_hold_every_row_once_and_differ():
    parts = builtin.titanic().load(range(10))
    rows = np.concatenate([np.column_stack([p.features, p.target]) for p in parts])
    x, y = titanic.rows()
    expected = np.column_stack([x, y])
    assert np.sort(rows, axis=0) == pytest.approx(np.sort(expected, axis=0), abs=1e-13)
    shares = [p.target.mean() for p in parts]
    assert max(shares) - min(shares) > 0.3


def test_bias_of_the_sds_shrinks_when_the_step_halves():
    """From 16 to 8 times the built-in step the excess of the sds, averaged over parameters, at least halves.

    It is 9 % and 4 %; the averages of four have standard errors of about half a percent.
    """
    _, large, large_error = coarse(16, 25_000)
    _, small, small_error = coarse(8, 30_000)
    error = np.sqrt(np.mean(large_error**2) + np.mean(small_error**2)) / 2
    assert large.mean() > 8 * error
    assert large.mean() - small.mean() > 4 * error
    assert small.mean() < large.mean() / 2 + 4 * error


def test_built_in_step_leaves_the_sds_within_3_percent():
    """By extrapolation from 16 and 8 times the step: (excess + 4 standard errors) / multiple is below 1.5 %."""
    for times, steps in ((16, 25_000), (8, 30_000)):
        _, excess, error = coarse(times, steps)
        assert np.max(np.abs(excess) + 4 * error) / times < 0.015


def check_example(run):
    """Compare a run at the built-in step with the reference."""
    far, _, _ = coarse(16, 25_000)
    bias = (np.abs(far.mean - reference().mean) + 4 * column(far, "mcse")) / 16
    mcse = column(run, "mcse")
    assert np.all(bias < 0.01 * reference().sd)
    assert np.all(np.abs(run.mean - reference().mean) < 4 * mcse + bias + 4 * reference().mean_error)
    assert np.all(np.abs(run.sd / reference().sd - 1) < 0.03)
    assert np.all(column(run, "r_hat") < 1.02)
    return mcse


def test_built_in_example():
    """Half as many steps as built in: means within 4 MCSE plus the bounded bias, sds within 3 %.

    The sds' own standard error is 1.2 %: what makes 3 % hold is the test above, what makes it hold here is the seed.
    """
    run = execute.execute(config.load("titanic", ["run.steps=500000"]), None)
    mcse = check_example(run)
    assert np.all(mcse < 0.03 * reference().sd)


@pytest.mark.long
def test_built_in_example_at_length():
    """With 16 chains of 10^6 steps the 3 % are more than four standard errors of the sds away from their bias."""
    run = execute.execute(config.load("titanic", ["run.chains=16"]), None)
    check_example(run)
    assert np.all(1 / np.sqrt(2 * column(run, "ess")) < 0.0065)
