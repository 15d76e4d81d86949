"""Minibatches: uniform over all subsets, without repeats, independent between chains, clients and steps."""

from math import comb

import numpy as np
import pytest
from scipy import stats

from fald_hpc.kernels import minibatch, noise, normals

KEY = noise.key(77)


def subset(n, m, step, chain=0, client=0, key=KEY):
    """One minibatch as int64[m]."""
    out = np.full(min(n, m), -1, np.int64)
    minibatch.subset(key, chain, client, step, n, min(n, m), out)
    return out


def many(n, m, steps, **address):
    """Minibatches of consecutive steps, int64[steps, m]."""
    return np.array([subset(n, m, k, **address) for k in range(steps)])


def p_value(counts):
    """Chi-square probability that equally likely cells show these counts."""
    return stats.chisquare(counts).pvalue


def codes(sets, n):
    """Encode each subset as a bit mask."""
    return np.sum(np.left_shift(1, sets), axis=1)


@pytest.mark.parametrize(("n", "m"), [(n, m) for n in range(2, 7) for m in range(1, n)])
def test_every_subset_is_equally_likely(n, m):
    """Chi-square over all C(n, m) subsets, 400 draws a cell at least; fails for fair subsets once in 10^5."""
    steps = max(2000, 400 * comb(n, m))
    sets = many(n, m, steps)
    assert np.all((sets >= 0) & (sets < n))
    assert all(len(set(s)) == m for s in sets[:500].tolist())
    _, counts = np.unique(codes(sets, n), return_counts=True)
    assert len(counts) == comb(n, m)
    assert p_value(counts) > 1e-5


@pytest.mark.parametrize(("n", "m"), [(40, 1), (40, 10), (40, 17), (40, 19), (40, 20), (40, 21), (40, 39), (1000, 30)])
def test_larger_subsets_include_rows_and_pairs_fairly(n, m):
    """No repeats; inclusion counts of rows and of pairs against their expectation, to 4.5 standard errors.

    Over fair subsets the chi-square of the n inclusion counts, scaled by (1 - m/n), has n - 1 degrees of freedom.
    """
    steps = 8000
    sets = many(n, m, steps)
    ordered = np.sort(sets, axis=1)
    assert np.all(np.diff(ordered, axis=1) > 0)
    assert ordered.min() >= 0
    assert ordered.max() < n
    counts = np.bincount(sets.ravel(), minlength=n)
    expected = steps * m / n
    # sampling m of n without replacement shrinks the variance of a count by (n - m)/(n - 1)
    chi2 = np.sum((counts - expected) ** 2) / (expected * (n - m) / (n - 1))
    assert abs(chi2 - (n - 1)) < 4.5 * np.sqrt(2 * (n - 1))
    if n == 40 and m > 1:
        member = np.zeros((steps, n))
        np.put_along_axis(member, sets, 1.0, axis=1)
        pairs = member.T @ member
        share = m * (m - 1) / (n * (n - 1))
        error = np.sqrt(steps * share * (1 - share))
        off = pairs[np.triu_indices(n, 1)]
        assert np.max(np.abs(off - steps * share)) < 5 * error


@pytest.mark.parametrize(("n", "m"), [(5, 5), (5, 7), (1, 1), (1, 10), (0, 3)])
def test_a_batch_of_all_rows_is_every_row_once(n, m):
    for k in range(5):
        assert sorted(subset(n, m, k).tolist()) == list(range(n))


def test_single_rows_are_uniform():
    """With m = 1, the paper's Titanic setting."""
    sets = many(50, 1, 50_000)[:, 0]
    assert p_value(np.bincount(sets, minlength=50)) > 1e-5


@pytest.mark.parametrize("other", [dict(chain=1), dict(client=1), dict(key=noise.key(78)), dict(chain=0, client=4096)])
def test_subsets_of_other_addresses_are_independent(other):
    """Joint counts of (subset here, subset there) over all 6·6 pairs of 2 out of 4 rows: chi-square."""
    a, b = codes(many(4, 2, 8000), 4), codes(many(4, 2, 8000, **other), 4)
    _, counts = np.unique(a * 16 + b, return_counts=True)
    assert len(counts) == 36
    assert p_value(counts) > 1e-5


def test_subsets_of_consecutive_steps_are_independent():
    a = codes(many(4, 2, 20_001), 4)
    _, counts = np.unique(a[:-1] * 16 + a[1:], return_counts=True)
    assert len(counts) == 36
    assert p_value(counts) > 1e-5


def test_a_subset_is_a_function_of_its_address():
    for n, m in ((7, 3), (200, 60), (200, 150)):
        assert np.array_equal(subset(n, m, 12345678901), subset(n, m, 12345678901))
    assert len({tuple(subset(1000, 5, k)) for k in range(200)}) == 200


def test_scaled_index_is_exact():
    """floor(word·n / 2^64) against Python integers, at the ends too."""
    rng = np.random.default_rng(0)
    words = [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, *(int(w) for w in rng.integers(0, 2**64, 300, dtype=np.uint64))]
    for n in (1, 2, 3, 1000, 2201, 2**31 - 1):
        for w in words:
            assert minibatch.scaled(np.uint64(w), n) == w * n >> 64


def test_scratch_is_left_clean():
    for n, m in ((60, 20), (60, 50), (60, 5)):
        words = np.empty((1, minibatch.n_words(n, m)), np.uint64)
        normals.fill_words(KEY, noise.SUBSET, 0, 0, 3, words)
        mark = np.zeros(n, np.uint8)
        out = np.empty(m, np.int64)
        minibatch.choose(words[0], n, m, mark, out)
        assert not mark.any()
        assert np.array_equal(out, subset(n, m, 3))
