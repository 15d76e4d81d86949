"""The built-in data are those of the specification."""

import re

import numpy as np
import pytest

from fald_hpc import config
from fald_hpc.data import builtin


def test_titanic_is_the_classic_table():
    x, y = builtin.titanic_rows()
    assert x.shape == (2201, 4)
    assert y.sum() == 711
    np.testing.assert_array_equal(x[:, 0], 1.0)
    np.testing.assert_allclose(x[:, 1:].mean(axis=0), 0.0, atol=1e-13)
    np.testing.assert_allclose(x[:, 1:].std(axis=0), 1.0, rtol=1e-13)
    codes = np.unique(x[:, 1:], axis=0, return_inverse=True)
    assert len(codes[0]) == 14
    crew, men = x[:, 1] == x[:, 1].max(), x[:, 3] == x[:, 3].max()
    assert (crew.sum(), y[crew & ~men].sum(), (~crew & men).sum()) == (885, 20, 869)
    assert (x[:, 2] == x[:, 2].max()).sum() == 109


def test_titanic_clients_are_a_fixed_heterogeneous_split():
    clients = builtin.titanic()
    assert len(clients) == 10
    assert clients.feature_names == ("intercept", "class", "child", "male")
    np.testing.assert_array_equal(np.sort(np.concatenate(clients.assignment)), np.arange(2201))
    _, counts = clients.label_table
    np.testing.assert_array_equal(counts, TITANIC_COUNTS)
    x, y = builtin.titanic_rows()
    for client, rows in zip(clients.load(range(10)), clients.assignment, strict=True):
        np.testing.assert_array_equal(client.features, x[rows])
        np.testing.assert_array_equal(client.target, y[rows])
    assert builtin.titanic().fingerprint(range(10)) == clients.fingerprint(range(10))


TITANIC_COUNTS = [
    [36, 42],
    [417, 10],
    [149, 56],
    [35, 46],
    [25, 4],
    [278, 263],
    [179, 80],
    [245, 31],
    [3, 61],
    [123, 118],
]


def test_titanic_step_is_a_quarter_of_the_papers():
    """γ = 2/(λmin + λmax)(Z'Z) over 4, to two digits."""
    x, _ = builtin.titanic_rows()
    eigenvalues = np.linalg.eigvalsh(x.T @ x)
    quarter = 0.5 / (eigenvalues[0] + eigenvalues[-1])
    assert config.load("titanic").sampler.step_size == float(f"{quarter:.1e}")


@pytest.mark.parametrize(("b", "d"), [(10, 4), (100, 20)])
def test_gaussian_clients_follow_the_authors_generator(b, d):
    clients = builtin.gaussian(b, d, seed=2)
    records = clients.load(range(b))
    means = np.array([r.mean for r in records])
    assert abs(means.std() - 10.0) < 4 * 10.0 / np.sqrt(2 * b * d)
    for record in records:
        covariance = np.linalg.inv(record.precision)
        blocks = np.kron(np.eye(d // 2), np.ones((2, 2)))
        np.testing.assert_array_equal(record.precision * (1 - blocks), 0.0)
        eigenvalues = np.linalg.eigvalsh(covariance)
        assert eigenvalues[0] > 0.0
        assert eigenvalues[-1] < 10.1
    twin = builtin.gaussian(b, d, seed=3).load([0])[0]
    assert not np.array_equal(twin.mean, records[0].mean)


def test_table1_step_is_a_cell_of_the_papers_table():
    """γ = p_c γ̄ / 10 with γ̄ = 2/(λmin + λmax) of the product's precision, to two digits."""
    clients = builtin.gaussian_table1()
    total = sum(r.precision for r in clients.load(range(len(clients))))
    eigenvalues = np.linalg.eigvalsh(total)
    bar = 2.0 / (eigenvalues[0] + eigenvalues[-1])
    cfg = config.load("gaussian-table1")
    assert cfg.sampler.step_size == float(f"{cfg.sampler.comm_prob * bar / 10:.1e}")
    assert (len(clients), total.shape[0], cfg.run.chains) == (100, 20, 100)


def test_the_regressions_least_squares_are_near_the_truth():
    clients = builtin.quickstart_regression()
    rows = clients.load(range(len(clients)))
    z = np.concatenate([np.column_stack([r.features, np.ones(len(r.target))]) for r in rows])
    y = np.concatenate([r.target for r in rows])
    estimate = np.linalg.solve(z.T @ z, z.T @ y)
    sd = 0.5 * np.sqrt(np.diag(np.linalg.inv(z.T @ z)))
    assert (np.abs(estimate - [2.0, -1.0, 1.0]) < 4 * sd).all()
    assert abs(np.std(y - z @ estimate) - 0.5) < 4 * 0.5 / np.sqrt(2 * len(y))


def test_data_and_texts_have_the_same_names():
    assert set(builtin.EXAMPLES) == set(config.example_names())
    for name in config.example_names():
        text = config.example_text(name)
        assert text.startswith("# ")
        assert re.search(r"^# folder = ", text, re.MULTILINE), name
        cfg = config.load(name)
        assert cfg.data.example == name
        clients = config.clients(cfg)
        assert (clients.kind == "gaussian") == (cfg.target.potential == "gaussian")
        assert clients.load([0])[0].id == clients.ids[0]
