"""The drift watch against plain NumPy: the specification's transcription gives the paths, gradients row by row the rest."""

import json
import math
from itertools import combinations

import numpy as np
import pytest
from problems import cases, sampling
from problems.draws import CounterDraws
from typer.testing import CliRunner

import fald_hpc
from fald_hpc import FALD, Clients, Gaussian, Linear, Logistic, VRFALDStar
from fald_hpc.chains import batch_sizes
from fald_hpc.cli.main import app
from fald_hpc.comm import Serial
from fald_hpc.data import standardise
from fald_hpc.drift import grid, look, numbers, text, waiting, watch
from fald_hpc.federation import Federation
from fald_hpc.run import open_run
from oracles import transcription as tr
from oracles.exact import mean_rows

SEED, STEPS, BURN_IN, CHAINS = 42, 420, 50, 2
FIRST = 64
COMMON = dict(comm_prob=0.15, noise_sharing=0.3)

# The path agrees with the transcription to 1e-12 (test_trajectories); what is measured on it are sums of at most some
# hundred squares of differences. The smallest of these differences is about 1e-4 of the values that are subtracted, so
# 1e-12 / 1e-4 = 1e-8, with a factor of ten for the sums.
TOLERANCE = 1e-7


class Watched(CounterDraws):
    """The package's draws; the next mean after a coin that fires is that of an averaging."""

    fired: int | None = None

    def averaging(self, k):
        fires = super().averaging(k)
        self.fired = k if fires else None
        return fires


def followed(case, sampler, chain, steps, shared=True):
    """Return the path of a chain and, for each averaging, (iterations done, |X̃^i - X̄|² of every client)."""
    q = getattr(sampler, "refresh_prob", 1.0)
    batch = None if sampler.batch_size == "full" else sampler.batch_size
    draws = Watched(SEED, chain, case.model.rows, case.d, sampler.comm_prob, q, batch, shared)
    seen = []

    def mean(stack):
        centre = mean_rows(stack)
        if draws.fired is not None:
            seen.append((draws.fired + 1, np.sum((stack - centre) ** 2, axis=1)))
            draws.fired = None
        return centre

    path = tr.run(
        case.model, np.zeros(case.d), steps, draws, step_size=sampler.step_size, noise_sharing=sampler.noise_sharing,
        variance_reduced=isinstance(sampler, VRFALDStar), mean=mean,
    )  # fmt: skip
    return path, seen


def look_times(averagings):
    """Return the iterations of the looks: the first averaging at or after each due one, none twice."""
    times, last = [], BURN_IN
    while True:
        past = last - BURN_IN
        due = next(FIRST * 2**j for j in range(20) if FIRST * 2**j > past) + BURN_IN
        later = [k for k in averagings if k >= due]
        if not later:
            return times
        last = later[0]
        times.append(last)


def variances(case, sampler, i, x, y):
    """Return the traces of the variances of g_S(x) and g_S(x) - g_S(y) over all minibatches, each equally likely."""
    n = case.model.rows[i]
    m = n if sampler.batch_size == "full" else min(sampler.batch_size, n)
    subsets = [np.array(s, np.int64) for s in combinations(range(n), m)]
    plain = np.array([tr.estimate(case.model, i, s, x) for s in subsets])
    reduced = np.array([tr.estimate(case.model, i, s, x) - tr.estimate(case.model, i, s, y) for s in subsets])
    return [float(np.sum((v - v.mean(axis=0)) ** 2) / len(v)) for v in (plain, reduced)]


SETTINGS = {
    "fald": ("gaussian", FALD(step_size=0.1, **COMMON)),
    "fald-minibatch": ("logistic", FALD(step_size=0.05, batch_size=2, **COMMON)),
    "vr": ("gaussian", VRFALDStar(step_size=0.1, refresh_prob=0.1, **COMMON)),
    "vr-diagonal": ("gaussian-diagonal", VRFALDStar(step_size=0.1, refresh_prob=0.1, **COMMON)),
    "vr-minibatch": ("logistic", VRFALDStar(step_size=0.05, refresh_prob=0.1, batch_size=2, **COMMON)),
    "vr-one-row": ("linear", VRFALDStar(step_size=0.02, refresh_prob=0.05, batch_size=1, **COMMON)),
    "vr-softmax": ("softmax", VRFALDStar(step_size=0.05, refresh_prob=0.05, batch_size=3, **COMMON)),
    "vr-empty-client": ("poisson-empty", VRFALDStar(step_size=0.01, refresh_prob=0.1, batch_size=2, **COMMON)),
    "vr-own-model": ("row-potential", VRFALDStar(step_size=0.05, refresh_prob=0.1, batch_size=2, **COMMON)),
}


