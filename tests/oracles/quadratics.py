"""Clients with quadratic potentials: the gradient estimates of each, all equally likely, written out.

Letters: b clients, d dimension, n rows of a client, m rows of its minibatch.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np


class Estimate(NamedTuple):
    """One value that the gradient estimate of a client can take: ``g(x) = hessian @ x - pull``.

    Attributes
    ----------
    hessian : float64[d, d]
        Nats per parameter squared.
    pull : float64[d]
        Nats per parameter.
    """

    hessian: np.ndarray
    pull: np.ndarray


Client = list[Estimate]
"""The equally likely estimates of a client; one entry if it uses the full gradient."""


def gaussian(means: np.ndarray, precisions: np.ndarray) -> list[Client]:
    """Clients ``U^i(x) = (x - mu_i)' H_i (x - mu_i) / 2`` with full gradients.

    Parameters
    ----------
    means : float64[b, d]
    precisions : float64[b, d, d]
    """
    return [[Estimate(h, h @ mu)] for mu, h in zip(means, precisions, strict=True)]


def regression(
    rows: Sequence[tuple[np.ndarray, np.ndarray]],
    noise_sd: float,
    prior_scale: float,
    batch: int | None = None,
) -> list[Client]:
    """Linear regression with known noise and the prior N(0, prior_scale² I) split equally over the clients.

    Parameters
    ----------
    rows : sequence of (float64[n, d], float64[n])
        Features and targets of each client.
    batch : int or None
        Rows of a minibatch; every subset is enumerated. None for full gradients.
    """
    b = len(rows)
    clients = []
    for x, y in rows:
        n, d = x.shape
        m = n if batch is None else min(batch, n)
        prior = np.eye(d) / (b * prior_scale**2)
        estimates = []
        for chosen in combinations(range(n), m):
            s = list(chosen)
            scale = (n / m if m else 0.0) / noise_sd**2
            estimates.append(Estimate(prior + scale * x[s].T @ x[s], scale * x[s].T @ y[s]))
        clients.append(estimates)
    return clients


def full(client: Client) -> Estimate:
    """Full gradient of a client: the average of its estimates."""
    return Estimate(np.mean([e.hessian for e in client], axis=0), np.mean([e.pull for e in client], axis=0))


def target(clients: Sequence[Client]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the product of the clients' potentials.

    Returns
    -------
    mean : float64[d]
    covariance : float64[d, d]
    """
    parts = [full(c) for c in clients]
    precision = np.sum([p.hessian for p in parts], axis=0)
    return np.linalg.solve(precision, np.sum([p.pull for p in parts], axis=0)), np.linalg.inv(precision)


def random_clients(rng: np.random.Generator, b: int, d: int, spread: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Draw means float64[b, d] and well-conditioned precisions float64[b, d, d] that differ between clients.

    Eigenvalues lie in [0.5, 2] in random directions.
    """
    means = spread * rng.standard_normal((b, d))
    precisions = np.empty((b, d, d))
    for i in range(b):
        q, _ = np.linalg.qr(rng.standard_normal((d, d)))
        h = (q * rng.uniform(0.5, 2.0, d)) @ q.T
        precisions[i] = (h + h.T) / 2
    return means, precisions
