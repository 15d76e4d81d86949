"""Data that are wrong end in one sentence before anything is written; data that are only odd are sampled.

What a single file may look like is in ``test_readers.py``; here are the cases that only a model or a run can tell.
"""

import time
import warnings

import numpy as np
import pytest

import fald_hpc
from fald_hpc import Clients, Linear, Logistic, Poisson, Softmax, UserError, VRFALDStar

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 2))


def sample(potential, clients, steps=400, **more):
    return fald_hpc.sample(potential, clients, VRFALDStar(batch_size=5), steps=steps, chains=2, seed=4, **more)


def labels(*values):
    return np.resize(np.array(values, float), 40)


@pytest.mark.parametrize(
    ("potential", "y", "words"),
    [
        (Logistic(), labels(0, 1, 2), ["label 2 in row 3", "labels 0 and 1"]),
        (Logistic(), labels(-1, 1), ["label -1 in row 1", "labels 0 and 1"]),
        (Logistic(), labels(0, 0.5), ["label 0.5 in row 2"]),
        (Softmax(classes=3), labels(0, 1, 2, 3), ["label 3 in row 4", "0 to 2"]),
        (Softmax(classes=3), labels(0, 1.5), ["label 1.5 in row 2"]),
        (Poisson(), labels(0, 3, -1), ["label -1 in row 3"]),
        (Poisson(), labels(0, 2.5), ["label 2.5 in row 2"]),
    ],
)
def test_labels_outside_the_range_of_the_family(tmp_path, potential, y, words):
    clients = Clients.from_arrays({"fine": (X, np.zeros(40)), "odd": (X, y)})
    with pytest.raises(UserError) as caught:
        sample(potential, clients, out=tmp_path / "run")
    for word in ("client odd", *words):
        assert word in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_constant_and_collinear_columns_are_accepted():
    """The prior keeps the posterior proper where the likelihood says nothing: that direction has its sd."""
    twice = np.column_stack([X[:, 0], X[:, 0], np.ones(40), np.zeros(40)])
    y = X[:, 0] + 0.1 * RNG.normal(size=40)
    clients = Clients.from_arrays([(twice[:25], y[:25]), (twice[25:], y[25:])])
    sampler = VRFALDStar(step_size=0.02, comm_prob=0.5)
    run = fald_hpc.sample(Linear(noise_sd=2.0, prior_scale=2.0), clients, sampler, steps=200_000, chains=2, seed=4)
    assert np.isfinite(run.mean).all()
    assert (run.sd > 0.0).all()
    # twins share their effect, of which the 40 rows know the sum to about 2 / sqrt(40) = 0.3
    assert run.mean[0] + run.mean[1] == pytest.approx(1.0, abs=0.3)
    # the column of zeros is the prior alone: sd 2; an sd is known to sd / sqrt(2 ESS)
    ess = run.summary()["parameters"][3]["ess"]
    assert ess > 100
    assert run.sd[3] == pytest.approx(2.0, rel=4.0 / np.sqrt(2.0 * ess))


def test_standardise_leaves_constant_columns_alone():
    constant = np.column_stack([X, np.full(40, 7.0)])
    clients = Clients.from_arrays([(constant, labels(0, 1))])
    run = sample(Logistic(intercept=True), clients, standardise=True)
    assert np.isfinite(run.mean).all()


@pytest.mark.parametrize("scale", [1e9, 1e-9])
def test_huge_and_tiny_scales_are_warned_of_once_and_sampled(scale):
    clients = Clients.from_arrays([(X * [1.0, scale], labels(0, 1))], feature_names=["fine", "odd"])
    with pytest.warns(UserWarning, match="'odd' have a huge or tiny scale") as caught:
        run = sample(Logistic(), clients)
    assert len(caught) == 1
    assert "standardise" in str(caught[0].message)
    assert np.isfinite(run.mean).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(sample(Logistic(), clients, standardise=True).mean).all()


