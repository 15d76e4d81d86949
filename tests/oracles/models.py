"""Row gradients of the potentials, written from their negative log likelihoods.

The prior is N(0, prior_scale² I) on every coordinate, split by the shares w_i (default 1/b). A row's log likelihood
is multiplied by its weight; an offset is added to its linear predictor. Softmax has K x p parameters, one row of p
features for each class, flattened class by class.
"""

from collections.abc import Callable, Sequence

import numpy as np

from .transcription import Model

Residual = Callable[[np.ndarray, np.ndarray], np.ndarray]


def linear_residual(noise_sd: float) -> Residual:
    """Return the derivative of ``(y - t)² / (2 noise_sd²)`` in the predictor t."""
    return lambda t, y: (t - y) / noise_sd**2


def logistic_residual(t: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the derivative of ``log(1 + exp t) - y t`` in t."""
    return 1 / (1 + np.exp(-t)) - y


def poisson_residual(t: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the derivative of ``exp(t) - y t`` in t."""
    return np.exp(t) - y


def generalised_linear(
    features: Sequence[np.ndarray],
    targets: Sequence[np.ndarray],
    residual: Residual,
    prior_scale: float = 1.0,
    weights: Sequence[np.ndarray] | None = None,
    offsets: Sequence[np.ndarray] | None = None,
    prior_shares: np.ndarray | None = None,
) -> Model:
    """Regression whose row gradient is ``weight * residual(x·θ + offset, y) * x``."""
    b = len(features)

    def gradient_rows(client: int, rows: np.ndarray, theta: np.ndarray) -> np.ndarray:
        x = features[client][rows]
        t = np.einsum("md,...d->...m", x, theta)
        if offsets is not None:
            t = t + offsets[client][rows]
        r = residual(t, targets[client][rows])
        if weights is not None:
            r = r * weights[client][rows]
        return np.einsum("...m,md->...d", r, x)

    shares = np.full(b, 1 / b) if prior_shares is None else np.asarray(prior_shares)
    return Model(gradient_rows, lambda theta: theta / prior_scale**2, [len(f) for f in features], shares)


def softmax(
    features: Sequence[np.ndarray],
    labels: Sequence[np.ndarray],
    classes: int,
    prior_scale: float = 1.0,
    weights: Sequence[np.ndarray] | None = None,
    prior_shares: np.ndarray | None = None,
) -> Model:
    """Softmax regression; the gradient for class k is ``weight (p_k - 1[y = k]) x``."""
    b = len(features)

    def gradient_rows(client: int, rows: np.ndarray, theta: np.ndarray) -> np.ndarray:
        x = features[client][rows]
        table = theta.reshape(*theta.shape[:-1], classes, x.shape[1])
        t = np.einsum("mp,...kp->...mk", x, table)
        e = np.exp(t - t.max(axis=-1, keepdims=True))
        r = e / e.sum(axis=-1, keepdims=True)
        r = r - np.eye(classes)[labels[client][rows].astype(int)]
        if weights is not None:
            r = r * weights[client][rows][:, None]
        return np.einsum("...mk,mp->...kp", r, x).reshape(theta.shape)

    shares = np.full(b, 1 / b) if prior_shares is None else np.asarray(prior_shares)
    return Model(gradient_rows, lambda theta: theta / prior_scale**2, [len(f) for f in features], shares)


def gaussian(means: np.ndarray, precisions: np.ndarray) -> Model:
    """Clients ``U^i(x) = (x - mu_i)' H_i (x - mu_i) / 2``: a single row each, no prior."""

    def gradient_rows(client: int, rows: np.ndarray, x: np.ndarray) -> np.ndarray:
        return (x - means[client]) @ precisions[client].T

    b = len(means)
    return Model(gradient_rows, np.zeros_like, [1] * b, np.full(b, 1 / b))
