"""Gradient estimates: unbiased over all subsets, the same for any potential and its transcription (item 7)."""

from itertools import combinations

import numpy as np
import pytest
from problems import cases

from oracles import transcription as tr

# a user's function is compiled into the samplers' loops alone: its paths are tested instead (test_trajectories)
NAMES = [n for n in cases.NAMES if n != "row-potential"]
WITH_ROWS = [n for n in NAMES if not n.startswith("gaussian")]


def packed(case):
    """Problem as the compiled functions take it, with all clients local."""
    b = len(case.clients.ids)
    shares = np.full(b, 1 / b) if case.clients.prior_shares is None else case.clients.prior_shares
    return case.potential.pack(case.clients.load(range(b)), np.asarray(shares))


def kept(case):
    """Space for what a reference keeps."""
    return np.zeros(case.potential.kept_size(sum(case.model.rows)))


def points(case):
    """Two parameters."""
    rng = np.random.default_rng(3)
    return 0.5 * rng.standard_normal(case.d), 0.5 * rng.standard_normal(case.d)


@pytest.mark.parametrize("name", NAMES)
def test_full_gradient_is_that_of_the_transcription(name):
    case = cases.case(name)
    x, _ = points(case)
    out = np.empty(case.d)
    for i in range(3):
        case.potential.kernels.full_gradient(packed(case), i, x, kept(case), out)
        assert out == pytest.approx(tr.full_gradient(case.model, i, x), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", WITH_ROWS)
@pytest.mark.parametrize("m", [1, 2, 3])
def test_average_over_all_subsets_is_the_full_gradient(name, m):
    case = cases.case(name)
    problem, (x, y) = packed(case), points(case)
    kernels, space = case.potential.kernels, kept(case)
    out, full = np.empty(case.d), np.empty(case.d)
    for i, n in enumerate(case.model.rows):
        kernels.full_gradient(problem, i, x, space, full)
        total, control = np.zeros(case.d), np.zeros(case.d)
        at_y = np.empty(case.d)
        kernels.full_gradient(problem, i, y, space, at_y)
        subsets = [np.array(s, dtype=np.int64) for s in combinations(range(n), min(m, n))]
        for s in subsets:
            assert kernels.gradient(problem, i, x, s, out) == len(s)
            assert out == pytest.approx(tr.estimate(case.model, i, s, x), rel=1e-12, abs=1e-12)
            total += out
            assert kernels.difference(problem, i, x, y, space, s, out) in (len(s), 2 * len(s))
            expected = tr.estimate(case.model, i, s, x) - tr.estimate(case.model, i, s, y)
            assert out == pytest.approx(expected, rel=1e-11, abs=1e-11)
            control += out
        assert total / len(subsets) == pytest.approx(full, rel=1e-12, abs=1e-12)
        assert control / len(subsets) == pytest.approx(full - at_y, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_variance_reduced_estimate_at_the_reference_is_exactly_the_shift(name):
    """The difference at X = Y is zero to the last bit, so that the estimate is C."""
    case = cases.case(name)
    problem, (x, _) = packed(case), points(case)
    kernels, space = case.potential.kernels, kept(case)
    out = np.empty(case.d)
    for i, n in enumerate(case.model.rows):
        kernels.full_gradient(problem, i, x, space, out)
        for m in range(1, n + 1):
            rows = np.random.default_rng(m).permutation(n)[:m]
            kernels.difference(problem, i, x, x.copy(), space, rows, out)
            assert np.all(out == 0.0)