def test_clients_of_one_row_and_of_none():
    parts = {"one": (X[:1], labels(1)[:1]), "none": (X[:0], labels(1)[:0]), "many": (X[1:], labels(0, 1)[1:])}
    run = sample(Logistic(), Clients.from_arrays(parts))
    assert np.isfinite(run.mean).all()
    alone = Clients.from_arrays({"one": (X[:1], labels(1)[:1])})
    assert np.isfinite(sample(Logistic(), alone).mean).all()


def test_no_row_at_all_is_the_prior():
    run = sample(Linear(prior_scale=3.0), Clients.from_arrays([(X[:0], X[:0, 0])] * 2), steps=20_000)
    rows = run.summary()["parameters"]
    for row in rows:
        # N(0, 9): at least four standard errors of sd and mean
        assert row["ess"] > 400
        assert row["sd"] == pytest.approx(3.0, rel=4.0 / np.sqrt(2.0 * 400.0))
        assert abs(row["mean"]) < 4.0 * row["mcse"]


def test_ten_thousand_clients_of_two_rows():
    """Listed, loaded, sampled and summarised in seconds: nothing is quadratic in the number of clients."""
    rng = np.random.default_rng(8)
    features = rng.normal(size=(10_000, 2, 3))
    targets = features @ np.array([1.0, -2.0, 0.5]) + rng.normal(size=(10_000, 2))
    clients = Clients.from_arrays(list(zip(features, targets, strict=True)))
    sample(Linear(), Clients.from_arrays([(features[0], targets[0])]), steps=10)  # compiled before the clock runs
    begun = time.monotonic()
    run = sample(Linear(), clients, steps=300)
    # least squares over 20000 rows: every coefficient is known to 1/sqrt(20000), the chains add their Monte Carlo error
    error = 4.0 * (1.0 / np.sqrt(20_000.0) + run.sd)
    assert (np.abs(run.mean - [1.0, -2.0, 0.5]) < error).all()
    assert time.monotonic() - begun < 60.0


@pytest.mark.parametrize("chosen", [False, True])
def test_time_to_read_grows_with_the_columns_and_not_with_their_square(tmp_path, chosen):
    """Wide tables (genes, voxels): the header is looked up, not searched for each column."""
    from fald_hpc.data.columns import Columns
    from fald_hpc.data.readers import read_rows

    def seconds(count):
        names = [f"gene-with-a-long-name-{j}" for j in range(count)]
        path = tmp_path / f"{count}.csv"
        path.write_text(",".join([*names, "y"]) + "\n" + ",".join(["1"] * (count + 1)) + "\n")
        columns = Columns("y", features=tuple(reversed(names)) if chosen else None)
        times = []
        for _ in range(2):
            begun = time.process_time()
            assert read_rows(path, columns).features.shape == (1, count)
            times.append(time.process_time() - begun)
        return min(times)

    # eight times the columns: 8 times the work when linear, 64 times when searched
    assert seconds(16_000) < 24.0 * seconds(2_000)


def test_a_megabyte_of_empty_lines_is_no_hang(tmp_path):
    from fald_hpc.data.columns import Columns
    from fald_hpc.data.readers import read_rows

    begun = time.monotonic()
    for end in ("\n", "\r", "\r\n"):
        (tmp_path / "odd.csv").write_bytes((end * 500_000 + f"a,y{end}1,0{end}").encode())
        assert read_rows(tmp_path / "odd.csv", Columns("y")).features.tolist() == [[1.0]]
    (tmp_path / "odd.csv").write_bytes(b"\n" * 1_000_000)
    with pytest.raises(UserError, match="no header"):
        read_rows(tmp_path / "odd.csv", Columns("y"))
    assert time.monotonic() - begun < 10.0


def test_huge_gaussians_are_refused():
    for precision in ([[1e308, 0.0], [0.0, 1e308]], [[1e308, 9e307], [9e307, 1e308]]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserError, match="rescale"):
                Clients.from_gaussians([[0.0, 0.0]], precisions=[precision])