def sample(case, sampler, **more):
    options = dict(chains=CHAINS, seed=SEED, burn_in=BURN_IN, init=np.zeros(case.d)) | more
    return sampling.run(case, sampler, options.pop("steps", STEPS), **options)


@pytest.fixture
def early(monkeypatch):
    """Let the first look come as early as it may, whatever it costs."""
    monkeypatch.setattr(grid, "SHARE", 1e9)


@pytest.mark.parametrize("label", SETTINGS)
def test_every_number_is_the_plain_one(early, label):
    """Distances at every averaging of every chain; gradients and all minibatches at the looks, chains in turn."""
    name, sampler = SETTINGS[label]
    case = cases.case(name)
    drift = sample(case, sampler).manifest["drift"]
    b = len(case.model.rows)
    paths = [followed(case, sampler, chain, STEPS)[1] for chain in range(CHAINS)]
    seen = [square for path in paths for k, square in path if k > BURN_IN]
    assert drift["averagings"] == len(seen)
    assert drift["distance"] == pytest.approx(np.sqrt(np.mean(seen, axis=0)), rel=TOLERANCE)

    times = look_times([k for k, _ in paths[0]])
    assert len(times) == drift["looks"] >= 3
    sums = np.zeros((4, b))
    for j, k in enumerate(times):
        path = followed(case, sampler, j % CHAINS, k)[0]
        x, y = path.theta[0], path.reference
        assert np.all(path.theta == x)
        at_x = np.array([tr.full_gradient(case.model, i, x) for i in range(b)])
        sums[0] += np.sum((at_x - at_x.mean(axis=0)) ** 2, axis=1)
        if y is None:
            continue
        used = at_x - np.array([tr.full_gradient(case.model, i, y) for i in range(b)]) + path.shift
        sums[1] += np.sum((used - used.mean(axis=0)) ** 2, axis=1)
        sums[2:] += np.transpose([variances(case, sampler, i, x, y) for i in range(b)])
    means = sums / len(times)
    assert drift["heterogeneity"] == pytest.approx(np.sqrt(means[0]), rel=TOLERANCE)
    assert drift["all_clients"]["heterogeneity"] == pytest.approx(math.sqrt(means[0].mean()), rel=TOLERANCE)
    if not isinstance(sampler, VRFALDStar):
        assert drift["corrected"] is None
        assert drift["variance_ratio"] is None
        assert "no reference point" in drift["missing"]["variance_ratio"]
        return
    assert drift["corrected"] == pytest.approx(np.sqrt(means[1]), rel=TOLERANCE)
    if sampler.batch_size == "full":
        assert drift["variance_ratio"] is None
        assert "full gradients" in drift["missing"]["variance_ratio"]
        return
    for got, plain, reduced, n in zip(drift["variance_ratio"], means[2], means[3], case.model.rows, strict=True):
        if n <= sampler.batch_size:
            assert got is None, "a client whose minibatch is all its rows has no variance"
        else:
            assert got == pytest.approx(reduced / plain, rel=TOLERANCE)
    assert drift["all_clients"]["variance_ratio"] == pytest.approx(means[3].sum() / means[2].sum(), rel=TOLERANCE)


def test_distances_are_thinned_after_a_while():
    """The first 64 averagings and then those whose number, from 0, is a multiple of 16: 64 + 80 of 1339."""
    case = cases.case("gaussian")
    sampler = FALD(step_size=0.1, comm_prob=1.0, noise_sharing=0.3)
    drift = sample(case, sampler, chains=1, steps=BURN_IN + 1339).manifest["drift"]
    seen = [square for k, square in followed(case, sampler, 0, BURN_IN + 1339)[1] if k > BURN_IN]
    chosen = [square for n, square in enumerate(seen) if n < 64 or n % 16 == 0]
    assert (drift["averagings"], drift["distances"]) == (1339, 64 + 80)
    assert drift["distance"] == pytest.approx(np.sqrt(np.mean(chosen, axis=0)), rel=TOLERANCE)
    assert drift["distance"] != pytest.approx(np.sqrt(np.mean(seen, axis=0)), rel=1e3 * TOLERANCE)


