"""Order-free sums and correctly rounded means, against rational arithmetic."""

import ctypes
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fald_hpc.kernels import _exact_sum, exact_sum
from oracles import exact


def in_c(stack, window, width, vector, chains=1):
    """Bytes of the bins and values outside by the C function, with vectors of a width (0: the widest)."""
    pointer, number = ctypes.POINTER(ctypes.c_double), ctypes.c_int64
    function = ctypes.CFUNCTYPE(number, pointer, *[number] * 5, pointer, number)(_exact_sum.address())
    b, d = stack.shape
    spread = np.full((b, chains, d), np.nan)
    spread[:, 0] = stack
    bins = np.zeros(exact_sum.BINS * d)
    given = [array.ctypes.data_as(pointer) for array in (spread, bins)]
    outside = function(given[0], b, chains * d, d, window, width, given[1], vector)
    return bins.tobytes(), outside


def means_in_c(bins, n, vector):
    """Means of bins: float64[3·d] over n clients by the C function, as bytes; vectors of a width (0: the widest)."""
    pointer = ctypes.POINTER(ctypes.c_double)
    signature = ctypes.CFUNCTYPE(None, pointer, ctypes.c_int64, ctypes.c_double, pointer, ctypes.c_int64)
    function = signature(_exact_sum.mean_address())
    out = np.full(bins.size // exact_sum.BINS, np.nan)
    function(bins.ctypes.data_as(pointer), out.size, float(n), out.ctypes.data_as(pointer), vector)
    return out.tobytes()


def means(bins, n):
    """Means of bins: float64[3·d] over n clients, one by one; every width of vectors must give the same bits."""
    out = np.array([exact_sum.quotient(*sums, float(n)) for sums in bins.reshape(exact_sum.BINS, -1).T])
    for vector in (0, 2, 4, 8):
        assert means_in_c(bins, n, vector) == out.tobytes()
    return out


def binned(stack, window=None):
    """Bins of the rows of float64[b, d] added in the given order, and how many values fell outside."""
    b, d = stack.shape
    if window is None:
        finite = np.abs(stack[np.isfinite(stack)])
        window = exact_sum.window_for(finite.max() if finite.size else 0.0)
    bins = np.zeros(exact_sum.BINS * d)
    width = exact_sum.grid_bits(b)
    outside = sum(exact_sum.add(row, window, width, bins) for row in stack)
    for vector in (0, 2, 4, 8):
        assert in_c(stack, window, width, vector) == (bins.tobytes(), outside)
    return bins, outside


def kernel_mean(stack, window=None):
    """Mean over the rows by the kernel; every value must lie in the window."""
    bins, outside = binned(np.ascontiguousarray(stack, dtype=np.float64), window)
    assert outside == 0
    return means(bins, len(stack))


def magnitudes(low, high):
    """Doubles of either sign with a magnitude between two powers of ten, or zero."""
    positive = st.floats(min_value=low, max_value=high, allow_nan=False, width=64)
    return st.one_of(st.just(0.0), positive, positive.map(lambda v: -v))


@settings(max_examples=400, deadline=None)
@given(st.lists(magnitudes(1e-12, 1e6), min_size=1, max_size=40))
def test_parameters_down_to_1e_12_are_averaged_exactly(values):
    """Parameters down to 1e-12 beside ones of 10^6: their last bits, 2^-92, are far above the lowest grid."""
    column = np.array(values)[:, None]
    assert kernel_mean(column)[0] == exact.mean(values)


@settings(max_examples=400, deadline=None)
@given(st.lists(magnitudes(1.0, 1e14), min_size=1, max_size=40))
def test_gradients_up_to_1e14_are_averaged_exactly(values):
    column = np.array(values)[:, None]
    assert kernel_mean(column)[0] == exact.mean(values)


@settings(max_examples=300, deadline=None)
@given(st.lists(magnitudes(1e-3, 1e3), min_size=2, max_size=30), st.randoms(use_true_random=False))
def test_cancellation_leaves_exact_remainders(values, random):
    """Values and their negatives, with small remainders: nothing is lost."""
    crowd = values + [-v for v in values[1:]] + [values[0] * 2**-40]
    random.shuffle(crowd)
    assert kernel_mean(np.array(crowd)[:, None])[0] == exact.mean(crowd)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 300), magnitudes(1e-150, 1e14))
