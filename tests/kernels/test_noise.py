"""Randomness: Philox4x32-10 against published vectors and another implementation, and the normals made from it."""

import numpy as np
import pytest
import randomgen
from scipy import special, stats

from fald_hpc.kernels import noise, normals

KEY = noise.key(20240607)


def ranked(purpose, chain, client, k0, t, d, key=KEY):
    """Draw the normals of t steps and d coordinates at an address."""
    out = np.empty((t, d))
    normals.fill_normals(key, purpose, chain, client, k0, out)
    return out


def counter_words(purpose, chain, client, step, block):
    """Counter of a draw as the four 32-bit words of the documented layout, put together with Python integers."""
    counter = step | block << 40 | client << 64 | chain << 84 | purpose << 100 | noise.LAYOUT_VERSION << 108
    return [(counter >> shift) & 0xFFFFFFFF for shift in (0, 32, 64, 96)]


def independent_philox(counter, key):
    """Four outputs of randomgen's Philox4x32-10 at a counter (which it increments first)."""
    number = (sum(word << (32 * i) for i, word in enumerate(counter)) - 1) % 2**128
    generator = randomgen.Philox(counter=0, key=0, number=4, width=32)
    state = generator.state
    state["state"]["counter"] = np.array([(number >> s) & 0xFFFFFFFF for s in (0, 32, 64, 96)], dtype=np.uint32)
    state["state"]["key"] = np.array(key, dtype=np.uint32)
    state["buffer_pos"] = 4
    generator.state = state
    return [int(v) for v in generator.random_raw(4)]


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_known_answers_of_random123(counter, key, expected):
    assert [int(w) for w in noise.philox(*map(np.uint64, counter + key))] == expected
    assert independent_philox(counter, key) == expected


def test_agrees_with_randomgen_at_random_counters():
    rng = np.random.default_rng(0)
    for _ in range(200):
        counter = [int(v) for v in rng.integers(0, 2**32, 4)]
        key = [int(v) for v in rng.integers(0, 2**32, 2)]
        assert [int(w) for w in noise.philox(*map(np.uint64, counter + key))] == independent_philox(counter, key)


ADDRESSES = [
    (purpose, chain, client, step, block)
    for purpose in (noise.COMMON, noise.CHECK)
    for chain in (0, 1, 4095, 4096, noise.MAX_CHAINS - 1)
    for client in (0, 1, noise.MAX_CLIENTS - 1)
    for step in (0, 1, 2**32 - 1, 2**32, noise.MAX_STEPS - 1)
    for block in (0, 1, 2**24 - 1)
]


def test_words_use_the_documented_counter_layout():
    seen = set()
    for purpose, chain, client, step, block in ADDRESSES:
        counter = counter_words(purpose, chain, client, step, block)
        a, b, c, d = independent_philox(counter, [int(KEY) & 0xFFFFFFFF, int(KEY) >> 32])
        first, second = noise.words(KEY, purpose, chain, client, step, block)
        assert (int(first), int(second)) == (b << 32 | a, d << 32 | c)
        seen.add((int(first), int(second)))
    assert len(seen) == len(ADDRESSES)


def test_purposes_are_distinct():
    purposes = [noise.COMMON, noise.PRIVATE, noise.COINS, noise.SUBSET, noise.INIT, noise.PARTITION, noise.CHECK]
    assert len(set(purposes)) == 7
    assert all(0 < p < 256 for p in purposes)


def test_key_is_the_first_output_of_splitmix64():
    assert int(noise.key(0)) == 0xE220A8397B1DCDAF
    seeds = [0, 1, 2, 2**32, 2**63, 2**64 - 1]
    assert len({int(noise.key(s)) for s in seeds}) == len(seeds)


