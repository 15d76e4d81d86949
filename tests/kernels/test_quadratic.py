"""Fused steps of dense quadratics: the same bytes as the plain steps, in every lane, width and shape."""

import ctypes
import itertools

import numpy as np
import pytest
from problems.settings import settings

from fald_hpc.data.records import GaussianClient
from fald_hpc.kernels import _quadratic, exact_sum, quadratic, quadratic_gradients, refresh
from fald_hpc.kernels import state as records
from fald_hpc.kernels.jit import DISABLED, instantiate
from fald_hpc.kernels.state import ADD, AHEAD, GOES_ON, KEEP, STORE
from fald_hpc.potentials.gaussian import _DENSE, Gaussian

pytestmark = pytest.mark.skipif(DISABLED, reason="without compilation there is nothing to fuse")

STEPS = {
    sampler: {"plain": parts["plain"], "chains": parts["chain_lanes"], "clients": parts["client_lanes"]}
    for sampler, parts in (("fald", _DENSE.fald_parts), ("vr_fald_star", _DENSE.vr_parts))
}

PLAIN_GRADIENTS = instantiate(refresh.full_gradients, "test", cache=False, full_gradient=_DENSE.full_gradient)
FULL_GRADIENTS = instantiate(quadratic_gradients.full_gradients, "test", cache=False, plain=PLAIN_GRADIENTS)


def problem(c, d):
    """Clients with precisions of scale one, and their steps of the size that all settings here have."""
    rng = np.random.default_rng(1000 * c + d)
    precision = rng.normal(size=(c, d, d)) / d
    precision += precision.transpose(0, 2, 1)
    potential, mean = Gaussian(), rng.normal(size=(c, d))
    clients = [GaussianClient(str(i), mean[i], precision[i]) for i in range(c)]
    return potential.for_steps(potential.pack(clients, np.full(c, 1 / c)), settings(c, 1.0).step_size)


def moved(sampler, way, c, s, d, tau, k, stop, first=0, chosen=None):
    """Return X of chains that took steps k..stop-1: float64[c, s, d]; ``chosen`` keeps one chain."""
    state = records.new_state(c, s, d, 0, offsets=True)
    rng = np.random.default_rng(7)
    state.theta[:] = rng.normal(size=(c, s, d))
    state.reference[:] = rng.normal(size=(s, d))
    state.shift[:] = rng.normal(size=(s, d))
    if chosen is not None:
        alone = records.new_state(c, 1, d, 0, offsets=True)
        for name in ("theta", "reference", "shift"):
            getattr(alone, name)[:] = np.take(getattr(state, name), [chosen], axis=-2)
        state, s, first = alone, 1, first + chosen
    none = np.zeros(c, np.int64)
    work = records.new_work(s, d, none, none, 0, lanes=True)
    STEPS[sampler][way](problem(c, d), settings(c, tau, first_chain=first), state, work, k, stop, 0, s, STORE)
    assert np.all(np.isfinite(state.theta))
    return state.theta


@pytest.mark.parametrize("sampler", STEPS)
@pytest.mark.parametrize("way", ["chains", "clients"])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 9, 10, 11, 20, 23])
def test_fused_steps_equal_plain_steps(sampler, way, d):
    for (c, s), tau in itertools.product([(1, 1), (3, 5), (9, 8), (16, 17), (31, 2), (61, 1)], [0.0, 0.3, 1.0]):
        arguments = (c, s, d, tau, 11, 24)
        plain, fused = (moved(sampler, w, *arguments) for w in ("plain", way))
        assert plain.tobytes() == fused.tobytes(), (c, s, tau)


@pytest.mark.parametrize("way", ["chains", "clients"])
def test_gaps_longer_than_a_block_of_noise(way):
    arguments = ("fald", 3, 9, 2, 0.5, 2**32 - 700, 2**32 + 600)
    plain, fused = (moved(arguments[0], w, *arguments[1:]) for w in ("plain", way))
    assert plain.tobytes() == fused.tobytes()


def test_large_dimension():
    plain, fused = (moved("vr_fald_star", w, 2, 9, 67, 0.5, 0, 9) for w in ("plain", "chains"))
    assert plain.tobytes() == fused.tobytes()