def test_mean_of_equal_values_is_that_value(b, value):
    """Then b = 1 is the identity."""
    assert kernel_mean(np.full((b, 1), value))[0] == value


@settings(max_examples=100, deadline=None)
@given(st.lists(magnitudes(1e-12, 1e14), min_size=2, max_size=50), st.randoms(use_true_random=False))
def test_any_order_and_any_grouping_gives_the_same_bins(values, random):
    """Bins of parts, added in any order as a reduction would, are the same bits as those of the whole."""
    stack = np.array(values)[:, None]
    window = exact_sum.window_for(np.abs(stack).max())
    width = exact_sum.grid_bits(len(values))
    whole, _ = binned(stack, window)
    order = list(range(len(values)))
    random.shuffle(order)
    cut = random.randrange(len(values) + 1)
    parts = []
    for members in (order[:cut], order[cut:]):
        bins = np.zeros(exact_sum.BINS)
        for i in members:
            exact_sum.add(stack[i], window, width, bins)
        parts.append(bins)
    assert np.array_equal(parts[0] + parts[1], whole)
    assert np.array_equal(parts[1] + parts[0], whole)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(magnitudes(1e-2, 1e2), min_size=1, max_size=20),
    st.integers(0, 100),
)
def test_window_size_does_not_change_the_mean(values, extra):
    """A window widened by up to 40 powers of two gives the same mean: results depend on data only."""
    stack = np.array(values)[:, None]
    tight = exact_sum.window_for(np.abs(stack).max())
    assert kernel_mean(stack, tight + min(extra, 40))[0] == exact.mean(values)


def test_many_columns_at_once_and_many_clients():
    rng = np.random.default_rng(1)
    for b, d in ((1, 3), (2, 5), (7, 4), (100, 20), (1000, 2)):
        stack = rng.standard_normal((b, d)) * 10.0 ** rng.integers(-12, 6, (b, d))
        expected = exact.mean_rows(stack)
        assert np.array_equal(kernel_mean(stack), expected)
        for _ in range(5):
            assert np.array_equal(kernel_mean(stack[rng.permutation(b)]), expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_values_are_counted_and_not_added(value):
    stack = np.array([[1.0, value], [2.0, 5.0], [value, 7.0]])
    bins, outside = binned(stack, 20)
    assert outside == 2
    clean, none = binned(np.array([[1.0, 0.0], [2.0, 5.0], [0.0, 7.0]]), 20)
    assert none == 0
    assert np.array_equal(bins, clean)


def test_values_beyond_the_window_are_counted_until_it_is_widened():
    stack = np.array([[3.0], [1e14], [-1e-12]])
    _, outside = binned(stack, 10)
    assert outside == 1
    wide = exact_sum.window_for(1e14)
    assert kernel_mean(stack, wide)[0] == exact.mean(stack[:, 0])
    assert binned(np.array([[2.0**10], [-(2.0**10)]]), 10)[1] == 0  # the edge itself is inside
    assert binned(np.array([[np.nextafter(2.0**10, 2e3)]]), 10)[1] == 1


@pytest.mark.parametrize("maximum", [1e-300, 1e-12, 0.5, 1.0, 1.5, 2.0, 1e14, 1e200])
def test_window_leaves_headroom(maximum):
    window = exact_sum.window_for(maximum)
    assert exact_sum.MIN_WINDOW <= window <= exact_sum.MAX_WINDOW
    assert 2.0**window >= maximum
    assert window == exact_sum.MIN_WINDOW or 2.0**window >= maximum * 2 ** (exact_sum.HEADROOM - 1)
    assert exact_sum.window_for(0.0) == exact_sum.MIN_WINDOW


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 100, 1000, 2**20])
def test_quotient_of_three_sums_is_correctly_rounded(n):
    """Random and adversarial triples: ties, near ties, cancelling bins, neighbours of powers of two."""
    rng = np.random.default_rng(n)
    cases = []
    for _ in range(3000):
        q = rng.uniform(1, 2) * 2.0 ** rng.integers(-30, 30)
        if rng.random() < 0.3:
            q = 2.0 ** rng.integers(-30, 30)
        ulp = math.ulp(q)
        # the exact sum is n q plus (a half, or nearly a half) of the last place, in two further bins
        high = n * q
        rest = float(exact.rounded(exact.total([q]) * n - exact.total([high])))
        tweak = rng.choice([0.0, 0.5, -0.5, 0.25, -0.25, 0.3]) * ulp * n
        tiny = rng.choice([0.0, 1.0, -1.0]) * ulp * 2.0 ** -rng.integers(1, 45)
        cases.append((high, rest + tweak, tiny))
        s = rng.standard_normal(3) * [1.0, 2.0**-40, 2.0**-80]
        cases.append(tuple(s * 2.0 ** rng.integers(-20, 20)))
        cases.append((s[0], -s[0], s[2]))
    for sign in (1.0, -1.0):
        expected = [exact.rounded(exact.total([sign * part for part in case]) / n) for case in cases]
        assert means(sign * np.array(cases).T.ravel(), n).tolist() == expected


