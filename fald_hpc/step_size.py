"""``step_size = "auto"``: the largest γ whose predicted error of the posterior standard deviations is small.

Linearise at the federated mode x*. With b clients let H_i = ∇²U^i(x*), a = (1/b) Σ H_i with largest eigenvalue λ, and
V = (1/b) Σ (H_i - a)² the spread of the clients' curvature with κ = max eigenvalue of a^(-1/2) V a^(-1/2). A round has on
average 1/p_c steps; r = (1 - p_c)/p_c of them follow the first. The relative error of a standard deviation is about::

    ε(γ) = γ λ/4                         discretisation of the average
         + γ r κ f/2                     clients drift apart between averagings; f = 1 for FALD,
                                         f = γ λ/(q_c + γ λ) for VR-FALD*, whose drift starts from the reference
         + γ² (1 - τ) L²/(3 p_c²)        private noise seen through different curvatures; L² = max eigenvalue of (1/b) Σ H_i²
         + γ ν/4                         minibatch noise; ν = max eigenvalue of (1/b) Σ Var g_S^i(x*) for FALD,
                                         ω δ/b for VR-FALD* with ω = Σ_i c_i Σ_j L_ij² and δ = 2γ/(b q_c) + s
         + R² s/4                        spread of the clients through the third derivative (regressions)

with s = 2γ(1 - τ)(1 - 1/b) r the clients' spread by private noise, plus for FALD (γ r)² H/d, H the heterogeneity;
R² the mean squared length of a row; c_i = N_i (N_i - n_i)/(n_i (N_i - 1)); L_ij a row's curvature. The step is the largest
γ with ε(γ) <= 0.02 and γ max_i λ_max(H_i) <= 1/2, rounded down to two digits. Above 400 parameters the eigenvalues are
bounded by power iteration on gradients (λ, L), by traces (ν), and κ by the clients' largest eigenvalues.
"""

import math
from dataclasses import dataclass

import numpy as np

from fald_hpc.errors import UserError
from fald_hpc.federation import Federation
from fald_hpc.mode import DENSE_LIMIT, dot
from fald_hpc.samplers.base import Sampler

TOLERANCE = 0.02


@dataclass(frozen=True)
class Curvature:
    """What the formula takes from the clients, in the notation of the module's docstring."""

    n_clients: int
    dimension: int
    largest: float
    client_largest: float
    squares: float
    spread: float
    noise: float
    omega: float
    heterogeneity: float
    row_length: float


def predicted_error(gamma: float, curvature: Curvature, sampler: Sampler) -> float:
    """Return ε(γ), the predicted relative error of the posterior standard deviations."""
    c = curvature
    b = c.n_clients
    p, tau = sampler.comm_prob, sampler.noise_sharing
    following = (1.0 - p) / p
    apart = 2.0 * gamma * (1.0 - tau) * (1.0 - 1.0 / b) * following
    if sampler.uses_reference:
        q = sampler.refresh_prob  # type: ignore[attr-defined]
        factor = gamma * c.largest / (q + gamma * c.largest)
        noise = c.omega / b * (2.0 * gamma / (b * q) + apart)
    else:
        factor = 1.0
        noise = c.noise
        apart += (gamma * following) ** 2 * c.heterogeneity / c.dimension
    return (
        gamma * c.largest / 4.0
        + gamma * following * c.spread * factor / 2.0
        + gamma**2 * (1.0 - tau) * c.squares / (3.0 * p * p) * (1.0 - 1.0 / b)
        + gamma * noise / 4.0
        + c.row_length * apart / 4.0
    )


def choose(curvature: Curvature, sampler: Sampler) -> float:
    """Return the step size γ (parameter² per nat), rounded down to two digits."""
    high = 0.5 / curvature.client_largest
    if predicted_error(high, curvature, sampler) <= TOLERANCE:
        return round_down(high)
    low = 0.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if predicted_error(middle, curvature, sampler) <= TOLERANCE:
            low = middle
        else:
            high = middle
    return round_down(low)


def round_down(value: float) -> float:
    """Return a positive number rounded down to two significant digits."""
    exponent = math.floor(math.log10(value)) - 1
    digits = math.floor(value / 10.0**exponent * (1.0 + 1e-12))
    return float(f"{digits}e{exponent}")


