"""FALD and VR-FALD*, line by line from the specification's section 2, fed with draws from outside.

Nothing is fast here and nothing is shared with the package. The parameter may carry leading axes (several chains at
once, ``x`` of shape [..., d]) if the model's gradients broadcast over them; coins may then be arrays [...].
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from .exact import mean_rows

FAULTS = (
    "printed_noise",
    "wrong_sign",
    "two_minibatches",
    "post_step_refresh",
    "sample_weighted",
)
"""Ways to be wrong on purpose, for the negative controls."""


class Model(NamedTuple):
    """The clients' potentials as plain functions.

    Attributes
    ----------
    gradient_rows : callable (client, rows int64[m], x float64[..., d]) -> float64[..., d]
        Sum of the rows' gradients, without any factor.
    gradient_prior : callable (x) -> float64[..., d]
        Gradient of the negative log prior U0.
    rows : sequence of int
        N_i of each client.
    prior_shares : float64[b]
        w_i.
    """

    gradient_rows: Callable[[int, np.ndarray, np.ndarray], np.ndarray]
    gradient_prior: Callable[[np.ndarray], np.ndarray]
    rows: Sequence[int]
    prior_shares: np.ndarray


class Draws(Protocol):
    """The random numbers of iteration k, one method for each purpose."""

    def common(self, k: int) -> np.ndarray:
        """Z, float64[..., d]."""

    def private(self, client: int, k: int) -> np.ndarray:
        """Z^i, float64[..., d]."""

    def subset(self, client: int, k: int, again: int = 0) -> np.ndarray:
        """Rows of the client's minibatch; ``again`` > 0 gives another one, for a negative control."""

    def averaging(self, k: int) -> np.ndarray | bool:
        """Coin B."""

    def refresh(self, k: int) -> np.ndarray | bool:
        """Coin B'."""


class Path(NamedTuple):
    """What a run left.

    Attributes
    ----------
    means : float64[steps, ..., d]
        Average over clients after each iteration.
    averaged : bool[steps, ...]
        Coins B.
    theta : float64[b, ..., d]
        The clients' parameters at the end.
    reference, shift : float64[..., d] or None
        Y and C at the end (VR-FALD*).
    rows_touched : int
        Row gradients evaluated for the estimates, summed over steps and clients.
    """

    means: np.ndarray
    averaged: np.ndarray
    theta: np.ndarray
    reference: np.ndarray | None
    shift: np.ndarray | None
    rows_touched: int


def estimate(model: Model, client: int, chosen: np.ndarray, x: np.ndarray) -> np.ndarray:
    """``g_S(x) = w_i ∇U0(x) + (N_i / n_i) sum over S of ∇U^{i,j}(x)``."""
    g = model.prior_shares[client] * model.gradient_prior(x)
    if len(chosen):
        g = g + model.rows[client] / len(chosen) * model.gradient_rows(client, chosen, x)
    return g


def full_gradient(model: Model, client: int, x: np.ndarray) -> np.ndarray:
    """``∇U^i(x)``."""
    return estimate(model, client, np.arange(model.rows[client]), x)


def run(
    model: Model,
    start: np.ndarray,
    steps: int,
    draws: Draws,
    *,
    step_size: float,
    noise_sharing: float,
    variance_reduced: bool,
    fault: str | None = None,
    mean: Callable[[np.ndarray], np.ndarray] = mean_rows,
) -> Path:
    """Run one sampler for ``steps`` iterations from X^i_0 = Y_0 = ``start``.

    Parameters
    ----------
    variance_reduced : bool
        True for VR-FALD*, False for FALD.
    fault : str or None
        One of ``FAULTS``: a sampler that is wrong on purpose.
    mean : callable float64[b, ..., d] -> float64[..., d]
        Average over clients; the default is correctly rounded, ``numpy`` quicker.
    """
    if fault is not None and fault not in FAULTS:
        raise ValueError(fault)
    b = len(model.rows)
    x = np.array([start] * b, dtype=np.float64)
    y = np.array(start, dtype=np.float64)
    c = mean(np.array([full_gradient(model, i, y) for i in range(b)])) if variance_reduced else None
    common_weight = noise_sharing if fault == "printed_noise" else noise_sharing / b
    means, averaged, touched = [], [], 0

    def average(stack: np.ndarray) -> np.ndarray:
        if fault == "sample_weighted":
            return np.tensordot(np.asarray(model.rows) / np.sum(model.rows), stack, axes=1)
        return mean(stack)

    for k in range(steps):
        # 1. and 2. gradient estimate and local step of every client
        z = draws.common(k)
        moved = np.empty_like(x)
        for i in range(b):
            s = draws.subset(i, k)
            g = estimate(model, i, s, x[i])
            touched += len(s)
            if variance_reduced:
                s_at_y = draws.subset(i, k, again=1) if fault == "two_minibatches" else s
                control = estimate(model, i, s_at_y, y) - c
                touched += len(s_at_y)
                g = g + control if fault == "wrong_sign" else g - control
            noise = np.sqrt(common_weight) * z + np.sqrt(1 - noise_sharing) * draws.private(i, k)
            moved[i] = x[i] - step_size * g + np.sqrt(2 * step_size) * noise
        # 3. averaging
        fires = np.asarray(draws.averaging(k))
        after = np.where(fires[..., None], average(moved), moved) if np.any(fires) else moved
        # 4. refresh, from the values before the local step
        if variance_reduced:
            renews = np.asarray(draws.refresh(k))
            if np.any(renews):
                y_new = mean(after if fault == "post_step_refresh" else x)
                c_new = mean(np.array([full_gradient(model, i, y_new) for i in range(b)]))
                y = np.where(renews[..., None], y_new, y)
                c = np.where(renews[..., None], c_new, c)
        x = after
        means.append(x.mean(axis=0))
        averaged.append(np.array(fires, dtype=bool))
    return Path(np.array(means), np.array(averaged), x, y if variance_reduced else None, c, touched)