@pytest.mark.parametrize("sampler", STEPS)
def test_a_chain_alone_equals_the_same_chain_among_sixteen(sampler):
    together = moved(sampler, "chains", 4, 16, 20, 0.5, 0, 30, first=4090)
    for chain in (0, 5, 8, 15):
        for way in STEPS[sampler]:
            alone = moved(sampler, way, 4, 16, 20, 0.5, 0, 30, first=4090, chosen=chain)
            assert alone[:, 0].tobytes() == together[:, chain].tobytes(), (chain, way)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 20])
@pytest.mark.parametrize(("c", "s"), [(3, 4), (4, 1), (8, 1), (13, 3), (33, 1), (5, 11)])
def test_full_gradients_of_a_refresh_equal_plain_ones(c, s, d):
    """Lanes of clients at one reference, of chains at one client; padded ones too."""
    rng = np.random.default_rng(c * d)
    state, given = records.new_state(c, s, d, 0), problem(c, d)
    state.reference[:] = rng.normal(size=(s, d))
    none = np.zeros(c, np.int64)
    found = []
    for gradients in (PLAIN_GRADIENTS, FULL_GRADIENTS):
        work = records.new_work(s, d, none, none, 0, lanes=True)
        gradients(given, settings(c, 1.0, side_by_side=s), state, work, 0, 0, s, STORE)
        found.append(work.gradient.tobytes())
        assert np.all(work.gradient != 0.0)
    assert found[0] == found[1]


def sums_of(values, window, width):
    """Return the exact sums over clients of float64[c, s, d], added one by one: float64[s, 3 d]."""
    c, s, d = values.shape
    bins = np.zeros((s, 3 * d))
    for i, chain in itertools.product(range(c), range(s)):
        assert exact_sum.add(values[i, chain], window[chain], width, bins[chain]) == 0
    return bins


def prepared(c, s, d, k, window=12):
    """Return a state whose chains averaged before iteration k: theta must not be read, the mean counts."""
    rng = np.random.default_rng(c + s + d)
    state = records.new_state(c, s, d, 0, offsets=True)
    state.theta[:] = np.nan
    state.averaged_at[:] = k
    for values in (state.mean, state.reference, state.shift):
        values[:] = rng.normal(size=(s, d))
    state.window[:] = state.gradient_window[:] = window
    state.window[::2] = window + 2
    none = np.zeros(c, np.int64)
    return state, records.new_work(s, d, none, none, 0, lanes=True)


@pytest.mark.parametrize("sampler", STEPS)
@pytest.mark.parametrize("way", ["chains", "clients"])
@pytest.mark.parametrize(("c", "s", "d"), [(1, 1, 1), (3, 5, 4), (9, 8, 2), (16, 17, 20), (61, 1, 2), (61, 1, 3), (5, 33, 9)])
def test_sums_of_where_steps_end(sampler, way, c, s, d):
    """From the mean through a gap to the message, stored too or not, equal plain steps and sums one by one."""
    k, given = 11, problem(c, d)
    # of values of order one two parts suffice in the first window; in the second all have a third, rounded in the last
    for tau, stop, ends, window in itertools.product([0.3, 1.0], [k, k + 1, k + 300], [ADD, ADD | STORE], [12, 60, 90]):
        expected, work = prepared(c, s, d, k, window)
        STEPS[sampler]["plain"](given, settings(c, tau), expected, work, k, stop, 0, s, STORE)
        if k == stop:
            assert np.array_equal(expected.theta, np.broadcast_to(expected.mean, (c, s, d)))
        state, work = prepared(c, s, d, k, window)
        STEPS[sampler][way](given, settings(c, tau), state, work, k, stop, 0, s, ends)
        assert work.message[:s, : 3 * d].tobytes() == sums_of(expected.theta, expected.window, 45).tobytes()
        assert np.any(work.message[:s, 2 * d : 3 * d]) == (window > 12)
        assert work.added[0].tolist()[0] == 1
        if ends & STORE:
            assert state.theta.tobytes() == expected.theta.tobytes()
            assert work.added[0, 1] == -1
            continue
        # what was not stored can be computed again from the beginning of the last pass
        begin = work.added[0, 1]
        assert k <= begin <= stop
        STEPS[sampler][way](given, settings(c, tau), state, work, begin, stop, 0, s, STORE)
        assert state.theta.tobytes() == expected.theta.tobytes()


