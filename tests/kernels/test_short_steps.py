"""Fused steps of regressions with short rows: the same bytes as the plain steps, in every lane, width and shape."""

import ctypes
import itertools
import math

import numpy as np
import pytest
from problems.settings import settings

from fald_hpc.kernels import _short_steps, glm, short_rows, short_steps
from fald_hpc.kernels import state as records
from fald_hpc.kernels.jit import DISABLED, instantiate, jit, no, yes
from fald_hpc.kernels.langevin import local_steps
from fald_hpc.potentials.linear import Linear
from fald_hpc.potentials.logistic import Logistic
from fald_hpc.potentials.poisson import Poisson
from fald_hpc.samplers import fald, vr_fald_star

pytestmark = pytest.mark.skipif(DISABLED, reason="without compilation there is nothing to fuse")

WIDTHS = (0, 2, 4, 8)
POTENTIALS = {"linear": Linear, "logistic": Logistic, "poisson": Poisson}
SAMPLERS = {
    "fald": (fald.estimate, "gradient", no),
    "vr_fald_star": (vr_fald_star.estimate, "difference", yes),
}
UNEQUAL = [40, 3, 0, 7, 100, 1, 16, 17, 2, 33, 12, 0, 90, 5, 64, 1, 18]
"""Rows of clients: none, fewer than any minibatch, as many, more."""
EQUAL = [60] * 17


@jit(cache=False)
def declined(problem, settings, state, work, k, stop, lo, hi, ends):
    """Stand for the plain steps: leave a mark."""
    work.failed[0] = 99


FUSED = {
    name: instantiate(short_steps.steps, f"test_{name}", cache=False, plain=declined, uses_reference=flag)
    for name, (_, _, flag) in SAMPLERS.items()
}
PLAIN = {}
for (sampler, (estimate, needed, _)), family in itertools.product(SAMPLERS.items(), POTENTIALS):
    gradient = getattr(POTENTIALS[family]().kernels, needed)
    one = instantiate(estimate, f"test_{sampler}_{family}", cache=False, forceinline=True, **{needed: gradient})
    bound = {"estimate": one, "read_ahead": glm.read_ahead}
    PLAIN[sampler, family] = instantiate(local_steps, f"test_{sampler}_{family}", cache=False, **bound)


def problem(family, counts, d, seed=0):
    """Return clients with so many rows, and everything that a row can have."""
    rng = np.random.default_rng(seed)
    n, number = sum(counts), short_rows.FAMILIES[family]
    of_row = {
        "weight": rng.uniform(0.5, 2.0, n),
        "offset": rng.normal(size=n),
        "target": rng.integers(0, 2, n).astype(float),
    }
    rows = rng.normal(size=(n, d)) / math.sqrt(d)
    return glm.Problem(
        rows=rows,
        **of_row,
        start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        prior=rng.uniform(0.1, 1.0, len(counts)),
        columns=np.zeros((d + 3, 0)),
        place=np.zeros(len(counts), np.int64),
        packed=short_steps.packed(rows, **of_row, family=number),
        family=number,
    )


def of(clients, tau, first_client=0):
    """Return the settings of a run of so many clients on this rank; one alone counts as part of a run that takes this path."""
    everyone = max(clients, short_steps.FEWEST_CLIENTS)
    return settings(clients, tau, step_size=1e-4, first_client=first_client, first_chain=3, n_clients=everyone)


