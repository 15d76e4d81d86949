"""A potential of the user's own: the gradient of one row as a numba function, called from the compiled loop.

U^i(x) = w_i |x|²/(2σ²) + Σ_j weight_j ℓ(x; z_j, y_j). The user writes ∇_x ℓ; minibatches, scaling by N_i/n_i, weights and the
prior's share are added here (no prior where ``prior_scale`` is None: then it is the rows' own business).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types
from numba.core.dispatcher import Dispatcher

from fald_hpc.data.records import ClientData
from fald_hpc.errors import UserError
from fald_hpc.kernels.jit import DISABLED, compile_for, jit
from fald_hpc.potentials.base import Kernels, Potential, check_scale
from fald_hpc.potentials.custom_function import DIFFERENCE, check_rows, load_function, python_of

_VECTOR = types.float64[::1]
ROW_FUNCTION = types.FunctionType(types.void(_VECTOR, _VECTOR, types.float64, _VECTOR))
"""Type of the user's function: (theta, x, y, out) -> None."""



class Rows(NamedTuple):
    """Packed data of this rank's clients."""

    rows: np.ndarray  # float64[n, p]
    target: np.ndarray  # float64[n]
    weight: np.ndarray  # float64[n]
    start: np.ndarray  # int64[c + 1]
    prior: np.ndarray  # float64[c]: w_i/σ², 0 without prior
    scratch: np.ndarray  # float64[2, d]


@jit
def _add_row(function, data, row, x, factor, out):
    """Add factor·weight·∇ℓ of one row to out; return False if the user's function raised."""
    gradient = data.scratch[0]
    try:
        function(x, data.rows[row], data.target[row], gradient)
    except Exception:
        return False
    for j in range(out.size):
        out[j] += factor * data.weight[row] * gradient[j]
    return True


@jit
def _gradient(problem, i, x, rows, out):
    data, function = problem
    first = data.start[i]
    n = data.start[i + 1] - first
    for j in range(x.size):
        out[j] = data.prior[i] * x[j]
    for m in range(rows.size):
        if not _add_row(function, data, first + rows[m], x, np.float64(n) / np.float64(rows.size), out):
            return -1
    return rows.size


@jit
def _difference(problem, i, x, y, kept, rows, out):
    data, function = problem
    first = data.start[i]
    n = data.start[i + 1] - first
    for j in range(x.size):
        out[j] = data.prior[i] * (x[j] - y[j])
    if rows.size == 0:
        return 0
    scale = np.float64(n) / np.float64(rows.size)
    # row by row, so that equal points give exactly zero
    pair = data.scratch[1]
    for m in range(rows.size):
        row = first + rows[m]
        for j in range(x.size):
            pair[j] = 0.0
        if not _add_row(function, data, row, x, 1.0, pair) or not _add_row(function, data, row, y, -1.0, pair):
            return -1
        for j in range(x.size):
            out[j] += scale * pair[j]
    return 2 * rows.size


@jit
def _full_gradient(problem, i, y, kept, out):
    data, function = problem
    for j in range(y.size):
        out[j] = data.prior[i] * y[j]
    for row in range(data.start[i], data.start[i + 1]):
        if not _add_row(function, data, row, y, 1.0, out):
            return -1
    return data.start[i + 1] - data.start[i]


def _problem_type(problem: Any) -> Any:
    """Return the type of a problem with the function as a pointer: every user's function then shares one cached loop."""
    return types.Tuple((typeof(problem[0]), ROW_FUNCTION))


_KERNELS = Kernels("custom", _gradient, _difference, _full_gradient, problem_type=_problem_type)