@pytest.mark.parametrize("n", [1, 2, 3, 6, 100, 1023, 2**20 - 1, 2**20])
def test_means_of_any_bins_in_vectors_of_any_width(n):
    """Bins as full as they get, of which some are 0 or cancel, at both ends of the window."""
    rng = np.random.default_rng(n)
    width, m = exact_sum.grid_bits(n), 2000
    for window in (exact_sum.MIN_WINDOW, 0, exact_sum.MAX_WINDOW):
        units = np.ldexp(1.0, window + 1 - width * np.arange(1, exact_sum.BINS + 1))[:, None]
        largest = np.array([2.0 ** (width - 1), n / 2 * 2.0**width, n / 2 * 2.0**width])[:, None]
        shrunk = np.ldexp(rng.uniform(-1, 1, (3, m)), -rng.integers(0, 60, (3, m)))
        sums = np.floor(largest * shrunk) * units * (rng.random((3, m)) < 0.7)
        cancels = rng.random(m) < 0.3
        sums[0, cancels] = np.round(-sums[1, cancels] / units[0]) * units[0]
        out = np.empty(m)
        exact_sum.mean(sums.ravel(), float(n), out)
        assert np.array_equal(means(sums.ravel(), n), out)
        some = slice(0, 200)
        assert out[some].tolist() == [exact.rounded(exact.total(list(case)) / n) for case in sums.T[some]]
    assert means(np.array([0.0, -0.0] * 3), n).tobytes() == np.zeros(2).tobytes()


@pytest.mark.parametrize("d", range(1, 20))
def test_means_touch_nothing_behind_the_last_one(d):
    bins, out = np.ones(3 * d), np.zeros(d + 1)
    exact_sum.mean(bins, 3.0, out[:d])
    assert out.tolist() == [1.0] * d + [0.0]


def test_grid_bits_leave_room_for_the_sum():
    for b in (1, 2, 3, 4, 5, 100, 128, 129, 2**20):
        width = exact_sum.grid_bits(b)
        # b multiples of a grid of at most 2^width each stay below 2^53
        assert b * 2**width <= 2**52


@pytest.mark.parametrize("clients", [1, 2, 7, 50])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 8, 9, 16, 20, 24, 25, 31, 100])
@pytest.mark.parametrize("chains", [1, 3])
def test_vectors_of_any_width_give_the_bins_of_one_value_at_a_time(clients, d, chains):
    rng = np.random.default_rng(clients * 100 + d)
    stack = rng.normal(size=(clients, d)) * 10.0 ** rng.integers(-12, 6, (clients, d))
    stack[rng.random((clients, d)) < 0.1] = rng.choice([np.nan, np.inf, -np.inf, 2.0**40, -0.0, 0.0])
    window, width = 20, exact_sum.grid_bits(max(2, clients))
    bins = np.zeros(exact_sum.BINS * d)
    outside = sum(exact_sum.add(row, window, width, bins) for row in stack)
    assert np.any(bins != 0.0) or clients * d < 3
    for vector in (0, 2, 4, 8):
        assert in_c(stack, window, width, vector, chains) == (bins.tobytes(), outside)