@pytest.mark.parametrize("sampler", STEPS)
@pytest.mark.parametrize("way", ["chains", "clients"])
@pytest.mark.parametrize(("c", "s", "d"), [(5, 19, 9), (3, 2, 2), (37, 1, 2), (13, 33, 3), (9, 3, 21)])
def test_sums_of_before_the_last_step_of_what_is_kept(sampler, way, c, s, d):
    """A refresh: positions are kept, go on from there, are added, take a step and are kept again; also with a value outside."""
    for k, tau, window, amid in itertools.product([7, 2**32 - 20], [0.5, 1.0], [12, 0], [0, GOES_ON]):
        given, one, plain, steps = problem(c, d), settings(c, tau), STEPS[sampler]["plain"], STEPS[sampler][way]
        expected, work = prepared(c, s, d, k)
        plain(given, one, expected, work, k, k + 10, 0, s, STORE | amid)
        plain(given, one, expected, work, k + 10, k + 28, 0, s, STORE | GOES_ON)
        at_event = expected.theta.copy()
        plain(given, one, expected, work, k + 28, k + 29, 0, s, STORE)
        state, work = prepared(c, s, d, k)
        steps(given, one, state, work, k, k + 10, 0, s, KEEP | amid)
        assert np.all(np.isnan(state.theta))
        state.window[s - 1] = window
        steps(given, one, state, work, k + 10, k + 29, 0, s, ADD | KEEP | AHEAD)
        if window == 0:
            assert work.added[0].tolist() == [0, -1]
        else:
            assert work.message[:s, : 3 * d].tobytes() == sums_of(at_event, state.window, 45).tobytes()
            flag, begin = work.added[0].tolist()
            # a pass that begins where the first has ended, or where a block of noise ends
            assert flag == 1
            assert k + 10 <= begin <= k + 28
            assert np.all(np.isnan(state.theta))
            steps(given, one, state, work, begin, k + 28, 0, s, STORE)
        # without a message, or where another rank had the value outside, the vectors are there
        assert state.theta.tobytes() == at_event.tobytes()
        assert quadratic.kept_at(work, 0, k + 29) >= 0
        steps(given, one, state, work, k + 29, k + 29, 0, s, STORE)
        assert state.theta.tobytes() == expected.theta.tobytes()
        steps(given, one, state, work, k + 29, k + 31, 0, s, STORE)
        plain(given, one, expected, work, k + 29, k + 31, 0, s, STORE)
        assert state.theta.tobytes() == expected.theta.tobytes()


@pytest.mark.parametrize("sampler", STEPS)
@pytest.mark.parametrize(("c", "s", "d"), [(5, 19, 9), (37, 1, 2), (9, 3, 21)])
def test_a_gap_in_parts_equals_the_whole_gap(sampler, c, s, d):
    """Whichever ways its parts take, stored or kept between; not if a part ends as if an event followed."""
    given, ways, k = problem(c, d), STEPS[sampler], 7
    for tau, kept in itertools.product([0.3, 1.0], [KEEP, STORE]):
        one = settings(c, tau)
        expected, work = prepared(c, s, d, k)
        ways["plain"](given, one, expected, work, k, k + 40, 0, s, STORE)
        for first, second in itertools.product(ways, ways):
            # a gap that begins in lanes and is kept there goes on there
            goes_on = (kept if first == second else STORE) | GOES_ON
            state, work = prepared(c, s, d, k)
            ways[first](given, one, state, work, k, k + 3, 0, s, goes_on)
            ways[first](given, one, state, work, k + 3, k + 3, 0, s, goes_on)
            ways[second](given, one, state, work, k + 3, k + 40, 0, s, STORE)
            assert state.theta.tobytes() == expected.theta.tobytes(), (first, second, tau, kept)
            if goes_on & STORE:
                state, work = prepared(c, s, d, k)
                ways[first](given, one, state, work, k, k + 3, 0, s, STORE)
                ways[second](given, one, state, work, k + 3, k + 40, 0, s, STORE)
                assert state.theta.tobytes() != expected.theta.tobytes()
                # a rounding more of numbers below 8, 1e-15; 37 steps with γ = 1/100 make it less than three times as large,
                # and round each by less than that again
                assert np.allclose(state.theta, expected.theta, rtol=0, atol=1e-14)