@dataclass(frozen=True)
class RowPotential(Potential):
    """A potential given by the gradient of a row; made by :func:`row_potential` or from a configuration.

    Parameters
    ----------
    function : callable or str
        ``gradient(theta, x, y, out)``: writes ∇_θ ℓ(θ; x, y) of one row to ``out``: float64[d]; all entries. Or, in a
        configuration, "file.py:name".
    dimension : int, optional
        d; default: the number of features.
    prior_scale : float, optional
        σ of the prior N(0, σ² I); None: no prior is added.
    value : callable, optional
        ``value(theta, x, y)``: ℓ itself; the gradient is then checked against it before sampling.
    names : sequence of str, optional
        Names of the parameters.
    """

    function: Any
    dimension: int | None = None
    prior_scale: float | None = 1.0
    value_function: Callable[..., float] | None = None
    names: tuple[str, ...] | None = None

    name = "custom"

    def __post_init__(self) -> None:
        """Load and compile the function."""
        if isinstance(self.function, str):
            loaded = load_function(self.function)
            if isinstance(loaded, RowPotential):
                for key in ("function", "value_function", "names"):
                    object.__setattr__(self, key, getattr(loaded, key))
                if self.dimension is None:
                    object.__setattr__(self, "dimension", loaded.dimension)
            else:
                object.__setattr__(self, "function", loaded)
        if not callable(self.function):
            raise UserError("the row gradient must be a function gradient(theta, x, y, out).")
        if self.prior_scale is not None:
            check_scale("prior_scale", self.prior_scale)
        if self.dimension is not None and (not isinstance(self.dimension, int) or self.dimension < 1):
            raise UserError(f"dimension = {self.dimension!r}: give a whole number of at least 1.")

    def __repr__(self) -> str:
        """Return a description that does not depend on the process."""
        name = getattr(self.function, "__qualname__", "function")
        code = python_of(self.function).__code__
        return f"RowPotential({name}, {code.co_code.hex()}, {self.dimension}, {self.prior_scale})"

    @cached_property
    def compiled_function(self) -> Any:
        """The user's function, compiled for the types of the loop."""
        if DISABLED:
            return python_of(self.function)
        function = self.function
        if not isinstance(function, Dispatcher):
            function = jit(function, cache=False, allocates=True)
        try:
            function.compile(ROW_FUNCTION.signature.args)
        except Exception as error:
            first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            raise UserError(
                f"numba cannot compile the row gradient {getattr(self.function, '__name__', '')}: {first.strip()}"
            ) from error
        return function

    @property
    def kernels(self) -> Kernels:
        """The compiled functions."""
        return _KERNELS

    def parameter_names(self, feature_names: Sequence[str]) -> list[str]:
        """Return the given names, else theta0, theta1, ..., or the features' names where d is their number."""
        if self.names is not None:
            return list(self.names)
        if self.dimension is None or self.dimension == len(feature_names):
            return list(feature_names)
        return [f"theta{j}" for j in range(self.dimension)]

    def check(self, client: ClientData) -> None:
        """Raise UserError if the function fails on a client's first rows, by finite differences where ℓ is given."""
        if not hasattr(client, "features"):
            raise UserError(f"client {client.id}: a row potential takes clients with rows, and this has none.")
        if client.offset is not None:
            raise UserError(f"client {client.id}: a row potential takes no offset column; make it a feature.")
        d = client.features.shape[1] if self.dimension is None else self.dimension
        check_rows(self.function, self.value_function, client, d)

    def pack(self, clients: Sequence[ClientData], shares: np.ndarray) -> Any:
        """Return the rows of all clients, one after another, and the compiled function."""
        p = clients[0].features.shape[1]
        d = p if self.dimension is None else self.dimension
        counts = [client.features.shape[0] for client in clients]
        weight = [np.ones(n) if c.weights is None else c.weights for c, n in zip(clients, counts, strict=True)]
        precision = 0.0 if self.prior_scale is None else 1.0 / self.prior_scale**2
        data = Rows(
            rows=np.concatenate([client.features for client in clients]).astype(np.float64).reshape(-1, p),
            target=np.concatenate([client.target for client in clients]).astype(np.float64),
            weight=np.concatenate(weight).astype(np.float64),
            start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            prior=np.ascontiguousarray(shares, np.float64) * precision,
            scratch=np.zeros((2, d)),
        )
        problem = data, self.compiled_function
        if not DISABLED:
            compile_for(_full_gradient, (_problem_type(problem), types.int64, _VECTOR, _VECTOR, _VECTOR))
        return problem

    def value(self, problem: Any, i: int, x: np.ndarray) -> float:
        """Return U^i(x).

        Raises
        ------
        UserError
            If no value function was given.
        """
        if self.value_function is None:
            raise UserError("this needs the value of a row: give value= to row_potential.")
        data, value = problem[0], python_of(self.value_function)
        rows = range(int(data.start[i]), int(data.start[i + 1]))
        total = sum(data.weight[row] * float(value(x, data.rows[row], data.target[row])) for row in rows)
        return float(total) + 0.5 * float(data.prior[i]) * float(np.dot(x, x))

    def raised(self, problem: Any, i: int, points: Sequence[np.ndarray]) -> str | None:
        """Return what the row gradient raises at one of some points, as "ValueError: too far (row 3)"."""
        data, gradient = problem[0], python_of(self.function)
        first, last = int(data.start[i]), int(data.start[i + 1])
        for x in points:
            for row in range(first, last):
                try:
                    gradient(x.copy(), data.rows[row].copy(), float(data.target[row]), np.zeros(x.size))
                except Exception as error:
                    return f"{type(error).__name__}: {error} (row {row - first + 1})"
        return None

    def hessian(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return the Hessian of U^i at x by central differences of the gradient."""

        def gradient(point: np.ndarray) -> np.ndarray:
            out = np.zeros(x.size)
            self.kernels.full_gradient(problem, i, point, np.zeros(0), out)
            return out

        out = np.empty((x.size, x.size))
        for j in range(x.size):
            h = DIFFERENCE * max(1.0, abs(x[j]))
            step = np.zeros(x.size)
            step[j] = h
            out[j] = (gradient(x + step) - gradient(x - step)) / (2.0 * h)
        return (out + out.T) / 2.0

    def row_gradients(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return the gradients of the rows of local client i at x."""
        data = problem[0]
        out = np.zeros((int(data.start[i + 1] - data.start[i]), x.size))
        for r, row in enumerate(range(int(data.start[i]), int(data.start[i + 1]))):
            self.compiled_function(x, data.rows[row], data.target[row], out[r])
            out[r] *= data.weight[row]
        return out

    def row_curvatures(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return the change of each row's gradient along its own direction, by differences: float64[n]."""
        base = self.row_gradients(problem, i, x)
        lengths = np.sqrt(np.maximum(np.sum(base**2, axis=1), 1e-300))
        h = DIFFERENCE * max(1.0, float(np.abs(x).max()))
        data = problem[0]
        out = np.zeros(base.shape[0])
        moved = np.zeros(x.size)
        for r, row in enumerate(range(int(data.start[i]), int(data.start[i + 1]))):
            self.compiled_function(x + h * base[r] / lengths[r], data.rows[row], data.target[row], moved)
            out[r] = np.sqrt(np.sum((moved * data.weight[row] - base[r]) ** 2)) / h
        return out


def row_potential(
    function: Callable[..., Any] | None = None,
    *,
    dimension: int | None = None,
    prior_scale: float | None = 1.0,
    value: Callable[..., float] | None = None,
    names: Sequence[str] | None = None,
) -> Any:
    """Turn ``gradient(theta, x, y, out)`` of one row into a potential; a decorator (parameters: :class:`RowPotential`).

    The function must be one that numba can compile; if it is not compiled yet, it will be.
    """
    if function is None:
        return lambda f: row_potential(
            f, dimension=dimension, prior_scale=prior_scale, value=value, names=names
        )
    return RowPotential(function, dimension, prior_scale, value, None if names is None else tuple(names))
