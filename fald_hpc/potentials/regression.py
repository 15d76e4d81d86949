"""What linear, logistic and Poisson regression share: packing, curvature and the Gaussian prior."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fald_hpc.data.records import ClientData
from fald_hpc.errors import UserError
from fald_hpc.kernels import glm, short_rows, short_steps
from fald_hpc.kernels.jit import DISABLED, instantiate, jit, no, yes
from fald_hpc.potentials.base import Kernels, Potential, check_scale

INTERCEPT = "intercept"


@jit
def weighted_gram(rows, weights, out):
    """Add Σ_j w_j z_j z_jᵀ to out: float64[d, d]."""
    for row in range(rows.shape[0]):
        for a in range(rows.shape[1]):
            for b in range(rows.shape[1]):
                out[a, b] += weights[row] * rows[row, a] * rows[row, b]


@jit
def weighted_squares(rows, weights, out):
    """Add Σ_j w_j z_j² to out: float64[p]."""
    for row in range(rows.shape[0]):
        for a in range(rows.shape[1]):
            out[a] += weights[row] * rows[row, a] * rows[row, a]


@jit
def _predictors(rows, offset, x, out):
    for row in range(rows.shape[0]):
        out[row] = glm.predictor(rows, row, x) + offset[row]


def square_lengths(rows: np.ndarray) -> np.ndarray:
    """Return |z|² of every row: float64[n]."""
    out = np.zeros(rows.shape[0])
    for column in rows.T:
        out += column * column
    return out


def glm_kernels(label: str, residual: Callable[..., Any]) -> Kernels:
    """Return the compiled functions of a model with one linear predictor a row, from its residual."""
    rows = instantiate(glm.rows_residuals, label, forceinline=True, residual=residual)
    return Kernels(
        label,
        instantiate(glm.gradient, label, forceinline=True, residual=residual, residuals_of=rows),
        instantiate(glm.difference, label, forceinline=True, residual=residual, residuals_of=rows),
        instantiate(glm.full_gradient, label, residual=residual),
        read_ahead=glm.read_ahead,
        # without compilation there is nothing to fuse
        advance=None if DISABLED else short_steps.steps,
        fald_parts={"uses_reference": no},
        vr_parts={"uses_reference": yes},
    )


def design_matrix(clients: Sequence[ClientData], intercept: bool) -> np.ndarray:
    """Return the rows of some clients under each other, with a last column of ones if there is an intercept."""
    p = clients[0].features.shape[1]
    n = sum(client.features.shape[0] for client in clients)
    rows = np.empty((n, p + intercept))
    first = 0
    for client in clients:
        last = first + client.features.shape[0]
        rows[first:last, :p] = client.features
        first = last
    if intercept:
        rows[:, p] = 1.0
    return rows


@dataclass(frozen=True)
class Regression(Potential):
    """Base of the regressions: U0(x) = |x|²/(2σ²) with σ the prior scale, the intercept penalised like the rest."""

    prior_scale: float = 1.0
    intercept: bool = False

    def __post_init__(self) -> None:
        """Check the prior scale."""
        check_scale("prior_scale", self.prior_scale)

    def likelihood_factor(self) -> float:
        """Return the factor of every row's likelihood."""
        return 1.0

    def parameter_names(self, feature_names: Sequence[str]) -> list[str]:
        """Return the features' names, the intercept last."""
        return [*feature_names, INTERCEPT] if self.intercept else list(feature_names)

    def check(self, client: ClientData) -> None:
        """Raise UserError if a client's data lie outside the model's range."""
        if not hasattr(client, "features"):
            raise UserError(f"client {client.id}: the {self.name} potential takes clients with rows, and this has none.")
        self.check_target(client)

    def check_target(self, client: ClientData) -> None:
        """Raise UserError if a label lies outside the model's range."""

    def pack(self, clients: Sequence[ClientData], shares: np.ndarray) -> Any:
        """Return rows, targets, weights and offsets of all clients, one after another."""
        rows = design_matrix(clients, self.intercept)
        counts = [client.features.shape[0] for client in clients]
        ones = [np.ones(n) for n in counts]
        weight = [o if c.weights is None else c.weights for c, o in zip(clients, ones, strict=True)]
        offset = [0.0 * o if c.offset is None else c.offset for c, o in zip(clients, ones, strict=True)]
        of_rows = {
            "rows": rows,
            "weight": np.concatenate(weight).astype(np.float64) * self.likelihood_factor(),
            "offset": np.concatenate(offset).astype(np.float64),
            "target": np.concatenate([client.target for client in clients]).astype(np.float64),
            "start": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        }
        family = short_rows.FAMILIES.get(self.name, short_rows.NONE)
        columns, place = short_rows.side_by_side(**of_rows, family=family)
        prior = np.ascontiguousarray(shares, np.float64) / self.prior_scale**2
        unpacked = np.zeros((rows.shape[0], 0))
        return glm.Problem(**of_rows, prior=prior, columns=columns, place=place, packed=unpacked, family=family)

    def kept_size(self, n_rows: int) -> int:
        """Return one residual a row."""
        return n_rows

    def second_derivative(self, eta: np.ndarray) -> np.ndarray:
        """Return ∂²ℓ/∂η² of rows with linear predictors eta: float64[n]."""
        raise NotImplementedError

    def losses(self, eta: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return ℓ(η, y) of rows: float64[n], constants dropped."""
        raise NotImplementedError

    def _rows_of(self, problem: Any, i: int, x: np.ndarray) -> tuple[slice, np.ndarray]:
        part = slice(int(problem.start[i]), int(problem.start[i + 1]))
        eta = np.empty(part.stop - part.start)
        _predictors(problem.rows[part], problem.offset[part], x, eta)
        return part, eta

    def value(self, problem: Any, i: int, x: np.ndarray) -> float:
        """Return U^i(x)."""
        part, eta = self._rows_of(problem, i, x)
        likelihood = float(np.dot(problem.weight[part], self.losses(eta, problem.target[part])))
        return likelihood + 0.5 * float(problem.prior[i]) * float(np.dot(x, x))

    def hessian(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return Σ_j w_j ℓ''(η_j) z_j z_jᵀ + (w_i/σ²) I."""
        part, eta = self._rows_of(problem, i, x)
        out = np.eye(x.size) * problem.prior[i]
        weighted_gram(problem.rows[part], problem.weight[part] * self.second_derivative(eta), out)
        return out

    def hessian_diagonal(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return Σ_j w_j ℓ''(η_j) z_j² + w_i/σ²."""
        part, eta = self._rows_of(problem, i, x)
        out = np.full(x.size, problem.prior[i])
        weighted_squares(problem.rows[part], problem.weight[part] * self.second_derivative(eta), out)
        return out

    def row_gradients(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return w_j residual_j z_j of the rows of local client i."""
        part = slice(int(problem.start[i]), int(problem.start[i + 1]))
        kept = np.zeros(problem.target.size)
        self.kernels.full_gradient(problem, i, x, kept, np.empty(x.size))
        return kept[part, None] * problem.rows[part]

    def row_curvatures(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return w_j ℓ''(η_j) |z_j|² of the rows of local client i."""
        part, eta = self._rows_of(problem, i, x)
        return problem.weight[part] * self.second_derivative(eta) * square_lengths(problem.rows[part])

    def row_lengths(self, problem: Any, i: int) -> np.ndarray:
        """Return |z_j|² of the rows of local client i."""
        return square_lengths(problem.rows[int(problem.start[i]) : int(problem.start[i + 1])])