def test_sums_of_before_the_only_step():
    c, s, d, k = 9, 17, 5, 3
    for way in ("chains", "clients"):
        state, work = prepared(c, s, d, k)
        STEPS["vr_fald_star"][way](problem(c, d), settings(c, 1.0), state, work, k, k + 1, 0, s, ADD | KEEP | AHEAD)
        means = np.broadcast_to(state.mean, (c, s, d))
        assert work.message[:s, : 3 * d].tobytes() == sums_of(means, state.window, 45).tobytes()
        assert work.added[0].tolist() == [1, k]


@pytest.mark.parametrize("way", ["chains", "clients"])
@pytest.mark.parametrize("bad", [5.0, np.inf, np.nan])
def test_values_outside_a_window_are_stored_instead(way, bad):
    """The sums are void then: the plain path counts what lies outside, and repeats the message."""
    c, s, d, k = 9, 10, 5, 3
    state, work = prepared(c, s, d, k)
    expected, _ = prepared(c, s, d, k)
    for one in (state, expected):
        one.window[s - 1] = 2
        one.mean[s - 1, d - 1] = bad
    STEPS["fald"]["plain"](problem(c, d), settings(c, 1.0), expected, work, k, k + 1, 0, s, STORE)
    STEPS["fald"][way](problem(c, d), settings(c, 1.0), state, work, k, k + 1, 0, s, ADD)
    assert work.added[0].tolist() == [0, -1]
    assert np.array_equal(state.theta, expected.theta, equal_nan=True)


@pytest.mark.parametrize(("c", "s", "d"), [(3, 4, 1), (4, 1, 2), (13, 3, 4), (33, 1, 20), (5, 21, 11)])
def test_sums_of_full_gradients(c, s, d):
    state, work = prepared(c, s, d, 0)
    given, one = problem(c, d), settings(c, 1.0, side_by_side=s)
    PLAIN_GRADIENTS(given, one, state, work, 0, 0, s, STORE)
    for ends, window in itertools.product((ADD, ADD | STORE), (12, 60)):
        state.gradient_window[:] = window
        expected = sums_of(work.gradient, state.gradient_window, 45).tobytes()
        again = prepared(c, s, d, 0)[1]
        FULL_GRADIENTS(given, one, state, again, 0, 0, s, ends)
        assert again.message[:s, : 3 * d].tobytes() == expected
        assert again.added[0].tolist() == [1, -1 if ends & STORE else 0]
        assert np.array_equal(again.gradient, work.gradient if ends & STORE else np.zeros_like(work.gradient))
    state.gradient_window[s - 1] = -20
    again = prepared(c, s, d, 0)[1]
    FULL_GRADIENTS(given, one, state, again, 0, 0, s, ADD)
    assert again.added[0].tolist() == [0, -1]
    assert np.array_equal(again.gradient, work.gradient)


POINTER, NUMBER = ctypes.POINTER(ctypes.c_double), ctypes.c_int64
INTEGERS = ctypes.POINTER(NUMBER)
WINDOWS = np.array([3] * 8 + [5] * 8)


def called(address, arrays, windows, numbers, scales=()):
    """Call a function of the leaf with arrays of doubles, windows, whole numbers and numbers."""
    types = [*[POINTER] * len(arrays), INTEGERS, *[NUMBER] * len(numbers), *[ctypes.c_double] * len(scales)]
    given = [a.ctypes.data_as(POINTER) for a in arrays]
    ctypes.CFUNCTYPE(None, *types)(address)(*given, windows.ctypes.data_as(INTEGERS), *numbers, *scales)


