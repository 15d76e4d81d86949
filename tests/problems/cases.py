"""Small problems of every potential, as the package takes them and as the plain transcription does.

Clients are uneven on purpose, one of them with a single row, with row weights, offsets and unequal prior shares where
a potential takes them.
"""

from typing import Any, NamedTuple

import numpy as np

import fald_hpc
from fald_hpc.data.clients import Clients
from fald_hpc.data.records import ClientData
from fald_hpc.potentials.gaussian import Gaussian
from fald_hpc.potentials.linear import Linear
from fald_hpc.potentials.logistic import Logistic
from fald_hpc.potentials.poisson import Poisson
from fald_hpc.potentials.softmax import Softmax
from oracles import models, quadratics
from oracles.transcription import Model

SIZES = (9, 4, 1)
SHARES = np.array([0.5, 0.2, 0.3])


class Case(NamedTuple):
    """One problem, twice."""

    potential: Any
    clients: Clients
    model: Model
    d: int
    step_size: float


def gaussian(diagonal: bool = False) -> Case:
    """Three Gaussian clients in three dimensions."""
    means, precisions = quadratics.random_clients(np.random.default_rng(1), 3, 3, 2.0)
    if diagonal:
        precisions = np.array([np.diag(np.diag(p)) for p in precisions])
    potential = Gaussian(covariance="diagonal" if diagonal else "dense")
    clients = Clients.from_gaussians(means, precisions=precisions)
    return Case(potential, clients, models.gaussian(means, precisions), 3, 0.1)


def regression(name: str, d: int = 3, sizes: tuple[int, ...] = SIZES) -> Case:
    """Regression with weights, offsets (where taken), a prior scale of 1.5 and unequal shares; intercept last."""
    rng = np.random.default_rng(abs(hash_of(name)) + d)
    features = [(0.4 if name == "poisson" else 1.0) * rng.standard_normal((n, d)) for n in sizes]
    with_ones = [np.column_stack([x, np.ones(len(x))]) for x in features]
    weights = [rng.uniform(0.5, 2.0, n) for n in sizes]
    offsets = None if name == "softmax" else [0.3 * rng.standard_normal(n) for n in sizes]
    if name == "linear":
        targets = [rng.standard_normal(n) for n in sizes]
    elif name == "softmax":
        targets = [rng.integers(0, 3, n).astype(float) for n in sizes]
    elif name == "poisson":
        targets = [rng.poisson(1.5, n).astype(float) for n in sizes]
    else:
        targets = [rng.integers(0, 2, n).astype(float) for n in sizes]
    extra = [None] * 3 if offsets is None else offsets
    records = [
        ClientData(f"client-{i}", x, y, w, o)
        for i, (x, y, w, o) in enumerate(zip(features, targets, weights, extra, strict=True))
    ]
    clients = Clients.from_arrays(records, prior_shares=SHARES)
    common = dict(prior_scale=1.5, intercept=True)
    if name == "softmax":
        model = models.softmax(with_ones, targets, 3, 1.5, weights, SHARES)
        return Case(Softmax(classes=3, **common), clients, model, 3 * (d + 1), 0.05)
    residual = {
        "linear": models.linear_residual(0.8),
        "logistic": models.logistic_residual,
        "poisson": models.poisson_residual,
    }[name]
    potential = {
        "linear": Linear(noise_sd=0.8, **common),
        "logistic": Logistic(**common),
        "poisson": Poisson(**common),
    }[name]
    model = models.generalised_linear(with_ones, targets, residual, 1.5, weights, offsets, SHARES)
    return Case(potential, clients, model, d + 1, {"linear": 0.02, "logistic": 0.05, "poisson": 0.01}[name])


def robust_gradient(theta, x, y, out):
    """Write the gradient of ``log cosh(x·θ - y)``, a user's own row potential: robust regression."""
    t = 0.0
    for j in range(theta.size):
        t += x[j] * theta[j]
    factor = np.tanh(t - y)
    for j in range(theta.size):
        out[j] = factor * x[j]


def row_potential() -> Case:
    """Return robust regression by a user's gradient of a row."""
    rng = np.random.default_rng(17)
    features = [rng.standard_normal((n, 3)) for n in SIZES]
    targets = [rng.standard_normal(n) for n in SIZES]
    weights = [rng.uniform(0.5, 2.0, n) for n in SIZES]
    clients = Clients.from_arrays(list(zip(features, targets, strict=True)), weights=weights, prior_shares=SHARES)
    model = models.generalised_linear(features, targets, lambda t, y: np.tanh(t - y), 1.5, weights, None, SHARES)
    return Case(fald_hpc.row_potential(robust_gradient, prior_scale=1.5), clients, model, 3, 0.05)


def hash_of(name: str) -> int:
    """Return a number that belongs to a name, the same in every process."""
    return sum(ord(letter) * 31**k for k, letter in enumerate(name)) % 2**31


def case(name: str) -> Case:
    """Return a problem by name."""
    if name == "gaussian":
        return gaussian()
    if name == "gaussian-diagonal":
        return gaussian(diagonal=True)
    if name.endswith("-empty"):
        return regression(name.removesuffix("-empty"), sizes=(9, 0, 4))
    if name == "row-potential":
        return row_potential()
    if name.endswith("-wide"):
        return regression(name.removesuffix("-wide"), d=19)
    return regression(name)


NAMES = (
    "gaussian",
    "gaussian-diagonal",
    "linear",
    "logistic",
    "softmax",
    "poisson",
    "logistic-wide",
    "logistic-empty",
    "row-potential",
)
"""``-wide`` is long enough for the blocked dot product, ``-empty`` has a client with no row: its prior share only."""
