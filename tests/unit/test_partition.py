"""Partitions: disjoint, complete, reproducible, and an error with a value that works instead of an endless loop."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fald_hpc.data import Partition, label_table, partition, variates
from fald_hpc.errors import UserError

LABELS = np.repeat([0.0, 1.0, 2.0, 3.0], [400, 300, 200, 100])


def complete(parts, n):
    return np.array_equal(np.sort(np.concatenate(parts)), np.arange(n))


RECIPES = st.one_of(
    st.tuples(st.just("iid"), st.just({})),
    st.tuples(st.just("dirichlet"), st.fixed_dictionaries({"alpha": st.floats(1e-6, 1e6)})),
    st.tuples(st.just("quantity"), st.fixed_dictionaries({"alpha": st.floats(1e-6, 1e6)})),
    st.tuples(st.just("classes"), st.fixed_dictionaries({"classes_per_client": st.integers(1, 6)})),
)


@settings(max_examples=200, deadline=None)
@given(
    recipe=RECIPES,
    labels=st.lists(st.integers(0, 5), min_size=0, max_size=120),
    clients=st.integers(1, 12),
    seed=st.integers(0, 2**64 - 1),
)
def test_parts_are_disjoint_complete_and_reproducible_or_a_user_error(recipe, labels, clients, seed):
    scheme, options = recipe
    y = np.array(labels, np.float64)
    try:
        parts = partition(y[:, None], y, scheme, clients, seed, **options)
    except UserError as error:
        assert "partition" in str(error)  # noqa: PT017
        return
    assert len(parts) == clients
    assert complete(parts, y.size)
    assert all(part.size >= 1 and np.all(np.diff(part) > 0) and part.dtype == np.int64 for part in parts)
    again = partition(y[:, None], y, scheme, clients, seed, **options)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))
    values, counts = label_table(y, parts)
    np.testing.assert_array_equal(counts.sum(axis=1), [part.size for part in parts])
    np.testing.assert_array_equal(counts.sum(axis=0), [np.sum(y == value) for value in values])
    if scheme == "iid":
        assert max(p.size for p in parts) - min(p.size for p in parts) <= 1
    if scheme == "classes":
        assert ((counts > 0).sum(axis=1) <= options["classes_per_client"]).all()


def test_another_seed_gives_another_split():
    for scheme, options in (("iid", {}), ("dirichlet", {}), ("quantity", {}), ("classes", {"classes_per_client": 2})):
        one = Partition(scheme, 5, seed=1, **options).split(LABELS)
        two = Partition(scheme, 5, seed=2, **options).split(LABELS)
        assert any(not np.array_equal(a, b) for a, b in zip(one, two, strict=True)), scheme


def test_the_split_is_the_same_for_ever():
    """Literal row numbers: a change of the generator or of the recipe must not pass unnoticed."""
    parts = Partition("dirichlet", 3, seed=7, alpha=0.5).split(np.array([0, 1] * 6, np.float64))
    assert [part.tolist() for part in parts] == FROZEN


FROZEN = [[5, 7, 9, 11], [2, 3, 8], [0, 1, 4, 6, 10]]


@pytest.mark.parametrize("alpha", [0.05, 0.1])
def test_the_alpha_named_in_the_error_works(alpha):
    options = {"clients": 20, "seed": 3, "min_rows": 5}
    with pytest.raises(UserError, match=r"alpha = .* works") as caught:
        partition(LABELS[:, None], LABELS, "dirichlet", alpha=alpha, **options)
    named = float(re.search(r"; alpha = (\S+) works", str(caught.value))[1])
    assert named > alpha
    assert complete(partition(LABELS[:, None], LABELS, "dirichlet", alpha=named, **options), LABELS.size)


def test_impossible_requests_name_what_is_possible():
    y = LABELS
    for arguments, words in (
        (("iid", 1001), "at most 1000 clients"),
        (("classes", 2, 1, None, 1), "classes_per_client = 2"),
        (("classes", 5, 1, None, 5), "there are 4 labels"),
    ):
        with pytest.raises(UserError, match=words):
            partition(y[:, None], y, *arguments)
    with pytest.raises(UserError, match="looks continuous"):
        Partition("dirichlet", 3).split(np.arange(2000.0))
    with pytest.raises(UserError, match="y has shape"):
        partition(y[:5, None], y, "iid", 2)


@pytest.mark.parametrize(
    "arguments",
    [
        {"scheme": "random"},
        {"clients": 0},
        {"clients": 2**20 + 1},
        {"clients": True},
        {"clients": 2.0},
        {"seed": -1},
        {"seed": 2**64},
        {"scheme": "dirichlet", "alpha": 0.0},
        {"scheme": "dirichlet", "alpha": float("nan")},
        {"scheme": "quantity", "alpha": 1e-9},
        {"alpha": 1.0},
        {"classes_per_client": 1},
        {"scheme": "classes"},
        {"scheme": "classes", "classes_per_client": 0},
        {"min_rows": -1},
    ],
)
def test_wrong_recipes_are_refused(arguments):
    with pytest.raises(UserError, match="partition:"):
        Partition(**{"scheme": "iid", "clients": 3, **arguments})


def test_ids_sort_in_order():
    ids = Partition("iid", 101).ids
    assert len(set(ids)) == 101
    assert list(ids) == sorted(ids)


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 7.0])
def test_gamma_variates_have_their_distribution(alpha):
    """Kolmogorov-Smirnov on 20 000 logarithms; p > 1e-4 at a fixed seed."""
    logs = np.array(variates.log_gammas(alpha, 11, 0, 5, 20_000))
    assert stats.kstest(np.exp(logs), stats.gamma(alpha).cdf).pvalue > 1e-4


def test_tiny_concentrations_neither_underflow_nor_divide_by_zero():
    for attempt in range(20):
        shares = variates.dirichlet(1e-6, 1, attempt, 9, 50)
        assert abs(sum(shares) - 1.0) < 1e-12
        assert max(shares) > 0.99


def test_permutations_are_uniform():
    """First places of 6000 shuffles of 6: chi-square with 5 degrees of freedom, 25.7 is its 1e-4 tail."""
    first = [int(variates.permutation(5, 0, stream, 6)[0]) for stream in range(6000)]
    counts = np.bincount(first, minlength=6)
    assert ((counts - 1000.0) ** 2 / 1000.0).sum() < 25.7


def test_ten_thousand_clients():
    y = np.tile(np.arange(10.0), 50_000)
    parts = Partition("quantity", 10_000, alpha=100.0).split(y)
    assert complete(parts, y.size)


def test_saved_assignment(tmp_path):
    """The rows of each client, read back from the file beside the results, are those of the partition."""
    from fald_hpc.data import assignment, builtin

    clients = builtin.titanic()
    assignment.save(tmp_path, clients)
    with np.load(tmp_path / assignment.FILE, allow_pickle=False) as saved:
        assert saved["ids"].tolist() == list(clients.ids)
        for i, part in enumerate(clients.assignment):
            assert np.flatnonzero(saved["client"] == i).tolist() == sorted(part.tolist())