def test_all_vector_widths_give_the_same_full_gradients():
    rng = np.random.default_rng(0)
    for d, n, by_clients in itertools.product((1, 2, 3, 4, 7), (1, 5, 8, 9, 15), (0, 1)):
        given = problem(n, d)
        # clients of one chain at a point, or chains of two clients at one each
        clients, chains = (n, 1) if by_clients else (min(n, 2), n)
        precision, mean = (given.precision_lanes, given.mean_lanes) if by_clients else (given.precision, given.mean)
        points, scratch = rng.normal(size=(chains, d)), np.zeros((records.SCRATCH * d + 1, 8))
        results = []
        for width in (0, 2, 4, 8):
            out, bins = np.full((clients * chains + 1, d), np.pi), np.zeros((2, 3 * d + 1, 8))
            flags = STORE | ADD | by_clients | width << 10
            numbers = [clients, chains, d, chains * d, 45, flags]
            called(_quadratic.gradients(), [precision, mean, points, out, bins, scratch], WINDOWS, numbers)
            assert np.all(out[-1] == np.pi)
            # lanes that are not in use hold anything
            used = bins[:1] if by_clients else bins.transpose(0, 2, 1).reshape(16, -1)[:n]
            results.append(out[:-1].tobytes() + used.tobytes())
        assert len(set(results)) == 1, (d, n, by_clients)
        one = given.precision[0] @ (points[0] - given.mean[0])
        # d products and additions of numbers of order one, each rounded
        assert np.allclose(out[0], one, rtol=0, atol=1e-14 * d)


def test_all_vector_widths_give_the_same_bytes():
    """Widths 2, 4 and 8; on a processor that lacks one, the next narrower stands in."""
    rng = np.random.default_rng(0)
    begins, ends = (0, 4, 64, quadratic.OFFSETS, 64 | quadratic.OFFSETS), (0, AHEAD, GOES_ON, AHEAD | GOES_ON)
    cases = itertools.product((1, 2, 3, 4, 7, 10, 21), (0, 1, 3), (1, 5, 8, 13, 40), (0, 1), (0, 2), begins, ends)
    for d, t, n, by_clients, has_reference, begin, end in cases:
        if n > (8 if t == 3 else 40) or (n > 16 and not by_clients):
            continue  # with private noise eight clients at most
        if t == 0 and (end & AHEAD or (end == GOES_ON and not begin & quadratic.OFFSETS)):
            continue
        clients, chains = (n, 1) if by_clients else (2, n)
        groups = -(-n // 8)
        private = 0.3 if t == 3 and by_clients else 0.0
        of_kept = (1, groups, d, 8) if by_clients else (clients, groups, d, 8)
        shapes = {
            "moves": (groups, d, d, 8) if by_clients else (clients, d, d),
            "mean": (groups, d, 8) if by_clients else (clients, d),
            "reference": (chains, d), "shift": (chains, d),
            "common": (t + 1, d) if by_clients else (groups, t + 1, d, 8),
            "private": (t + 1, d, 8), "start": (chains, d), "kept": of_kept,
            "base": (2, t + 1, d, 8), "x": (clients, chains, d), "offsets": (clients, chains, d),
        }  # fmt: skip
        arrays = [rng.normal(size=shape) / d for shape in shapes.values()]
        results = []
        for width in (0, 2, 4, 8):
            x, offsets = arrays[-2].copy(), arrays[-1].copy()
            bins, scratch = np.zeros((2, 3 * d + 1, 8)), np.zeros((records.SCRATCH * d + 1, 8))
            flags = by_clients | has_reference | begin | end | STORE | ADD | KEEP | width << 10
            keep = np.zeros(of_kept)
            numbers = [clients, chains, d, t, chains * d, groups * d * 8, (t + 1) * d * 8, 0, 45, flags]
            called(_quadratic.steps(), [*arrays[:-2], x, offsets, keep, bins, scratch], WINDOWS, numbers, [0.1, 0.2, private])
            used = bins[:1] if by_clients else bins.transpose(0, 2, 1).reshape(16, -1)[:n]
            results.append(x.tobytes() + offsets.tobytes() + used.tobytes())
            assert np.array_equal(x, arrays[-2]) == (t == 0 and begin == 0)
            assert np.array_equal(offsets, arrays[-1]) == (not end & GOES_ON or (t == 0 and begin == quadratic.OFFSETS))
            in_rows = keep.transpose(0, 1, 3, 2).reshape(of_kept[0], -1, d)[:, :n]
            assert np.array_equal(in_rows.reshape(x.shape), offsets if end & GOES_ON else x)
        assert len(set(results)) == 1, (d, t, n, by_clients, has_reference, begin, end)
