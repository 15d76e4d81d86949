"""Portable elementary functions against extended precision, and the same bits alone as in a vectorised loop."""

import numpy as np
import pytest

from fald_hpc.kernels import elementary
from fald_hpc.kernels.jit import jit

LONG = np.longdouble
PI = np.arccos(LONG(-1))


def each(function, x):
    """Values one by one."""
    return np.array([function(v) for v in x])


def relative(got, expected):
    """Largest relative error."""
    return float(np.max(np.abs((got.astype(LONG) - expected) / expected)))


def spread(low, high, n=20_000, seed=0):
    """Random arguments, uniform between two ends."""
    return np.random.default_rng(seed).uniform(low, high, n)


@pytest.mark.parametrize(("low", "high"), [(-700, 709), (-40, 40), (-1, 1), (-1e-8, 1e-8)])
def test_exp(low, high):
    x = spread(low, high)
    assert relative(each(elementary.exp, x), np.exp(x.astype(LONG))) < 1e-15


def test_exp_at_its_ends():
    assert elementary.exp(0.0) == 1.0
    assert elementary.exp(-0.0) == 1.0
    assert elementary.exp(np.inf) == np.inf
    assert elementary.exp(-np.inf) == 0.0
    assert elementary.exp(-800.0) == 0.0
    assert elementary.exp(710.0) == np.inf
    assert 0 < elementary.exp(-707.9) < 1e-307
    assert 1e308 < elementary.exp(709.7) < np.inf
    assert np.isnan(elementary.exp(np.nan))


@pytest.mark.parametrize(("low", "high"), [(-300, 300), (-1, 1), (-1e-3, 1e-3)])
def test_log(low, high):
    """Relative to max(|log x|, 1e-13) near 1; elsewhere relative."""
    x = 10.0 ** spread(low, high)
    got, expected = each(elementary.log, x).astype(LONG), np.log(x.astype(LONG))
    assert float(np.max(np.abs(got - expected) / np.maximum(np.abs(expected), LONG(1e-13)))) < 1e-15
    assert elementary.log(1.0) == 0.0
    assert elementary.log(2.0**-53) == pytest.approx(-53 * np.log(2), rel=1e-15)


def test_cosine_and_sine_of_a_turn():
    words = np.random.default_rng(1).integers(0, 2**64, 20_000, dtype=np.uint64)
    ends = [0, 1, 2**60, 2**61 - 1, 2**61, 2**62, 2**62 + 2**61, 2**63 - 1, 2**63, 3 * 2**62, 2**64 - 1]
    words = np.concatenate([np.array(ends, dtype=np.uint64), words])
    got = np.array([elementary.cos_sin_turn(w) for w in words])
    angle = 2 * PI * (words.astype(LONG) / LONG(2) ** 64)
    assert float(np.max(np.abs(got[:, 0] - np.cos(angle)))) < 1e-15
    assert float(np.max(np.abs(got[:, 1] - np.sin(angle)))) < 1e-15
    assert np.max(np.abs(np.hypot(got[:, 0], got[:, 1]) - 1)) < 1e-15


def test_sigmoid():
    x = np.concatenate([spread(-700, 700), spread(-30, 30), spread(-1e-6, 1e-6)])
    expected = 1 / (1 + np.exp(-x.astype(LONG)))
    assert relative(each(elementary.sigmoid, x), expected) < 1e-15
    assert elementary.sigmoid(0.0) == 0.5
    assert elementary.sigmoid(1e5) == 1.0
    assert elementary.sigmoid(-1e5) == 0.0
    assert elementary.sigmoid(np.inf) == 1.0
    assert elementary.sigmoid(-np.inf) == 0.0
    assert np.isnan(elementary.sigmoid(np.nan))


def test_log1p_exp():
    x = np.concatenate([spread(-600, 600), spread(-30, 30), spread(-1e-6, 1e-6)])
    expected = np.log1p(np.exp(x.astype(LONG)))
    assert relative(each(elementary.log1p_exp, x), expected) < 1e-13
    assert elementary.log1p_exp(1e5) == 1e5
    assert elementary.log1p_exp(-1e5) == 0.0


@pytest.mark.parametrize("name", ["exp", "log", "sigmoid", "log1p_exp"])
def test_a_vectorised_loop_gives_the_same_bits(name):
    """A value alone, and among others at any offset of the loop."""
    function = getattr(elementary, name)

    def over(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    loop = jit(over, cache=False)
    x = np.abs(spread(-50, 50, 1003)) if name == "log" else spread(-50, 50, 1003)
    alone = each(function, x)
    for start in (0, 1, 3, 8, 1000):
        out = np.empty(x.size - start)
        loop(x[start:], out)
        assert np.array_equal(out, alone[start:])
