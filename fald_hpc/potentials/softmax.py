"""Softmax regression with K classes: U^{i,j}(x) = log Σ_k e^{η_k} - η_y with η_k = z_j·x_k, Gaussian prior.

All K rows of weights are parameters (the prior identifies them): x holds x_1, ..., x_K one after another, d = K p.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fald_hpc.data.records import ClientData
from fald_hpc.errors import UserError
from fald_hpc.kernels.dot import ROWS
from fald_hpc.kernels.elementary import exp
from fald_hpc.kernels.glm import Problem as RowsProblem
from fald_hpc.kernels.glm import add_four_rows, four_predictors, read_ahead
from fald_hpc.kernels.jit import fma, jit, stack
from fald_hpc.potentials.base import Kernels
from fald_hpc.potentials.regression import INTERCEPT, Regression, square_lengths, weighted_gram, weighted_squares


class Problem(NamedTuple):
    """Packed data of this rank's clients (see :class:`fald_hpc.kernels.glm.Problem`) and scratch."""

    rows: np.ndarray  # float64[n, p]
    target: np.ndarray  # float64[n]
    weight: np.ndarray  # float64[n]
    offset: np.ndarray  # float64[n]
    start: np.ndarray  # int64[c + 1]
    prior: np.ndarray  # float64[c]
    factors: np.ndarray  # float64[4, K]


@jit
def _residuals(problem, members, x, out):
    """Write w_j (p_k - 1[y = k]) of four rows: float64[4, K]; ``members``: int64[4], the rows."""
    p = problem.rows.shape[1]
    classes = out.shape[1]
    for k in range(classes):
        out[0, k], out[1, k], out[2, k], out[3, k] = four_predictors(
            problem.rows, members[0], members[1], members[2], members[3], x[k * p : (k + 1) * p]
        )
    for m in range(ROWS):
        largest = -np.inf
        for k in range(classes):
            largest = max(largest, out[m, k])
        for k in range(classes):
            out[m, k] = exp(out[m, k] - largest)
        total = 0.0
        for k in range(classes):
            total += out[m, k]
        label = np.int64(problem.target[members[m]])
        for k in range(classes):
            out[m, k] = problem.weight[members[m]] * (out[m, k] / total - (1.0 if k == label else 0.0))


@jit
def _add_outer(problem, members, count, factors, out):
    """Add factor_k z_j of the first ``count`` of four rows to the gradient of class k, row after row."""
    p = problem.rows.shape[1]
    for k in range(factors.shape[1]):
        part = out[k * p : (k + 1) * p]
        if count == ROWS:
            add_four_rows(
                problem.rows, members[0], members[1], members[2], members[3],
                factors[0, k], factors[1, k], factors[2, k], factors[3, k], part,
            )  # fmt: skip
        else:
            for m in range(count):
                for j in range(p):
                    part[j] = fma(factors[m, k], problem.rows[members[m], j], part[j])


@jit
def _gradient(problem, i, x, rows, out):
    first = problem.start[i]
    n = problem.start[i + 1] - first
    for j in range(x.size):
        out[j] = problem.prior[i] * x[j]
    if rows.size > 0:
        scale = np.float64(n) / np.float64(rows.size)
        members, factors = stack(np.int64, ROWS), problem.factors
        for begin in range(0, rows.size, ROWS):
            count = min(ROWS, rows.size - begin)
            for m in range(ROWS):
                # where fewer than four are left the last one fills up, and counts once
                members[m] = first + rows[begin + min(m, count - 1)]
            _residuals(problem, members, x, factors)
            for m in range(count):
                for k in range(factors.shape[1]):
                    factors[m, k] *= scale
            _add_outer(problem, members, count, factors, out)
    return rows.size


@jit
def _difference(problem, i, x, y, kept, rows, out):
    first = problem.start[i]
    n = problem.start[i + 1] - first
    for j in range(x.size):
        out[j] = problem.prior[i] * (x[j] - y[j])
    if rows.size > 0:
        scale = np.float64(n) / np.float64(rows.size)
        members, factors = stack(np.int64, ROWS), problem.factors
        classes = factors.shape[1]
        for begin in range(0, rows.size, ROWS):
            count = min(ROWS, rows.size - begin)
            for m in range(ROWS):
                members[m] = first + rows[begin + min(m, count - 1)]
            _residuals(problem, members, x, factors)
            for m in range(count):
                for k in range(classes):
                    factors[m, k] = scale * (factors[m, k] - kept[members[m] * classes + k])
            _add_outer(problem, members, count, factors, out)
    return rows.size


@jit
def _full_gradient(problem, i, y, kept, out):
    for j in range(y.size):
        out[j] = problem.prior[i] * y[j]
    first, last = problem.start[i], problem.start[i + 1]
    members, factors = stack(np.int64, ROWS), problem.factors
    classes = factors.shape[1]
    for begin in range(first, last, ROWS):
        count = min(ROWS, last - begin)
        for m in range(ROWS):
            members[m] = begin + min(m, count - 1)
        _residuals(problem, members, y, factors)
        for m in range(count):
            for k in range(classes):
                kept[members[m] * classes + k] = factors[m, k]
        _add_outer(problem, members, count, factors, out)
    return last - first


