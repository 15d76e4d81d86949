"""Fused steps of dense quadratics: the same bytes as the plain steps, in every lane, width and shape."""

import ctypes
import itertools
import math

import numpy as np
import pytest

from fald_hpc.kernels import _quadratic, noise, quadratic, refresh
from fald_hpc.kernels import state as records
from fald_hpc.kernels.jit import DISABLED, instantiate
from fald_hpc.kernels.langevin import local_steps
from fald_hpc.potentials.gaussian import _DENSE, Dense, _side_by_side
from fald_hpc.samplers import fald, vr_fald_star

pytestmark = pytest.mark.skipif(DISABLED, reason="without compilation there is nothing to fuse")

KEY = noise.key(5)
STEPS = {}
for sampler, module, parts, bound in (
    ("fald", fald, _DENSE.fald_parts, {"gradient": _DENSE.gradient}),
    ("vr_fald_star", vr_fald_star, _DENSE.vr_parts, {"difference": _DENSE.difference}),
):
    one = instantiate(module.estimate, f"test_{sampler}", cache=False, forceinline=True, **bound)
    plain = instantiate(local_steps, f"test_{sampler}", cache=False, estimate=one)
    STEPS[sampler] = {"plain": plain, "chains": parts["chain_lanes"], "clients": parts["client_lanes"]}

PLAIN_GRADIENTS = instantiate(refresh.full_gradients, "test", cache=False, full_gradient=_DENSE.full_gradient)
FULL_GRADIENTS = instantiate(quadratic.full_gradients, "test", cache=False, plain=PLAIN_GRADIENTS)


def settings(clients, tau, first_chain=0, step_size=0.01):
    """Return the settings of a run on this rank."""
    return records.Settings(
        communicator=-1,
        first_client=3,
        first_chain=first_chain,
        every_step=False,
        key=KEY,
        n_clients=clients,
        width=45,
        step_size=step_size,
        common_scale=math.sqrt(2 * step_size * tau / clients),
        private_scale=math.sqrt(2 * step_size * (1 - tau)),
        average_threshold=np.uint64(0),
        refresh_threshold=np.uint64(0),
        burn_in=0,
        side_by_side=1,
        batches=1,
    )


def problem(c, d):
    """Clients with precisions of scale one."""
    rng = np.random.default_rng(1000 * c + d)
    precision = rng.normal(size=(c, d, d)) / d
    precision += precision.transpose(0, 2, 1)
    mean = rng.normal(size=(c, d))
    return Dense(mean, precision, _side_by_side(mean), _side_by_side(precision))


def moved(sampler, way, c, s, d, tau, k, stop, first=0, chosen=None):
    """Return X of chains that took steps k..stop-1: float64[c, s, d]; ``chosen`` keeps one chain."""
    state = records.new_state(c, s, d, 0)
    rng = np.random.default_rng(7)
    state.theta[:] = rng.normal(size=(c, s, d))
    state.reference[:] = rng.normal(size=(s, d))
    state.shift[:] = rng.normal(size=(s, d))
    if chosen is not None:
        alone = records.new_state(c, 1, d, 0)
        for name in ("theta", "reference", "shift"):
            getattr(alone, name)[:] = np.take(getattr(state, name), [chosen], axis=-2)
        state, s, first = alone, 1, first + chosen
    none = np.zeros(c, np.int64)
    work = records.new_work(s, d, none, none, 0, lanes=True)
    STEPS[sampler][way](problem(c, d), settings(c, tau, first), state, work, k, stop, 0, s)
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
        gradients(given, settings(c, 1.0)._replace(side_by_side=s), state, work, 0, 0, s)
        found.append(work.gradient.tobytes())
        assert np.all(work.gradient != 0.0)
    assert found[0] == found[1]


def test_all_vector_widths_give_the_same_full_gradients():
    pointer, number = ctypes.POINTER(ctypes.c_double), ctypes.c_int64
    function = ctypes.CFUNCTYPE(None, *[pointer] * 5, *[number] * 5)(_quadratic.gradients_address())
    rng = np.random.default_rng(0)
    for d, n, by_clients in itertools.product((1, 2, 3, 4, 7), (1, 5, 8, 9, 33), (0, 1)):
        given = problem(n, d)
        precision, mean = (given.precision_lanes, given.mean_lanes) if by_clients else (given.precision, given.mean)
        points, scratch = rng.normal(size=(1 if by_clients else n, d)), np.zeros((4 * d + 1, 8))
        results = []
        for width in (0, 2, 4, 8):
            out = np.full((n + 1, d), np.pi)
            arrays = [a.ctypes.data_as(pointer) for a in (precision, mean, points, out, scratch)]
            function(*arrays, d, n, 0 if by_clients else d, d, by_clients | width << 8)
            assert np.all(out[n] == np.pi)
            results.append(out[:n].tobytes())
        assert len(set(results)) == 1, (d, n, by_clients)
        one = problem(n, d).precision[0] @ (points[0] - given.mean[0])
        # d products and additions of numbers of order one, each rounded
        assert np.allclose(out[0], one, rtol=0, atol=1e-14 * d)


def test_all_vector_widths_give_the_same_bytes():
    """Widths 2, 4 and 8; on a processor that lacks one, the next narrower stands in."""
    pointer, number = ctypes.POINTER(ctypes.c_double), ctypes.c_int64
    function = ctypes.CFUNCTYPE(None, *[pointer] * 7, *[number] * 5, *[ctypes.c_double] * 3)(_quadratic.address())
    rng = np.random.default_rng(0)
    for d, t, n, by_clients, has_reference in itertools.product((1, 2, 3, 4, 7, 10, 21), (1, 3), (1, 5, 8), (0, 1), (0, 1)):
        shape = (d, d, 8) if by_clients else (d, d)
        arrays = [
            rng.normal(size=size) / d
            for size in (shape, (d, 8), (d, 8), (t, d) if by_clients else (t, d, 8), (t, d, 8), (8, d))
        ]
        results = []
        for width in (0, 2, 4, 8):
            x, scratch = arrays[-1].copy(), np.zeros((4 * d + 1, 8))
            given = [*arrays[:-1], x, scratch]
            flags = by_clients * quadratic.BY_CLIENTS | has_reference * quadratic.HAS_REFERENCE | width << 8
            function(*[a.ctypes.data_as(pointer) for a in given], d, t, n, d, flags, 0.1, 0.2, 0.3)
            results.append(x.tobytes())
            assert not np.array_equal(x[:n], arrays[-1][:n])
            assert np.array_equal(x[n:], arrays[-1][n:])
        assert len(set(results)) == 1, (d, t, n, by_clients, has_reference)
