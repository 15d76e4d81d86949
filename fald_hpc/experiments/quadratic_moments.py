"""Exact stationary moments of FALD and VR-FALD* on quadratic clients with full gradients: specification section 3, item 3.

In deviations from the mode x*, with ``A_i = I - γ H_i``, ``Q = 2γ[(1-τ)I + (τ/b) 11'⊗I]`` and J the averaging projector::

    FALD        X̃_i = A_i X_i + γ H_i (μ_i - x*)    + noise
    VR-FALD*    X̃_i = A_i X_i + γ (H_i - H̄) Y      + noise,     Y' = mean of X with probability q_c, else Y
    X'          = J X̃ with probability p_c, else X̃

The mean and the second moment solve linear equations; the second by GMRES.
"""

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres


def average_moments(
    means: np.ndarray, precisions: np.ndarray, gamma: float, p: float, q: float | None, tau: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean float64[d] and covariance float64[d, d] of the average over clients.

    Parameters
    ----------
    means : float64[b, d]
    precisions : float64[b, d, d]
    gamma, p, q, tau : float
        Step size, averaging and refresh probability (q None: FALD), noise sharing.

    Raises
    ------
    ArithmeticError
        If the equations are not solved to 1e-9: the step is too large, or the problem too ill-conditioned.
    """
    b, d = means.shape
    mode = np.linalg.solve(precisions.sum(axis=0), np.einsum("ijk,ik->j", precisions, means))
    n = b * d
    local = np.zeros((n, n))
    for i in range(b):
        local[i * d : (i + 1) * d, i * d : (i + 1) * d] = np.eye(d) - gamma * precisions[i]
    ones = np.ones((b, b))
    project = np.kron(ones / b, np.eye(d))
    noise = 2.0 * gamma * np.kron((1.0 - tau) * np.eye(b) + tau / b * ones, np.eye(d))
    mean_of = np.kron(np.ones((1, b)) / b, np.eye(d))
    if q is None:
        pull = gamma * np.einsum("ijk,ik->ij", precisions, means - mode).ravel()
        outcomes = [(1.0 - p, local, pull, noise), (p, project @ local, project @ pull, project @ noise @ project)]
    else:
        drift = gamma * (precisions - precisions.mean(axis=0)).reshape(n, d)
        outcomes = []
        for average in (False, True):
            for refresh in (False, True):
                m, s = np.zeros((n + d, n + d)), np.zeros((n + d, n + d))
                m[:n, :n], m[:n, n:], s[:n, :n] = local, drift, noise
                if average:
                    m[:n], s[:n, :n] = project @ m[:n], project @ noise @ project
                m[n:, :n], m[n:, n:] = (mean_of, 0.0) if refresh else (0.0, np.eye(d))
                weight = (p if average else 1.0 - p) * (q if refresh else 1.0 - q)
                outcomes.append((weight, m, np.zeros(n + d), s))
    size = len(outcomes[0][2])
    expected = sum(w * m for w, m, _, _ in outcomes)
    mean = np.linalg.solve(np.eye(size) - expected, sum(w * c for w, _, c, _ in outcomes))
    feed = np.zeros((size, size))
    for w, m, c, s in outcomes:
        cross = np.outer(m @ mean, c)
        feed += w * (s + cross + cross.T + np.outer(c, c))
    second = _second_moment(outcomes, feed)
    covariance = second - np.outer(mean, mean)
    observe = np.hstack([mean_of, np.zeros((d, size - n))])
    return mode + observe @ mean, observe @ covariance @ observe.T


def _second_moment(outcomes: list[tuple[float, np.ndarray, np.ndarray, np.ndarray]], feed: np.ndarray) -> np.ndarray:
    """Solve S = E[M S M'] + feed."""
    size = len(feed)

    def rest(flat: np.ndarray) -> np.ndarray:
        s = flat.reshape(size, size)
        image = np.zeros_like(s)
        for w, m, _, _ in outcomes:
            image += w * (m @ s @ m.T)
        return (s - image).ravel()

    operator = LinearOperator((size * size, size * size), matvec=rest, dtype=np.float64)
    flat, _ = gmres(operator, feed.ravel(), rtol=1e-11, restart=150, maxiter=20)
    left = float(np.linalg.norm(rest(flat) - feed.ravel()) / np.linalg.norm(feed))
    if not left < 1e-9:
        raise ArithmeticError(f"the second moments are solved to {left:.1e} only: take a smaller step")
    s = flat.reshape(size, size)
    return 0.5 * (s + s.T)
