"""The Gaussian experiment: a closed form, orderings of the theory, and resuming."""

import numpy as np
import pytest

from fald_hpc.experiments import gaussian_table1 as table1
from fald_hpc.experiments.quadratic_moments import average_moments


def test_conjugate_case_of_one_client():
    # b = 1, quadratic U = h x²/2: variance 1/(h (1 - γh/2)), specification section 3 item 1
    mean, covariance = average_moments(np.array([[3.0]]), np.array([[[2.0]]]), 0.1, 0.3, None, 1.0)
    assert mean == pytest.approx(3.0)
    assert covariance[0, 0] == pytest.approx(1.0 / (2.0 * (1.0 - 0.1)), rel=1e-9)


def test_exact_squared_bias_is_ordered_as_the_theory_says():
    rng = np.random.default_rng(4)
    means, precisions = 10.0 * rng.standard_normal((6, 2)), np.empty((6, 2, 2))
    for i in range(6):
        q, _ = np.linalg.qr(rng.standard_normal((2, 2)))
        precisions[i] = (q * rng.uniform(0.5, 2.0, 2)) @ q.T
    true = np.trace(np.linalg.inv(precisions.sum(axis=0)))
    step = table1.largest_step(precisions)

    def bias(factor, q, tau):
        return (table1.exact_trace(means, precisions, factor * 0.2 * step, 0.2, q, tau) - true) ** 2

    for tau in (0.0, 1.0):
        for q in (None, 0.2):
            assert bias(0.5, q, tau) > bias(0.2, q, tau) > bias(0.1, q, tau)
    for factor in (0.5, 0.2, 0.1):
        assert bias(factor, 0.2, 1.0) < bias(factor, 0.2, 0.0) < bias(factor, None, 0.0)


def test_small_experiment_resumes(tmp_path, monkeypatch):
    monkeypatch.setitem(table1.SETTINGS, "tiny", table1.Setting("gaussian", 2000, 4, (0.2,), (0.5,), (1.0,)))
    rows = table1.run(tmp_path, "tiny")
    assert [row["sampler"] for row in rows] == ["fald", "vr_fald_star"]
    assert all(np.isfinite(row["mse"]) for row in rows)
    assert table1.run(tmp_path, "tiny") == rows
    assert "vr_fald_star" in table1.text(rows)