def measure(federation: Federation, mode: np.ndarray, batch: np.ndarray) -> Curvature:
    """Measure the clients' curvature and minibatch noise at the mode.

    Parameters
    ----------
    federation : Federation
        The clients.
    mode : float64[d]
        From :func:`fald_hpc.mode.find_mode`.
    batch : int64[c]
        n_i of this rank's clients.
    """
    potential, problem, d = federation.potential, federation.problem, federation.dimension

    def factor(i: int) -> float:
        n, m = int(federation.n_rows[i]), int(batch[i])
        return n * (n - m) / (m * (n - 1)) if n > m else 0.0

    def noise(i: int) -> np.ndarray:
        if factor(i) == 0.0:
            return np.zeros((d, d) if d <= DENSE_LIMIT else 1)
        rows = potential.row_gradients(problem, i, mode)
        centred = (rows - rows.mean(axis=0)) * math.sqrt(factor(i))
        return centred.T @ centred if d <= DENSE_LIMIT else np.array([np.sum(centred**2)])

    def omega(i: int) -> np.ndarray:
        c = factor(i)
        return np.array([c * np.sum(potential.row_curvatures(problem, i, mode) ** 2) if c > 0.0 else 0.0])

    def lengths(i: int) -> np.ndarray:
        squares = potential.row_lengths(problem, i)
        return np.array([float(squares.sum()), float(squares.size)])

    def square_gradient(i: int) -> np.ndarray:
        gradient = federation.client_gradient(i, mode)
        return np.array([dot(gradient, gradient)])

    if d <= DENSE_LIMIT:
        mean = federation.hessian(mode)
        squares = federation.mean(lambda i: (h := potential.hessian(problem, i, mode)) @ h)
        values, vectors = np.linalg.eigh(mean)
        if not values[0] > 0.0:
            raise UserError('the curvature at the mode is not positive: give step_size as a number instead of "auto".')
        largest = float(values[-1])
        root = vectors / np.sqrt(values)
        variation = root.T @ (squares - mean @ mean) @ root
        spread = max(0.0, float(np.linalg.eigvalsh((variation + variation.T) / 2.0)[-1]))
        square = float(np.linalg.eigvalsh((squares + squares.T) / 2.0)[-1])
        client_largest = federation.largest(
            lambda i: float(np.linalg.eigvalsh(potential.hessian(problem, i, mode))[-1])
        )
        nu = float(np.linalg.eigvalsh(federation.mean(noise))[-1])
    else:
        largest = _power_iteration(lambda x: federation.gradient(x), mode)
        each = [_power_iteration(lambda x, i=i: federation.client_gradient(i, x), mode) for i in range(batch.size)]
        square = float(federation.mean(lambda i: np.array([each[i] ** 2]))[0])
        average = float(federation.mean(lambda i: np.array([each[i]]))[0])
        spread = max(0.0, square - average**2) / largest
        client_largest = federation.largest(lambda i: each[i])
        nu = float(federation.mean(noise)[0])
    total_length, rows = federation.mean(lengths)
    return Curvature(
        n_clients=federation.n_clients,
        dimension=d,
        largest=largest,
        client_largest=client_largest,
        squares=square,
        spread=spread,
        noise=nu,
        omega=float(federation.mean(omega)[0]) * federation.n_clients,
        heterogeneity=float(federation.mean(square_gradient)[0]),
        row_length=float(total_length / rows) if rows > 0 else 0.0,
    )


def _power_iteration(gradient, x: np.ndarray, iterations: int = 30) -> float:  # type: ignore[no-untyped-def]
    """Return about the largest eigenvalue of the Hessian by differences of gradients, a tenth added for safety."""
    base = gradient(x)
    v = 1.0 + 0.1 * np.cos(np.arange(x.size))
    value = 0.0
    for _ in range(iterations):
        v = v / math.sqrt(dot(v, v))
        h = 1e-6 * max(1.0, math.sqrt(dot(x, x)))
        w = (gradient(x + h * v) - base) / h
        value = dot(v, w)
        v = w
        if not dot(v, v) > 0.0:
            return max(value, 1e-300)
    return 1.1 * value
