"""Federated standardisation equals the pooled one, and is undone exactly in the model."""

import math

import numpy as np
import pytest

from fald_hpc.data import standardise
from fald_hpc.errors import UserError

RNG = np.random.default_rng(5)
CLIENTS = [RNG.normal(size=(n, 4)) * [1.0, 1e-3, 1e4, 2.0] + [0.0, 1e6, -1e4, 3.0] for n in (0, 1, 7, 400)]
for client in CLIENTS:
    client[:, 3] = 0.1


def add(arrays):
    """Sum exactly, entry by entry, as the averaging over ranks does."""
    return np.array([math.fsum(column) for column in zip(*arrays, strict=True)])


def fit(clients, intercept=True):
    return standardise.fit(clients, add, lambda a: a, intercept, clients[0].shape[1])


def test_equals_the_pooled_moments():
    pooled = np.concatenate(CLIENTS)
    result = fit(CLIENTS)
    np.testing.assert_allclose(result.mean[:3], pooled[:, :3].mean(axis=0), rtol=1e-13, atol=1e-16)
    np.testing.assert_allclose(result.sd[:3], pooled[:, :3].std(axis=0), rtol=1e-9)  # mean / sd reaches 1e9
    assert (result.mean[3], result.sd[3]) == (0.0, 1.0)
    z = standardise.apply(pooled, result.mean, result.sd)
    np.testing.assert_allclose(z[:, :3].std(axis=0), 1.0, rtol=1e-9)
    np.testing.assert_array_equal(z[:, 3], pooled[:, 3])


def test_without_an_intercept_columns_are_only_scaled():
    result = fit(CLIENTS, intercept=False)
    np.testing.assert_array_equal(result.mean, 0.0)
    np.testing.assert_array_equal(result.sd, fit(CLIENTS).sd)


def test_order_of_clients_does_not_matter():
    forward, backward = fit(CLIENTS), fit(CLIENTS[::-1])
    assert forward.mean.tobytes() == backward.mean.tobytes()
    assert forward.sd.tobytes() == backward.sd.tobytes()


def test_moments_do_not_depend_on_blocks(monkeypatch):
    x = RNG.normal(size=(1000, 3))
    whole = standardise.moments_rows(x, x[0])
    monkeypatch.setattr(standardise, "_BLOCK", 7)
    assert standardise.moments_rows(x, x[0]).tobytes() == whole.tobytes()
    np.testing.assert_array_equal(standardise.moments_rows(x[:0]), np.zeros(7))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("blocks", [1, 3])
def test_undo_leaves_every_linear_predictor_as_it_was(intercept, blocks):
    result = fit(CLIENTS, intercept)
    x = np.concatenate(CLIENTS)
    z = standardise.apply(x, result.mean, result.sd)
    if intercept:
        x, z = (np.column_stack([a, np.ones(len(a))]) for a in (x, z))
    draws = RNG.normal(size=(2, 5, x.shape[1] * blocks))
    original = standardise.undo(draws, result.mean, result.sd, intercept)
    for k in range(blocks):
        part = slice(k * x.shape[1], (k + 1) * x.shape[1])
        np.testing.assert_allclose(original[..., part] @ x.T, draws[..., part] @ z.T, rtol=1e-6, atol=1e-5)
    assert standardise.undo(draws[:, :0], result.mean, result.sd, intercept).shape == (2, 0, x.shape[1] * blocks)
    a = standardise.matrix(result.mean, result.sd, intercept, blocks)
    np.testing.assert_allclose(draws @ a.T, original, rtol=1e-12, atol=1e-12)


def test_no_rows_at_all_and_overflow_are_refused():
    with pytest.raises(UserError, match="no client has any row"):
        fit([np.empty((0, 2))])
    with pytest.raises(UserError, match="too large"):
        fit([np.array([[1e200], [-1e200]])])


def test_odd_scales_are_warned_of():
    top = standardise.extremes(np.array([[1e9, 1.0, 0.0, 1e-9], [-2e9, 0.0, 0.0, 0.0]]))[-4:]
    text = standardise.scale_warning(top, ["huge", "fine", "zero", "tiny"])
    assert "'huge', 'tiny'" in text
    assert "fine" not in text
    assert standardise.scale_warning(np.ones(2), ["a", "b"]) is None