_KERNELS = Kernels("softmax", _gradient, _difference, _full_gradient, read_ahead=read_ahead)


@dataclass(frozen=True)
class Softmax(Regression):
    """Softmax regression.

    Parameters
    ----------
    classes : int
        K, at least 2; labels are 0..K-1.
    prior_scale : float
        Standard deviation σ of the prior N(0, σ² I), in units of the parameters.
    intercept : bool
        Add a column of ones, last; penalised like the rest.
    """

    classes: int = 2

    name = "softmax"

    def __post_init__(self) -> None:
        """Check the number of classes."""
        super().__post_init__()
        if not isinstance(self.classes, int) or isinstance(self.classes, bool) or self.classes < 2:
            raise UserError(f"classes = {self.classes!r}: give a whole number of at least 2.")

    @property
    def kernels(self) -> Kernels:
        """The compiled functions."""
        return _KERNELS

    def parameter_names(self, feature_names: Sequence[str]) -> list[str]:
        """Return class:feature for every class, the intercept last in each."""
        names = [*feature_names, INTERCEPT] if self.intercept else list(feature_names)
        return [f"{k}:{name}" for k in range(self.classes) for name in names]

    def check_target(self, client: ClientData) -> None:
        """Raise UserError unless all labels are classes."""
        y = client.target
        wrong = np.flatnonzero((y < 0.0) | (y >= self.classes) | (y != np.floor(y)))
        if wrong.size:
            raise UserError(
                f"client {client.id}: label {y[wrong[0]]:g} in row {wrong[0] + 1}; with classes = {self.classes} labels "
                f"run from 0 to {self.classes - 1}."
            )
        if client.offset is not None:
            raise UserError(f"client {client.id}: softmax regression takes no offset column; remove it from [data].")

    def pack(self, clients: Sequence[ClientData], shares: np.ndarray) -> Problem:
        """Return rows, targets and weights of all clients, one after another."""
        packed: RowsProblem = super().pack(clients, shares)
        shared = {name: value for name, value in packed._asdict().items() if name in Problem._fields}
        return Problem(**shared, factors=np.zeros((ROWS, self.classes)))

    def kept_size(self, n_rows: int) -> int:
        """Return K residuals a row."""
        return n_rows * self.classes

    def _probabilities(self, problem: Problem, i: int, x: np.ndarray) -> tuple[slice, np.ndarray, np.ndarray]:
        part = slice(int(problem.start[i]), int(problem.start[i + 1]))
        kept = np.zeros((problem.target.size, self.classes))
        self.kernels.full_gradient(problem, i, x, kept.reshape(-1), np.empty(x.size))
        residuals = kept[part]
        labels = problem.target[part].astype(int)
        hot = np.zeros_like(residuals)
        hot[np.arange(labels.size), labels] = 1.0
        weight = problem.weight[part, None]
        return part, np.divide(residuals, weight, where=weight > 0, out=np.zeros_like(residuals)) + hot, residuals

    def value(self, problem: Any, i: int, x: np.ndarray) -> float:
        """Return U^i(x)."""
        part = slice(int(problem.start[i]), int(problem.start[i + 1]))
        eta = problem.rows[part] @ x.reshape(self.classes, -1).T
        labels = problem.target[part].astype(int)
        losses = np.logaddexp.reduce(eta, axis=1) - eta[np.arange(labels.size), labels]
        return float(np.dot(problem.weight[part], losses)) + 0.5 * float(problem.prior[i]) * float(np.dot(x, x))

    def hessian(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return Σ_j w_j (diag(p) - p pᵀ) ⊗ z_j z_jᵀ + (w_i/σ²) I."""
        part, p, _ = self._probabilities(problem, i, x)
        rows, weight = problem.rows[part], problem.weight[part]
        features = rows.shape[1]
        out = np.zeros((self.classes, self.classes, features, features))
        for a in range(self.classes):
            for b in range(self.classes):
                factor = weight * p[:, a] * ((1.0 if a == b else 0.0) - p[:, b])
                weighted_gram(rows, factor, out[a, b])
        return out.transpose(0, 2, 1, 3).reshape(x.size, x.size) + np.eye(x.size) * problem.prior[i]

    def hessian_diagonal(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return Σ_j w_j p_k (1 - p_k) z_j² + w_i/σ²."""
        part, p, _ = self._probabilities(problem, i, x)
        out = np.full(x.size, problem.prior[i]).reshape(self.classes, -1)
        for k in range(self.classes):
            weighted_squares(problem.rows[part], problem.weight[part] * p[:, k] * (1.0 - p[:, k]), out[k])
        return out.reshape(-1)

    def row_gradients(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return the gradients of the rows of local client i: float64[n, d]."""
        part, _, residuals = self._probabilities(problem, i, x)
        return (residuals[:, :, None] * problem.rows[part][:, None, :]).reshape(residuals.shape[0], x.size)

    def row_curvatures(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return w_j |z_j|² max_k 2 p_k (1 - p_k), a bound by Gershgorin's circles, of the rows of local client i."""
        part, p, _ = self._probabilities(problem, i, x)
        return problem.weight[part] * square_lengths(problem.rows[part]) * np.max(2.0 * p * (1.0 - p), axis=1)