def test_independent_coins_and_records_at_every_step(early):
    """Looks then come when they are due; every chain's averagings count for themselves."""
    name, sampler = SETTINGS["vr-minibatch"]
    case = cases.case(name)
    drift = sample(case, sampler, schedule="independent").manifest["drift"]
    seen = [s for chain in range(CHAINS) for k, s in followed(case, sampler, chain, STEPS, False)[1] if k > BURN_IN]
    assert drift["averagings"] == len(seen)
    assert drift["distance"] == pytest.approx(np.sqrt(np.mean(seen, axis=0)), rel=TOLERANCE)
    assert drift["looks"] == 3  # 64, 128 and 256 iterations after burn-in
    every = sample(case, sampler, record="every-step").manifest["drift"]
    plain = sample(case, sampler).manifest["drift"]
    assert every["distance"] == plain["distance"]
    assert every["looks"] == 3


def equal_curvature(means):
    """Clients (x - μ_i)²/2 in one dimension: with p_c = 1 and common noise every step leaves exactly γ (μ_i - μ̄)."""
    return Clients.from_gaussians(np.array(means)[:, None], precisions=np.ones((len(means), 1)))


def test_drift_of_equal_curvatures_is_known():
    """FALD: the gradients differ by μ_i - μ̄ wherever all agree, the distances are γ times that; VR-FALD* has neither."""
    means = np.array([-3.0, 0.5, 1.0, 5.5])
    apart = np.abs(means - means.mean())
    options = dict(steps=2000, chains=3, seed=3, burn_in=100)
    settings = dict(step_size=0.05, comm_prob=1.0, noise_sharing=1.0)
    fald = fald_hpc.sample(Gaussian("diagonal"), equal_curvature(means), FALD(**settings), **options).manifest["drift"]
    # rounding: positions of up to 10 are known to 1e-15, and distances are 0.0125 at least
    assert fald["distance"] == pytest.approx(0.05 * apart, rel=1e-12)
    assert fald["heterogeneity"] == pytest.approx(apart, rel=1e-13)
    assert fald["all_clients"]["heterogeneity"] == pytest.approx(math.sqrt(np.mean(apart**2)), rel=1e-13)
    vr = fald_hpc.sample(
        Gaussian("diagonal"), equal_curvature(means), VRFALDStar(**settings, refresh_prob=0.5), **options
    ).manifest["drift"]
    assert vr["heterogeneity"] == pytest.approx(apart, rel=1e-13)
    assert max(vr["corrected"]) < 1e-14 * 10
    assert max(vr["distance"]) < 1e-14 * 10


def split(same):
    """Four clients of a logistic regression: of one population, or each of its own."""
    rng = np.random.default_rng(11)
    data = []
    for i in range(4):
        x = rng.normal(0.0 if same else 1.5 * (i - 1.5), 1.0, size=(400, 2))
        y = (rng.random(400) < 1.0 / (1.0 + np.exp(-x @ [1.0, -1.0] - (0.0 if same else i - 1.5)))).astype(float)
        data.append((x, y))
    return Clients.from_arrays(data)


def drift_of(sampler, same):
    options = dict(steps=20_000, chains=2, seed=5, init="mode")
    return fald_hpc.sample(Logistic(intercept=True), split(same), sampler, **options).manifest["drift"]["all_clients"]


def test_different_clients_drift_and_the_reference_point_holds_them():
    """The negative control is clients of one population: they differ by sampling of 400 rows only."""
    settings = dict(step_size=2e-5, comm_prob=0.05, noise_sharing=1.0, batch_size=20)
    fald, vr = drift_of(FALD(**settings), False), drift_of(VRFALDStar(**settings, refresh_prob=0.05), False)
    alike = drift_of(FALD(**settings), True)
    assert fald["heterogeneity"] == pytest.approx(vr["heterogeneity"], rel=0.2)
    # H of one population is the variance of a sum of 400 row gradients, about 400 p (1 - p) |z|² < 400 · 0.25 · 3
    assert alike["heterogeneity"] < 1.5 * math.sqrt(300.0)
    assert fald["heterogeneity"] > 3.0 * alike["heterogeneity"]
    assert fald["distance"] > 1.5 * alike["distance"]
    assert vr["corrected"] < 0.25 * vr["heterogeneity"]
    assert vr["distance"] < 0.2 * fald["distance"]
    assert vr["variance_ratio"] < 0.01