@pytest.mark.parametrize("n_blocks", [1, 2, 3, 7, 511, 512, 513, 1500, 65537, 100_003, 150_001])
def test_fill_words_equals_single_words(n_blocks):
    """Every row and block, near the ends of the internal pieces and of the rows."""
    t = max(3, min(700, 3000 // n_blocks))
    k0 = 2**32 - 2  # the rows cross the boundary of the low step word
    out = np.empty((t, 2 * n_blocks), np.uint64)
    normals.fill_words(KEY, noise.CHECK, 9, 5, k0, out)
    rows = sorted({0, 1, 2, t // 2, t - 1})
    blocks = {b for b in (0, 1, 255, 510, 511, 512, 513, 1023, n_blocks // 2) if b < n_blocks}
    blocks |= set(range(max(0, n_blocks - 40), n_blocks)) | set(range(0, n_blocks, max(1, n_blocks // 50)))
    for r in rows:
        for b in blocks:
            expected = noise.words(KEY, noise.CHECK, 9, 5, k0 + r, b)
            assert (out[r, 2 * b], out[r, 2 * b + 1]) == expected, (r, b)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 20, 1023, 1024, 1025, 3001, 200_001, 300_000])
def test_normals_depend_on_their_address_alone(d):
    """Rows cut in any way, and coordinates of a longer vector, are the same bits; pairs come from one block."""
    t = max(2, min(1100, 8000 // d))
    whole = ranked(noise.PRIVATE, 3, 2, 17, t, d)
    assert np.all(np.isfinite(whole))
    pieces = [ranked(noise.PRIVATE, 3, 2, 17 + r, 1, d)[0] for r in range(t)]
    assert np.array_equal(whole, np.array(pieces))
    longer = ranked(noise.PRIVATE, 3, 2, 17, t, d + 3)
    assert np.array_equal(longer[:, :d], whole)
    for r in (0, t - 1):
        for j in (0, (d - 1) // 2):
            x, y = noise.box_muller(*map(np.uint64, noise.words(KEY, noise.PRIVATE, 3, 2, 17 + r, j)))
            assert whole[r, 2 * j] == x
            if 2 * j + 1 < d:
                assert whole[r, 2 * j + 1] == y


def test_normals_of_the_box_muller_formula():
    """Against the plain formula in extended precision: radius from the first word's 53 bits, angle from the second."""
    a = np.empty((3000, 2), np.uint64)
    normals.fill_words(KEY, noise.CHECK, 0, 0, 0, a)
    z = ranked(noise.CHECK, 0, 0, 0, 3000, 2)
    uniform = ((a[:, 0] >> np.uint64(11)).astype(np.longdouble) + 1) / np.longdouble(2**53)
    radius = np.sqrt(-2 * np.log(uniform))
    angle = 2 * np.arccos(np.longdouble(-1)) * (a[:, 1].astype(np.longdouble) / np.longdouble(2) ** 64)
    assert np.max(np.abs(z[:, 0] - radius * np.cos(angle))) < 4e-15
    assert np.max(np.abs(z[:, 1] - radius * np.sin(angle))) < 4e-15


def test_box_muller_at_the_ends_of_its_words():
    ends = [0, 1, 2**11 - 1, 2**63, 2**64 - 1]
    for first in ends:
        for second in [*ends, 2**61, 2**62, 3 * 2**62]:
            x, y = noise.box_muller(np.uint64(first), np.uint64(second))
            assert np.isfinite(x)
            assert np.isfinite(y)
            assert np.hypot(x, y) <= np.sqrt(2 * 53 * np.log(2)) + 1e-12


def test_a_hundred_million_normals():
    """Moments, tails and Kolmogorov-Smirnov on 10^8 draws.

    With n draws the average of z^p has standard error sqrt((E z^2p - (E z^p)²) / n). Tail counts are binomial. The
    empirical distribution function is taken at 2^16 edges of equal probability: sqrt(n) times its largest error
    exceeds 2.5 with probability 2 exp(-12.5) = 7e-6, and the chi-square of the bins is within 4.5 sd.
    """
    t, d, chunks = 2048, 2049, 24
    bins = 2**16
    counts = np.zeros(bins, np.int64)
    powers = np.zeros(8)
    tails = {3.0: 0, 4.0: 0, 5.0: 0}
    largest = 0.0
    out = np.empty((t, d))
    for chunk in range(chunks):
        normals.fill_normals(KEY, noise.PRIVATE, chunk % 3, chunk % 5, 10_000 * chunk, out)
        z = out.ravel()
        u = special.ndtr(z)
        u *= bins
        counts += np.bincount(u.astype(np.int64), minlength=bins)[:bins]
        power = z.copy()
        for p in range(8):
            powers[p] += power.sum()
            power *= z
        magnitude = np.abs(z)
        largest = max(largest, magnitude.max())
        for edge in tails:
            tails[edge] += int(np.count_nonzero(magnitude > edge))
    n = t * d * chunks
    assert n > 10**8
    double_factorial = {0: 1, 2: 1, 4: 3, 6: 15, 8: 105, 10: 945, 12: 10395, 14: 135135, 16: 2027025}
    for p in range(1, 9):
        expected = double_factorial.get(p, 0)
        error = np.sqrt((double_factorial[2 * p] - expected**2) / n)
        assert abs(powers[p - 1] / n - expected) < 4.5 * error, p
    for edge, count in tails.items():
        expected = n * 2 * special.ndtr(-edge)
        assert abs(count - expected) < 4.5 * np.sqrt(expected), edge
    # P(no draw of 10^8 beyond 5.2) = exp(-20); P(one beyond 7.5) = 6e-6
    assert 5.2 < largest < 7.5
    distance = np.max(np.abs(np.cumsum(counts) / n - np.arange(1, bins + 1) / bins))
    assert np.sqrt(n) * distance < 2.5
    chi2 = np.sum((counts - n / bins) ** 2) / (n / bins)
    assert abs(chi2 - (bins - 1)) < 4.5 * np.sqrt(2 * (bins - 1))


PAIRS = {
    "purpose": (dict(purpose=noise.COMMON), dict(purpose=noise.PRIVATE)),
    "purpose of the start": (dict(purpose=noise.PRIVATE), dict(purpose=noise.INIT)),
    "chain": (dict(chain=0), dict(chain=1)),
    "chain beyond twelve bits": (dict(chain=3), dict(chain=3 + 4096)),
    "client": (dict(client=0), dict(client=1)),
    "client and chain": (dict(client=1, chain=0), dict(client=0, chain=1)),
    "far client": (dict(client=0), dict(client=2**19)),
    "step": (dict(k0=1000), dict(k0=1001)),
    "step beyond 32 bits": (dict(k0=1000), dict(k0=1000 + 2**32)),
    "seed": (dict(key=noise.key(1)), dict(key=noise.key(2))),
    "opposite seed": (dict(key=noise.key(0)), dict(key=noise.key(2**64 - 1))),
}


@pytest.mark.parametrize("what", PAIRS)
def test_streams_are_independent(what):
    """Correlations of x, x² and x³ between two streams, n = 2^20: each within 4.5 standard errors of 0.

    For independent normals the average of h(x) g(y), with h and g standardised, has standard error 1/sqrt(n).
    """
    n = 2**20
    base = dict(purpose=noise.PRIVATE, chain=2, client=3, k0=0, key=KEY)
    x, y = (ranked(t=n // 8, d=8, **{**base, **change}).ravel() for change in PAIRS[what])
    assert not np.array_equal(x, y)
    for h in (lambda z: z, lambda z: (z**2 - 1) / np.sqrt(2), lambda z: (z**3 - 3 * z) / np.sqrt(6)):
        for g in (lambda z: z, lambda z: (z**2 - 1) / np.sqrt(2)):
            assert abs(np.mean(h(x) * g(y))) < 4.5 / np.sqrt(n)


def test_coordinates_and_steps_are_independent():
    """Correlation matrix of 40 coordinates and of consecutive steps: 40·40 entries within 5.2 standard errors.

    The two-sided normal probability beyond 5.2 is 2e-7, times 3200 entries below 1e-3. Squares too.
    """
    n, d = 200_000, 40
    z = ranked(noise.COMMON, 0, 0, 0, n, d)
    for f in (lambda v: v, lambda v: (v**2 - 1) / np.sqrt(2)):
        w = f(z)
        here = w.T @ w / n
        assert np.max(np.abs(here - np.diag(np.diag(here)))) < 5.2 / np.sqrt(n)
        ahead = w[:-1].T @ w[1:] / (n - 1)
        assert np.max(np.abs(ahead)) < 5.2 / np.sqrt(n)


def test_uniformity_of_words_by_bit():
    """Each of the 64 bits of both words is fair, and adjacent bits are independent, to 5 standard errors."""
    n = 200_000
    out = np.empty((n, 2), np.uint64)
    normals.fill_words(KEY, noise.SUBSET, 1, 1, 0, out)
    bits = (out[:, :, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    signs = 2.0 * bits.reshape(n, 128) - 1
    assert np.max(np.abs(signs.mean(axis=0))) < 5 / np.sqrt(n)
    assert np.max(np.abs(np.mean(signs[:, 1:] * signs[:, :-1], axis=0))) < 5 / np.sqrt(n)


def test_seeds_give_different_and_repeatable_streams():
    a = ranked(noise.COMMON, 0, 0, 0, 4, 5, key=noise.key(1))
    assert np.array_equal(a, ranked(noise.COMMON, 0, 0, 0, 4, 5, key=noise.key(1)))
    assert not np.any(a == ranked(noise.COMMON, 0, 0, 0, 4, 5, key=noise.key(2)))


def test_kolmogorov_smirnov_of_a_small_sample():
    """The exact test, on a sample small enough for it."""
    assert stats.kstest(ranked(noise.PRIVATE, 0, 0, 0, 10_000, 3).ravel(), "norm").pvalue > 1e-4
