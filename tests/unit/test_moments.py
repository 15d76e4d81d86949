"""Streaming sums: equal to the plain formulas, and the same bits however the records are cut into segments."""

import itertools

import numpy as np
import pytest

from fald_hpc.kernels import moments
from fald_hpc.kernels.jit import DISABLED


def series(s, n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(s, n, d)).cumsum(axis=1) * 1e-2 + 100.0


def fed(x, edges, n_batches=32, full=True):
    """Absorb x in pieces; ``edges`` int[segments + 1] or int[segments + 1, s]. Unused records are NaN."""
    edges = np.asarray(edges)
    if edges.ndim == 1:
        edges = np.repeat(edges[:, None], x.shape[0], axis=1)
    acc = moments.new(x.shape[0], x.shape[2], n_batches, full)
    for first, last in itertools.pairwise(edges):
        counts = last - first
        records = np.full((x.shape[0], max(counts.max(), 1), x.shape[2]), np.nan)
        for i, n in enumerate(counts):
            records[i, :n] = x[i, first[i] : last[i]]
        moments.absorb(acc, records, counts)
    return acc


def identical(left, right):
    return all(a.tobytes() == b.tobytes() and a.shape == b.shape for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65, 127, 128, 129, 1000])
def test_plain_formulas(n):
    x = series(2, n, 3)
    acc = fed(x, [0, n])
    assert acc.count.tolist() == [n, n]
    if n == 0:
        return
    away = x - x[:, :1]
    np.testing.assert_array_equal(acc.origin, x[:, 0])
    np.testing.assert_allclose(acc.total, away.sum(axis=1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(acc.squares, (away**2).sum(axis=1), rtol=1e-12, atol=1e-12)
    cross = np.tril(np.einsum("sna,snb->sab", away, away))
    np.testing.assert_allclose(acc.cross, cross, rtol=1e-12, atol=1e-12)
    # 64 slots: the size is the smallest power of two with which n records fit.
    size = next(2**k for k in range(20) if 64 * 2**k >= n)
    assert acc.size.tolist() == [size, size]
    complete = n // size
    batches = away[:, : complete * size].reshape(2, complete, size, 3).sum(axis=2)
    np.testing.assert_allclose(acc.batches[:, :complete], batches, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(acc.batches.sum(axis=1), acc.total, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("full", [True, False])
def test_bits_do_not_depend_on_the_cuts(full):
    n = 150 if DISABLED else 3001
    x, rng = series(3, n, 4), np.random.default_rng(7)
    whole = fed(x, [0, n], full=full)
    assert np.isfinite(whole.batches).all()
    assert identical(whole, fed(x, range(n + 1), full=full))
    for pieces in (2, 5, 40):
        inner = np.sort(rng.integers(0, n + 1, size=(pieces, 3)), axis=0)
        edges = np.concatenate([np.zeros((1, 3), int), inner, np.full((1, 3), n)])
        assert identical(whole, fed(x, edges, full=full))
    assert not identical(whole, fed(x + np.spacing(x), [0, n], full=full))


def test_one_chain_alone_is_the_same_chain_among_others():
    x = series(5, 300, 3)
    together, alone = fed(x, [0, 300]), fed(x[3:4], [0, 300])
    assert identical([a[3:4] for a in together], alone)


def test_arrays_there_and_back_on_other_ranks():
    x = series(4, 300, 3)
    whole = fed(x, [0, 300])
    arrays = moments.to_arrays(fed(x[:, :111], [0, 111]))
    assert all(array.shape[0] == 4 for array in arrays.values())
    parts = []
    for rows in (slice(0, 1), slice(1, 4)):
        acc = moments.from_arrays({name: array[rows] for name, array in arrays.items()} | {"other": np.zeros(1)})
        moments.absorb(acc, np.ascontiguousarray(x[rows, 111:]), np.full(acc.count.size, 189))
        parts.append(acc)
    assert identical(whole, [np.concatenate(pair) for pair in zip(*parts, strict=True)])
    assert arrays["moments_count"].tolist() == [111] * 4  # copies: the arrays are as they were


@pytest.mark.parametrize(
    ("chains", "d", "expected"),
    [(4, 4, 8192), (4, 64, 8192), (4, 128, 4096), (100, 20, 1024), (20, 10**4, 32), (4, 10**7, 32)],
)
def test_number_of_batches_table(chains, d, expected):
    assert moments.n_batches(chains, d) == expected


@pytest.mark.skipif(DISABLED, reason="takes minutes in plain Python")
def test_a_million_records_far_from_the_origin():
    """Sums about the first record: the variance of N(10^6, 1) keeps 9 digits where raw squares would keep 4."""
    x = np.random.default_rng(3).normal(size=(1, 10**6, 1)) + 1e6
    acc = fed(x, [0, 10**6], full=False)
    variance = (acc.squares - acc.total**2 / acc.count) / (acc.count - 1)
    assert variance[0, 0] == pytest.approx(x.var(ddof=1), rel=1e-9)
    assert acc.cross.shape == (1, 0, 0)
