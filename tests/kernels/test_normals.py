"""Normals and words of many addresses at once, in C: those of single addresses, to the last bit, for every vector width."""

import ctypes

import numpy as np
import pytest

from fald_hpc.kernels import _normals, noise, normals
from fald_hpc.kernels.jit import DISABLED

KEY = noise.key(5)
WIDTHS = (0, 2, 4, 8)
"""0 for the widest; where a processor lacks one, the next narrower stands in."""

word, number = ctypes.c_uint64, ctypes.c_int64
ARGUMENTS = {
    "fald_normals": (word, word, word, word, number, number, ctypes.c_void_p, number),
    "fald_normals_lanes": (word, ctypes.c_void_p, ctypes.c_void_p, word, number, number, ctypes.c_void_p, number),
    "fald_words": (word, word, word, word, number, number, ctypes.c_void_p, number),
}


def compiled(name):
    """Return one of the C functions."""
    return ctypes.CFUNCTYPE(None, *ARGUMENTS[name])(_normals.addresses()[name])


def counters(purpose, chain, client):
    return tuple(int(c) for c in noise.high_counter(purpose, chain, client))


def one_by_one(purpose, chain, client, k0, t, n_blocks):
    """Words and normals of every block: uint64[t, 2 nb], float64[t, 2 nb]."""
    words, values = np.empty((t, 2 * n_blocks), np.uint64), np.empty((t, 2 * n_blocks))
    for r in range(t):
        for j in range(n_blocks):
            pair = noise.words(KEY, purpose, chain, client, k0 + r, j)
            words[r, 2 * j : 2 * j + 2] = pair
            values[r, 2 * j : 2 * j + 2] = noise.box_muller(*map(np.uint64, pair))
    return words, values


@pytest.mark.skipif(DISABLED, reason="to the bit only where compiled")
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("t", "d"), [(1, 1), (9, 1), (70, 2), (5, 3), (33, 4), (11, 7), (7, 20), (2, 63), (3, 64), (2, 129), (1, 300)]
)
def test_every_width_gives_what_single_addresses_give(t, d, width):
    """Rows shorter and longer than a vector and a group, whole groups and rests; nothing is written beyond the end."""
    n_blocks = (d + 1) // 2
    k0 = 2**32 - 3  # the rows cross the boundary of the low step word
    words, values = one_by_one(noise.PRIVATE, 4097, 30, k0, t, n_blocks)
    c2, c3 = counters(noise.PRIVATE, 4097, 30)
    out = np.full(t * d + 16, np.pi)
    compiled("fald_normals")(int(KEY), c2, c3, k0, t, d, out.ctypes.data, width)
    assert out[: t * d].tobytes() == np.ascontiguousarray(values[:, :d]).tobytes()
    assert np.all(out[t * d :] == np.pi)
    raw = np.full(t * 2 * n_blocks + 16, 77, np.uint64)
    compiled("fald_words")(int(KEY), c2, c3, k0, t, n_blocks, raw.ctypes.data, width)
    assert raw[: words.size].tobytes() == words.tobytes()
    assert np.all(raw[words.size :] == 77)


@pytest.mark.skipif(DISABLED, reason="to the bit only where compiled")
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("t", "d"), [(1, 1), (3, 2), (5, 5), (6, 20), (3, 129)])
def test_every_width_gives_the_same_lanes(t, d, width):
    streams = [counters(noise.COMMON, 4090 + lane, 3 * lane) for lane in range(8)]
    c2, c3 = (np.array(c, np.uint64) for c in zip(*streams, strict=True))
    out = np.full(t * d * 8 + 16, np.pi)
    compiled("fald_normals_lanes")(int(KEY), c2.ctypes.data, c3.ctypes.data, 12, t, d, out.ctypes.data, width)
    assert np.all(out[t * d * 8 :] == np.pi)
    for lane in range(8):
        _, values = one_by_one(noise.COMMON, 4090 + lane, 3 * lane, 12, t, (d + 1) // 2)
        assert np.array_equal(out[: t * d * 8].reshape(t, d, 8)[:, :, lane], values[:, :d])


@pytest.mark.skipif(DISABLED, reason="to the bit only where compiled")
def test_a_quarter_of_a_million_pairs_equal_the_scalar_functions():
    """Enough for every quadrant, and for mantissas on both sides of the root of two, to occur many thousand times."""
    t, d = 250, 2000
    words, out = np.empty((t, d), np.uint64), np.empty((t, d))
    normals.fill_words(KEY, noise.CHECK, 1, 2, 3, words)
    normals.fill_normals(KEY, noise.CHECK, 1, 2, 3, out)
    pairs = np.array([noise.box_muller(*pair) for pair in words.reshape(-1, 2)])
    assert pairs.tobytes() == out.tobytes()


def test_nothing_is_drawn_for_no_coordinates():
    normals.fill_normals(KEY, noise.CHECK, 0, 0, 0, np.empty((3, 0)))
    normals.fill_normals(KEY, noise.CHECK, 0, 0, 0, np.empty((0, 3)))
    normals.fill_normals_lanes(KEY, noise.CHECK, 0, 0, 1, 0, 0, np.empty((3, 0, 8)))
    normals.fill_words(KEY, noise.CHECK, 0, 0, 0, np.empty((3, 0), np.uint64))


@pytest.mark.parametrize("d", [1, 2, 5, 20, 129])
@pytest.mark.parametrize("over", ["chains", "clients"])
def test_normals_in_lanes_are_those_of_their_streams(d, over):
    for t, k0 in ((1, 0), (100 if not DISABLED else 3, 2**32 - 50)):
        lanes = np.empty((t, d, 8))
        step = (1, 0) if over == "chains" else (0, 1)
        normals.fill_normals_lanes(KEY, noise.PRIVATE, 4090, 30, *step, k0, lanes)
        for lane in range(8):
            single = np.empty((t, d))
            normals.fill_normals(KEY, noise.PRIVATE, 4090 + lane * step[0], 30 + lane * step[1], k0, single)
            assert single.tobytes() == np.ascontiguousarray(lanes[:, :, lane]).tobytes()
