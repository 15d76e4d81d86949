"""Gaussian clients: U^i(x) = (x - μ_i)ᵀ H_i (x - μ_i)/2 with H_i the client's precision. The target is their product.

No prior is added and no rows exist: gradients are always full.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fald_hpc.data.records import GaussianClient
from fald_hpc.errors import UserError
from fald_hpc.kernels import aligned, quadratic, quadratic_gradients, quadratic_plain
from fald_hpc.kernels.jit import DISABLED, fma, instantiate, jit, no, yes
from fald_hpc.kernels.normals import LANES
from fald_hpc.potentials.base import Kernels, Potential


class Dense(NamedTuple):
    """Packed clients with a full precision matrix."""

    mean: np.ndarray  # float64[c, d]
    precision: np.ndarray  # float64[c, d, d]
    mean_lanes: np.ndarray  # float64[g, d, LANES]: the same, eight clients side by side; g = 0 where d is large
    precision_lanes: np.ndarray  # float64[g, d, d, LANES]
    moves: np.ndarray  # float64[c, d, d]: -γ H_i; empty before there is a step size
    moves_lanes: np.ndarray  # float64[g, d, d, LANES]


class Diagonal(NamedTuple):
    """Packed clients with a diagonal precision."""

    mean: np.ndarray  # float64[c, d]
    precision: np.ndarray  # float64[c, d]


@jit(forceinline=True)
def _multiply(precision, x, origin, out):
    """Write H(x - origin), summed over columns in ascending order."""
    d = x.size
    for j in range(d):
        out[j] = 0.0
    for k in range(d):
        v = x[k] - origin[k]
        for j in range(d):
            out[j] = fma(precision[k, j], v, out[j])


@jit(forceinline=True)
def _dense_gradient(problem, i, x, rows, out):
    _multiply(problem.precision[i], x, problem.mean[i], out)
    return 0


@jit(forceinline=True)
def _dense_difference(problem, i, x, y, kept, rows, out):
    _multiply(problem.precision[i], x, y, out)
    return 0


@jit
def _dense_full_gradient(problem, i, y, kept, out):
    _multiply(problem.precision[i], y, problem.mean[i], out)
    return 0


@jit(forceinline=True)
def _diagonal_gradient(problem, i, x, rows, out):
    for j in range(x.size):
        out[j] = problem.precision[i, j] * (x[j] - problem.mean[i, j])
    return 0


@jit(forceinline=True)
def _diagonal_difference(problem, i, x, y, kept, rows, out):
    for j in range(x.size):
        out[j] = problem.precision[i, j] * (x[j] - y[j])
    return 0


@jit
def _diagonal_full_gradient(problem, i, y, kept, out):
    return _diagonal_gradient(problem, i, y, kept, out)


def _steps(label: str, uses_reference: Any) -> dict[str, Any]:
    """Return the ways of taking steps; without compilation nothing can be put into lanes."""
    ways = {"plain": quadratic_plain.steps, "chain_lanes": quadratic.steps_of_chains, "client_lanes": quadratic.steps_of_clients}
    return {
        way: instantiate(quadratic_plain.steps if DISABLED else steps, label, merge=True, uses_reference=uses_reference)
        for way, steps in ways.items()
    }


_DENSE = Kernels(
    "gaussian_dense",
    _dense_gradient,
    _dense_difference,
    _dense_full_gradient,
    advance=quadratic.steps,
    full_gradients=None if DISABLED else quadratic_gradients.full_gradients,
    steps_ahead=None if DISABLED else quadratic.steps_ahead,
    has_offsets=True,
    chains_together=quadratic.TOGETHER,
    fald_parts=_steps("fald", no),
    vr_parts=_steps("vr_fald_star", yes),
)
_DIAGONAL = Kernels("gaussian_diagonal", _diagonal_gradient, _diagonal_difference, _diagonal_full_gradient)


def _side_by_side(values: np.ndarray) -> np.ndarray:
    """Return float64[c, ...] as float64[g, ..., LANES]: eight clients in the last axis, zeros beyond the last client."""
    c, d = values.shape[:2]
    groups = -(-c // LANES) if d <= quadratic.LARGEST_DIMENSION else 0
    out = np.zeros((groups * LANES, *values.shape[1:]))
    out[: c if groups else 0] = values[: c if groups else 0]
    return aligned.copy(np.moveaxis(out.reshape(groups, LANES, *values.shape[1:]), 1, -1))


@dataclass(frozen=True)
class Gaussian(Potential):
    """Product of Gaussian clients.

    Parameters
    ----------
    covariance : "dense" or "diagonal"
        The form of the clients' precision matrices.
    """

    covariance: str = "dense"

    name = "gaussian"
    takes_rows = False

    def __post_init__(self) -> None:
        """Check the form."""
        if self.covariance not in ("dense", "diagonal"):
            raise UserError(f'covariance = {self.covariance!r}: give "dense" or "diagonal".')

    @cached_property
    def kernels(self) -> Kernels:
        """The compiled functions."""
        return _DENSE if self.covariance == "dense" else _DIAGONAL

    def parameter_names(self, feature_names: Sequence[str]) -> list[str]:
        """Return the names of the coordinates."""
        return list(feature_names)

    def check(self, client: GaussianClient) -> None:
        """Raise UserError unless the client is a Gaussian of the right form."""
        if not hasattr(client, "precision"):
            raise UserError(
                f"client {client.id}: the gaussian potential takes clients with a mean and a covariance or precision, "
                "and this one has rows; choose a regression potential for rows."
            )
        if self.covariance == "diagonal" and client.precision.ndim == 2:
            off_diagonal = client.precision - np.diag(np.diag(client.precision))
            if np.any(off_diagonal != 0.0):
                raise UserError(
                    f'client {client.id}: its precision is not diagonal; set covariance = "dense" in [target].'
                )

    def pack(self, clients: Sequence[GaussianClient], shares: np.ndarray) -> Any:
        """Return means and precisions as contiguous arrays; ``shares`` plays no part, since there is no prior."""
        d = clients[0].mean.size
        mean = np.array([client.mean for client in clients], np.float64).reshape(-1, d)
        if self.covariance == "diagonal":
            rows = [p if p.ndim == 1 else np.diag(p) for p in (client.precision for client in clients)]
            return Diagonal(mean, np.array(rows, np.float64).reshape(-1, d))
        full = [p if p.ndim == 2 else np.diag(p) for p in (client.precision for client in clients)]
        precision = np.array(full, np.float64).reshape(-1, d, d)
        none = np.empty((0, d, d))
        return Dense(mean, precision, _side_by_side(mean), _side_by_side(precision), none, aligned.zeros((0, d, d, LANES)))

    def for_steps(self, problem: Any, step_size: float) -> Any:
        """Return the clients with their matrices of a step: dense ones only."""
        if self.covariance == "diagonal":
            return problem
        return problem._replace(
            moves=-step_size * problem.precision, moves_lanes=aligned.copy(-step_size * problem.precision_lanes)
        )

    def value(self, problem: Any, i: int, x: np.ndarray) -> float:
        """Return U^i(x)."""
        v = x - problem.mean[i]
        out = np.empty_like(v)
        self.kernels.gradient(problem, i, x, np.empty(0, np.int64), out)
        return 0.5 * float(np.dot(v, out))

    def hessian(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return H_i."""
        return problem.precision[i].copy() if self.covariance == "dense" else np.diag(problem.precision[i])

    def row_gradients(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return an empty array: there are no rows."""
        return np.empty((0, x.size))

    def row_curvatures(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return an empty array: there are no rows."""
        return np.empty(0)
