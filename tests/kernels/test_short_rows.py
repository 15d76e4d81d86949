"""Full gradients of regressions with short rows, in C: residuals to the last bit of a step's, for every vector width."""

import ctypes
import math

import numpy as np
import pytest

from fald_hpc.kernels import _short_rows, glm, short_rows
from fald_hpc.kernels.jit import DISABLED
from fald_hpc.potentials.linear import residual as linear
from fald_hpc.potentials.logistic import residual as logistic
from fald_hpc.potentials.poisson import residual as poisson

pytestmark = pytest.mark.skipif(DISABLED, reason="rows are not packed side by side where nothing is compiled")

WIDTHS = (0, 2, 4, 8)
RESIDUALS = {"linear": linear, "logistic": logistic, "poisson": poisson}
number = ctypes.c_int64
function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[number] * 4, *[ctypes.c_void_p] * 3, number)(_short_rows.address())


def problem(family, counts, d, scale=1.0, seed=0):
    """Return clients with so many rows, and everything that a row can have."""
    rng = np.random.default_rng(seed)
    n = sum(counts)
    of_rows = {
        "rows": scale * rng.normal(size=(n, d)),
        "weight": rng.uniform(0.5, 2.0, n),
        "offset": rng.normal(size=n),
        "target": rng.integers(0, 2, n).astype(float),
        "start": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
    }
    number_of = short_rows.FAMILIES[family]
    columns, place = short_rows.side_by_side(**of_rows, family=number_of)
    none = np.zeros((n, 0))
    return glm.Problem(**of_rows, prior=np.ones(len(counts)), columns=columns, place=place, packed=none, family=number_of)


def one_by_one(given, family, i, y):
    """Residuals of client i as a step computes them: float64[n]."""
    rows = range(given.start[i], given.start[i + 1])
    eta = [glm.predictor(given.rows, r, y) + given.offset[r] for r in rows]
    return np.array([given.weight[r] * RESIDUALS[family](e, given.target[r]) for e, r in zip(eta, rows, strict=True)])


def in_c(given, i, y, width):
    """Call the C function on client i: its residuals with a margin behind, and what it adds."""
    n = int(given.start[i + 1] - given.start[i])
    kept, out = np.full(n + 16, np.pi), np.zeros(y.size + 8)
    columns = given.columns[0, given.place[i] :]
    sizes = given.columns.shape[1], n, y.size, given.family
    function(columns.ctypes.data, *sizes, *(a.ctypes.data for a in (y, kept, out)), width)
    assert np.all(kept[n:] == np.pi)
    assert np.all(out[y.size :] == 0.0)
    return kept[:n], out[: y.size]


@pytest.mark.parametrize("family", RESIDUALS)
@pytest.mark.parametrize("d", [1, 2, 4, 7, 15])
def test_every_width_gives_the_residuals_of_a_step(family, d):
    """Clients shorter and longer than a vector and a group, whole eights and rests, neighbours on both sides."""
    counts = [3, 1, 7, 8, 9, 31, 32, 33, 40, 100, 129]
    given = problem(family, counts, d)
    y = np.random.default_rng(1).normal(size=d)
    for i, n in enumerate(counts):
        kept = one_by_one(given, family, i, y)
        terms = kept[:, None] * given.rows[given.start[i] : given.start[i + 1]]
        found = [in_c(given, i, y, width) for width in WIDTHS]
        for residuals, sums in found:
            assert residuals.tobytes() == kept.tobytes(), (i, n)
            assert sums.tobytes() == found[0][1].tobytes(), (i, n)
        # n additions of terms up to m, each rounded: n² m ε/2 at most
        gradient = np.array([math.fsum(terms[:, j]) for j in range(d)])
        assert np.max(np.abs(found[0][1] - gradient)) <= n * n * np.max(np.abs(terms)) * 2.0**-53


@pytest.mark.parametrize("family", RESIDUALS)
def test_extreme_predictors(family):
    """Overflow, underflow, the seams of the exponential, infinities and NaN: as a step has them, row by row."""
    etas = [0.0, -0.0, 708.0, -708.0, 708.1, -708.1, 709.7, 709.8, -709.8, 745.0, -745.0, 1e5, -1e5, 36.7, -36.7, 1e-300]
    etas += [math.inf, -math.inf, math.nan]
    given = problem(family, [len(etas)], 1)
    given = given._replace(offset=np.array(etas))
    columns, place = short_rows.side_by_side(
        np.zeros((len(etas), 1)), given.weight, given.offset, given.target, given.start, given.family
    )
    given = given._replace(columns=columns, place=place, rows=np.zeros((len(etas), 1)))
    kept = one_by_one(given, family, 0, np.zeros(1))
    for width in WIDTHS:
        found, _ = in_c(given, 0, np.zeros(1), width)
        assert np.array_equal(np.isnan(found), np.isnan(kept))
        finite = ~np.isnan(kept)
        assert found[finite].tobytes() == kept[finite].tobytes(), width


def test_a_client_alone_equals_the_same_client_among_others():
    """What a rank holds besides must not show: the client's columns begin elsewhere, its bits stay."""
    whole = problem("logistic", [5, 19, 12], 4)
    y = np.array([0.3, -0.2, 0.1, 0.7])
    part = slice(5, 24)
    alone_columns, place = short_rows.side_by_side(
        whole.rows[part], whole.weight[part], whole.offset[part], whole.target[part], np.array([0, 19]), whole.family
    )
    alone = whole._replace(columns=alone_columns, place=place, start=np.array([0, 19]))
    for one, other in zip(in_c(whole, 1, y, 0), in_c(alone, 0, y, 0), strict=True):
        assert one.tobytes() == other.tobytes()


def test_clients_without_rows_take_no_columns():
    given = problem("linear", [0, 3, 0, 8, 0], 2)
    assert given.columns.shape == (5, 16)
    assert given.place.tolist() == [0, 0, 8, 8, 16]
    assert given.columns.ctypes.data % 64 == 0


@pytest.mark.parametrize(("d", "family"), [(16, 0), (2, short_rows.NONE)])
def test_long_rows_and_other_families_are_not_packed_twice(d, family):
    n = 3
    columns, _ = short_rows.side_by_side(np.ones((n, d)), np.ones(n), np.ones(n), np.ones(n), np.array([0, n]), family)
    assert columns.size == 0
