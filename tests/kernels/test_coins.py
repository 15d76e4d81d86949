"""Coins: their probabilities, independence, and the schedule's message count against the specification's table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fald_hpc.kernels import coins, noise
from oracles import messages

KEY = noise.key(5)


def flips(chain, k0, t, p, q, key=KEY):
    """Coins B and B' of t iterations as booleans."""
    out = np.empty(t, np.uint8)
    coins.fill(key, chain, k0, coins.threshold(p), coins.threshold(q), out)
    assert np.all(out < 4)
    return (out & coins.AVERAGE) != 0, (out & coins.REFRESH) != 0


@pytest.mark.parametrize("chain", [coins.SHARED, 0, 3])
@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.05, 0.2), (1.0, 0.01), (0.001, 1.0)])
def test_probabilities_and_independence(chain, p, q):
    """Frequencies within 4.5 binomial standard errors; B and B', and B and the next B, uncorrelated likewise."""
    n = 400_000
    b, r = flips(chain, 0, n, p, q)
    assert abs(b.mean() - p) <= 4.5 * np.sqrt(p * (1 - p) / n)
    assert abs(r.mean() - q) <= 4.5 * np.sqrt(q * (1 - q) / n)
    limit = 4.5 * np.sqrt(p * (1 - p) * q * (1 - q) / n)
    assert abs(np.mean((b - p) * (r - q))) <= limit
    for x, share in ((b, p), (r, q)):
        for lag in (1, 2, 7):
            assert abs(np.mean((x[lag:] - share) * (x[:-lag] - share))) <= 4.5 * share * (1 - share) / np.sqrt(n - lag)


def test_probability_one_always_fires():
    b, r = flips(coins.SHARED, 0, 100_000, 1.0, 1.0)
    assert b.all()
    assert r.all()


def test_schedules_of_chains_and_seeds_are_independent():
    """Shared, chain 0, chain 1 and another seed: pairwise correlations within 4.5 standard errors of 0."""
    n = 400_000
    streams = [flips(c, 0, n, 0.3, 0.3)[0] - 0.3 for c in (coins.SHARED, 0, 1)]
    streams.append(flips(coins.SHARED, 0, n, 0.3, 0.3, key=noise.key(6))[0] - 0.3)
    for i in range(4):
        for j in range(i):
            assert abs(np.mean(streams[i] * streams[j])) < 4.5 * 0.21 / np.sqrt(n)


def test_coins_depend_on_the_step_alone():
    whole = np.array(flips(coins.SHARED, 100, 5000, 0.3, 0.1))
    for cut in (1, 1023, 1024, 1025, 3000):
        pieces = [np.array(flips(coins.SHARED, 100 + a, min(cut, 5000 - a), 0.3, 0.1)) for a in range(0, 5000, cut)]
        assert np.array_equal(np.concatenate(pieces, axis=1), whole)


def test_averaging_coin_ignores_the_refresh_probability():
    assert np.array_equal(flips(0, 0, 2000, 0.2, 0.1)[0], flips(0, 0, 2000, 0.2, 0.9)[0])


def test_a_larger_probability_fires_whenever_a_smaller_one_does():
    small, large = flips(0, 0, 20_000, 0.1, 0.1)[0], flips(0, 0, 20_000, 0.2, 0.1)[0]
    assert np.all(large[small])


@pytest.mark.parametrize("p", [0.5, 0.1, 1 / 3, 1.0, 1e-300, np.nextafter(1.0, 0), 2.0**-64])
def test_threshold_is_exact(p):
    """A word w fires iff w < floor(p·2^64), at least for w = 0."""
    numerator, denominator = float(p).as_integer_ratio()
    assert int(coins.threshold(p)) == max(numerator * 2**64 // denominator, 1) - 1


@pytest.mark.parametrize("p", [0.0, -0.1, 1.0000001, float("nan"), float("inf")])
def test_threshold_refuses_what_is_no_probability(p):
    with pytest.raises(ValueError, match="probability"):
        coins.threshold(p)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=60), st.integers(0, 60))
def test_messages_equal_the_table(values, cut):
    """The kernel's count, in one piece and in two, against the table (which also counts one at the start)."""
    array = np.array(values, dtype=np.uint8)
    b, r = (array & 1) != 0, (array & 2) != 0
    averages, refreshes, made, last = coins.tally(array, True, True)
    assert made + 1 == messages.count(b, r)
    assert (averages, refreshes) == (b.sum(), r.sum())
    assert last == (b[-1] if len(b) else True)
    cut = min(cut, len(values))
    _, _, first, between = coins.tally(array[:cut], True, True)
    _, _, second, _ = coins.tally(array[cut:], between, True)
    assert first + second == made
    assert coins.tally(array, True, False)[2] == messages.count(b, None)