def test_a_stale_reference_point_is_seen():
    """Rare refreshes: the variance ratio grows towards that of two independent points."""
    settings = dict(step_size=2e-5, comm_prob=0.05, noise_sharing=1.0, batch_size=20)
    often, rare = (drift_of(VRFALDStar(**settings, refresh_prob=q), False) for q in (0.05, 0.0005))
    assert rare["variance_ratio"] > 3.0 * often["variance_ratio"]
    assert rare["corrected"] > 1.5 * often["corrected"]


def test_grid():
    """First look, doublings, then every stride; costs move both to larger powers of two."""
    found = grid.grid(100, 0.0, 0.0)
    assert found == grid.Grid(100, 64, 131072)
    steps, k = [], 0
    for _ in range(14):
        k = found.after(k)
        steps.append(k - 100)
    assert steps == [64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 393216]
    assert found.after(163) == 164
    assert found.after(164) == 228
    # a look as dear as 1000 iterations: 64 · 1000 iterations pass before the first
    assert grid.grid(0, 1e6, 1e3) == grid.Grid(0, 65536, 131072)
    assert grid.grid(0, 8800, 440) == grid.Grid(0, 2048, 131072)


@pytest.mark.parametrize(("look_rows", "step_rows"), [(1e6, 1e3), (8800, 840), (300, 299), (1e9, 10)])
def test_looks_touch_few_rows(look_rows, step_rows):
    """At no iteration is the share of rows touched by looks above 1/64."""
    found = grid.grid(0, look_rows, step_rows)
    k = 0
    for taken in range(1, 2000):
        k = found.after(k)
        assert taken * look_rows <= step_rows * k / 64.0


def test_summary_and_command(early, tmp_path):
    name, sampler = SETTINGS["vr-minibatch"]
    case = cases.case(name)
    run = sample(case, sampler, out=tmp_path / "run")
    found = json.loads((tmp_path / "run" / "summary.json").read_text())["drift"]
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())["drift"]
    assert {key: manifest[key] for key in ("averagings", "looks", "all_clients", "missing")} == {
        key: found[key] for key in ("averagings", "looks", "all_clients", "missing")
    }
    assert manifest["distance"] == run.manifest["drift"]["distance"]
    order = np.argsort([-d for d in manifest["distance"]])
    assert [row["client"] for row in found["worst"]] == [f"client-{i}" for i in order]
    assert open_run(tmp_path / "run").summary()["drift"] == found
    printed = CliRunner().invoke(app, ["summary", str(tmp_path / "run")])
    assert printed.exit_code == 0
    lines = printed.output.splitlines()
    (at,) = [n for n, line in enumerate(lines) if line.startswith("drift of 3 clients")]
    assert lines[at + 1].split() == ["client", "distance", "heterogeneity", "corrected", "variance", "ratio"]
    assert lines[at + 2].split()[:2] == [f"client-{order[0]}", f"{manifest['distance'][order[0]]:.3g}"]


def arrays(b=3, averagings=4, looks=2):
    apart = np.arange(1.0, 2 * b + 1).reshape(b, 2)
    sums = np.arange(1.0, 4 * b + 1).reshape(b, 4)
    counts = np.array([averagings, averagings])
    return dict(zip(watch.ARRAYS, (apart, counts, sums, np.array([looks])), strict=True))


def test_numbers_and_digest():
    found = numbers.numbers(arrays(), True, True, np.array([3.0, 1.0]))
    assert found["averagings"] == 8
    assert found["distance"] == [math.sqrt(3 / 8), math.sqrt(7 / 8), math.sqrt(11 / 8)]
    assert found["corrected"][2] == math.sqrt(10 / 2)
    assert found["variance_ratio"] == [4 / 3, 8 / 7, 12 / 11]
    assert found["all_clients"]["distance"] == math.sqrt(21 / 8 / 3)
    assert found["all_clients"]["variance_ratio"] == 24 / 21
    assert found["all_clients"]["distance_in_sd"] == math.sqrt(7 / 8) / 2.0
    small = numbers.digest(numbers.numbers(arrays(8), True, True, None), list("abcdefgh"))
    assert [row["client"] for row in small["worst"]] == list("hgfed")
    assert small["all_clients"]["distance_in_sd"] is None
    printed = text.lines({"drift": small})
    assert printed[0] == "drift of 8 clients, 8 averagings, 2 looks"
    assert [line.split()[0] for line in printed[1:8]] == ["client", "all", *"hgfed"]
    assert "refresh_prob" in printed[8], "a ratio above 1 is worth a word"
    assert text.lines({}) == []