def prepared(given, size, s):
    """Return state and work space of s chains with minibatches of at most ``size`` rows."""
    c, d, counts = given.start.size - 1, given.rows.shape[1], np.diff(given.start)
    state, rng = records.new_state(c, s, d, given.target.size), np.random.default_rng(7)
    for array in (state.theta, state.reference, state.shift, state.kept):
        array[:] = rng.normal(size=array.shape)
    batch = np.minimum(counts, size)
    # as many words as the largest subset takes
    work = records.new_work(s, d, counts, batch, 2 * ((size + 1) // 2), places=short_steps.places(d, size))
    return state, work


def moved(steps, given, size, tau, gaps, s=1, n_clients=None, first_client=0):
    """Return X of chains that took the steps of some gaps, and the rows touched; None where the fused path declined."""
    state, work = prepared(given, size, s)
    clients = given.start.size - 1 if n_clients is None else n_clients
    for k, stop in gaps:
        steps(given, of(clients, tau, first_client), state, work, k, stop, 0, s, records.STORE)
    return None if work.failed[0] == 99 else (state.theta, int(state.tally[records.ROWS_TOUCHED]))


def check(sampler, family, given, *arguments, **options):
    """Compare the fused steps with the plain ones, byte by byte."""
    theta, touched = moved(PLAIN[sampler, family], given, *arguments, **options)
    fused, fused_touched = moved(FUSED[sampler], given, *arguments, **options)
    assert np.all(np.isfinite(theta))
    assert theta.tobytes() == fused.tobytes(), arguments
    assert touched == fused_touched


@pytest.mark.parametrize("family", POTENTIALS)
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("d", [1, 4, 5, 6, 13, 15])
def test_fused_steps_equal_plain_steps(sampler, family, d):
    """Clients alone, in whole and in broken vectors, with common, private and both kinds of noise."""
    for c, size, counts in itertools.product((1, 5, 8, 9, 17), (1, 2, 3, 10, 16), (UNEQUAL, EQUAL)):
        given = problem(family, counts[:c], d)
        for tau in (0.0, 0.3, 1.0):
            check(sampler, family, given, size, tau, [(11, 24)])


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("size", [1, 7])
def test_gaps_shorter_and_longer_than_a_block_of_subsets(sampler, size):
    """Subsets and common noise that are left over are used; an earlier iteration and a later one draw anew."""
    gaps = [(2**32 - 700, 2**32 + 600), (2**32 + 600, 2**32 + 601), (2**32 + 601, 2**32 + 640), (5, 6), (6, 90), (300, 301)]
    check(sampler, "logistic", problem("logistic", UNEQUAL[:11], 3), size, 0.5, gaps)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(("s", "size"), [(5, 4), (30, 16)])
def test_several_chains(sampler, s, size):
    """So few that the subsets of all are chosen ahead, and more."""
    check(sampler, "poisson", problem("poisson", UNEQUAL, 4), size, 0.5, [(0, 30), (30, 31), (31, 300)], s=s)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_clients_without_rows(sampler):
    for counts in ([0], [0, 0, 0], [0] * 9 + [4]):
        check(sampler, "linear", problem("linear", counts, 2), 2, 0.5, [(0, 20)])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_clients_on_one_rank_equal_the_same_clients_on_two(sampler):
    """The lanes that share a vector change with the number of ranks; no bit does."""
    counts = UNEQUAL[:13]
    whole, at = problem("logistic", counts, 4), sum(counts[:6])
    together, _ = moved(FUSED[sampler], whole, 3, 0.5, [(0, 50)])
    part = slice(at, None)
    alone = whole._replace(
        **{name: np.ascontiguousarray(getattr(whole, name)[part]) for name in ("rows", "target", "weight", "offset", "packed")},
        start=whole.start[6:] - at,
        prior=whole.prior[6:],
    )
    state, work = prepared(alone, 3, 1)
    other, _ = prepared(whole, 3, 1)
    state.theta[:], state.kept[:] = other.theta[6:], other.kept[:, part]
    state.reference[:], state.shift[:] = other.reference, other.shift
    FUSED[sampler](alone, of(13, 0.5, 6), state, work, 0, 50, 0, 1, records.STORE)
    assert state.theta.tobytes() == together[6:].tobytes()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_comparison_sees_a_change_in_the_last_bit(sampler):
    """Negative control: the weights of one client are the next numbers."""
    given = problem("logistic", EQUAL[:5], 4)
    theta, _ = moved(PLAIN[sampler, "logistic"], given, 10, 0.5, [(0, 600)])
    weight = np.nextafter(given.weight, 2.0)
    weight[given.start[1] :] = given.weight[given.start[1] :]
    packed = short_steps.packed(given.rows, weight, given.offset, given.target, given.family)
    fused, _ = moved(FUSED[sampler], given._replace(packed=packed), 10, 0.5, [(0, 600)])
    assert theta[0].tobytes() != fused[0].tobytes()
    assert theta[1:].tobytes() == fused[1:].tobytes()


def test_what_is_not_short_takes_the_plain_path():
    given = problem("logistic", EQUAL[:5], 4)
    arguments = 1.0, [(0, 5)]
    assert moved(FUSED["fald"], given, 16, *arguments) is not None
    assert moved(FUSED["fald"], given, 17, *arguments) is None
    assert moved(FUSED["fald"], problem("logistic", [9] * 5, 16), 1, *arguments) is None
    other = short_steps.packed(given.rows, given.weight, given.offset, given.target, short_rows.NONE)
    assert moved(FUSED["fald"], given._replace(packed=other), 1, *arguments) is None
    assert short_steps.places(4, "full") == 0
    assert [short_steps.places(15, m) for m in (1, 2, 3, 15, 16)] == [1, 2, 4, 16, 16]


def by_width(given, width, batch, t, reference, fill=0, spoil=None, d=4):
    """Call the C function on all clients; ``fill`` is what places without a row hold, ``spoil`` a client that starts at NaN."""
    c, rng = batch.size, np.random.default_rng(3)
    most = short_steps.places(d, int(batch.max()))
    rows = np.full((2, t, most, 8), fill, np.int64)
    for i, r in itertools.product(range(c), range(t)):
        n = given.start[i + 1] - given.start[i]
        rows[i // 8, r, : batch[i], i % 8] = given.start[i] + rng.permutation(n)[: batch[i]]
    common, private = rng.normal(size=(t, d)), rng.normal(size=(2, t, d, 8))
    y, shift, kept = rng.normal(size=d), rng.normal(size=d), rng.normal(size=given.target.size)
    x = rng.normal(size=(c + 1, d))
    if spoil is not None:
        x[spoil] = np.nan
    before = x.copy()
    arrays = given.packed, kept, rows, common, private, y, shift, x, given.prior, np.diff(given.start), batch
    flags = given.family | reference * short_steps.HAS_REFERENCE | width << 8
    sizes = t * most, t, d, d, t, c, most, flags
    FUNCTION(*(a.ctypes.data for a in arrays), *sizes, 0.01, 0.1, 0.2)
    assert x[c].tobytes() == before[c].tobytes()
    assert np.all(x[:c] != before[:c])
    return x[:c]


FUNCTION = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 11, *[ctypes.c_int64] * 8, *[ctypes.c_double] * 3)(_short_steps.address())


@pytest.mark.parametrize("family", POTENTIALS)
@pytest.mark.parametrize("c", [1, 2, 5, 8, 9, 13, 16])
def test_all_vector_widths_give_the_same_bytes(family, c):
    """Widths 2, 4 and 8; on a processor that lacks one, the next narrower stands in."""
    for d, size, reference in itertools.product((1, 3, 4, 9, 15), (1, 2, 5, 16), (0, 1)):
        given = problem(family, [20, *UNEQUAL][:c], d)
        batch = np.minimum(np.diff(given.start), size)
        found = {by_width(given, width, batch, 5, reference, d=d).tobytes() for width in WIDTHS}
        assert len(found) == 1, (d, size, reference)


@pytest.mark.parametrize("width", WIDTHS)
def test_places_without_a_row_and_neighbours_do_not_show(width):
    given = problem("logistic", [20, *UNEQUAL[:12]], 4)
    batch = np.minimum(np.diff(given.start), 7)
    plain = by_width(given, width, batch, 9, 1)
    assert plain.tobytes() == by_width(given, width, batch, 9, 1, fill=given.target.size - 1).tobytes()
    for spoilt in (0, 6, 12):
        other = by_width(given, width, batch, 9, 1, spoil=spoilt)
        assert np.all(np.isnan(other[spoilt]))
        assert np.delete(plain, spoilt, 0).tobytes() == np.delete(other, spoilt, 0).tobytes()


def test_large_minibatches_take_no_turns():
    """Their rows are held for a step and the next one, not for each client of a turn: full gradients have as many as a client."""
    for batch, together in [(16, records.IN_TURNS), (17, 1), (100_000, 1)]:
        sizes = np.full(8, batch)
        work = records.new_work(1, 4, sizes + 1, sizes, 2)
        assert work.rows.shape == (2, together, batch)