def test_runs_too_short_to_look():
    found = numbers.numbers(arrays(averagings=0, looks=0), True, True, None)
    assert all(found[name] is None for name in numbers.COLUMNS)
    assert set(found["missing"]) == set(numbers.COLUMNS)
    printed = text.lines({"drift": numbers.digest(found, list("abc"))})
    assert printed == ["drift of 3 clients, 0 averagings, 0 looks"]
    run = fald_hpc.sample(Gaussian("diagonal"), equal_curvature([0.0, 1.0]), FALD(step_size=0.1), steps=20, burn_in=0)
    assert run.manifest["drift"]["looks"] == 0
    assert run.manifest["drift"]["heterogeneity"] is None
    assert run.manifest["drift"]["distance"] is not None


def test_a_look_that_fails_is_left_out():
    """A user's gradient that raises, or is not finite, gives no numbers, and nothing else happens."""

    def gradient(theta, x, y, out):
        if theta[0] > 1.0:
            raise ValueError("too far")
        out[0] = math.sqrt(1.0 - theta[0]) - y

    clients = Clients.from_arrays([(np.ones((4, 1)), np.arange(4.0)), (np.ones((3, 1)), np.arange(3.0))])
    potential = fald_hpc.row_potential(gradient)
    data = clients.load(range(2))
    problem = potential.pack(data, np.full(2, 0.5))
    rows = np.array([4, 3])
    federation = Federation(potential, problem, rows, 2, 0, ["a"], Serial())
    observer = look.Observer(federation, batch_sizes(rows, 2), True)
    observer.compile()
    at = lambda x: (np.array([x]), np.zeros(1), np.zeros(1), np.zeros(0))  # noqa: E731
    good = observer.look(*at(0.5))
    assert np.all(np.isfinite(good))
    assert np.all(good[:, look.PLAIN] > 0.0)
    assert observer.look(*at(2.0)) is None
    assert observer.look(*at(np.nan)) is None


@pytest.mark.parametrize("intercept", [False, True])
def test_spread_in_the_units_of_the_sampled_parameters(intercept):
    """The inverse of the matrix that undoes a standardisation, applied to the covariance of the results."""
    rng = np.random.default_rng(2)
    x = rng.normal([3.0, -40.0], [0.5, 20.0], size=(300, 2))
    y = 2.0 + x @ [1.0, 0.1] + rng.normal(size=300)
    clients = Clients.from_arrays([(x[:100], y[:100]), (x[100:], y[100:])])
    run = fald_hpc.sample(
        Linear(intercept=intercept, prior_scale=10.0), clients, VRFALDStar(), steps=4000, chains=2, standardise=True
    )
    mean = x.mean(axis=0) if intercept else np.zeros(2)
    back = np.linalg.inv(standardise.matrix(mean, x.std(axis=0), intercept))
    spread = math.sqrt(np.trace(back @ run.covariance @ back.T))
    all_clients = run.manifest["drift"]["all_clients"]
    # the intercept's variance in the data's units is about 40² / 20² times as large: two digits cancel of sixteen
    assert all_clients["distance_in_sd"] == pytest.approx(all_clients["distance"] / spread, rel=1e-9)


def test_waiting_of_ranks():
    """Rank 1 never waits more than its shortest message: it is the slow one."""
    clocks = np.array([[100.0, 5.0, 0.01], [100.0, 1.0, 0.01], [100.0, 3.0, 0.02]])
    part = waiting.record(clocks, 10, 90)
    assert part["waiting"] == {"least": 0.0, "mean": pytest.approx(5.0 / 3.0), "largest": 4.0}
    assert part["in_messages"] == {"least": 1.0, "mean": 3.0, "largest": 5.0}
    assert (part["steps"], part["ranks"], part["messages"], part["slowest_rank"]) == ([10, 90], 3, 100, 1)
    assert waiting.record(clocks[:1], 0, 9) is None
    assert waiting.record(np.zeros((4, 3)), 0, 9) is None
    total = waiting.total([part, part])
    assert total["waiting"]["largest"] == 8.0
    assert total["parts"] == 2
    assert "least on rank 1" in text.waiting(total)
    assert "2 parts" in text.waiting(total)
    assert waiting.earlier({"drift": {"waiting": [part, part]}}) == [part, part]
    for odd in ({}, {"drift": 3}, {"drift": {"waiting": "ab"}}, {"drift": {"waiting": [{"ranks": 2}]}}):
        assert waiting.earlier(odd) == []
    assert "repeat" in text.lines({"drift": {"clients": "many"}})[0]
    assert waiting.total([]) is None
    assert text.waiting(None) == ""
