"""What a potential is: packed data, compiled gradients, and the values and curvatures that set-up needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from fald_hpc.errors import UserError
from fald_hpc.kernels.langevin import nothing_ahead


@dataclass(frozen=True, eq=False)
class Kernels:
    """The compiled functions of a potential, as the samplers call them (signatures in :mod:`fald_hpc.kernels.glm`)."""

    label: str
    """Distinguishes the compiled loops of different potentials."""
    gradient: Callable[..., Any]
    """gradient(problem, i, x, rows, out) -> rows touched: g_S(x)."""
    difference: Callable[..., Any]
    """difference(problem, i, x, y, kept, rows, out) -> rows touched: g_S(x) - g_S(y)."""
    full_gradient: Callable[..., Any]
    """full_gradient(problem, i, y, kept, out) -> rows touched: ∇U^i(y), and what ``difference`` keeps of y."""
    read_ahead: Callable[..., Any] = nothing_ahead
    """read_ahead(problem, i, rows): ask memory for the rows of a minibatch to come."""
    cache: bool = True
    """Whether the loops may be cached on disk."""
    problem_type: Callable[[Any], Any] | None = None
    """problem_type(problem) -> numba type, where it is not the one that numba would infer (a function pointer in it)."""
    advance: Callable[..., Any] | None = None
    """Template of a fused path for some shapes; it calls ``plain`` for others: the steps of :mod:`fald_hpc.kernels.langevin`, or
    what is bound below. Whichever it takes, the bits are the same."""
    full_gradients: Callable[..., Any] | None = None
    """The same for the full gradients of a refresh; ``plain`` is that of :mod:`fald_hpc.kernels.refresh`."""
    steps_ahead: Callable[..., Any] | None = None
    """steps_ahead(settings, d) -> bool, given where ``advance`` and ``full_gradients`` add vectors to messages themselves:
    whether steps can go one iteration beyond what they add (:mod:`fald_hpc.kernels.batches`)."""
    has_offsets: bool = False
    """Whether ``advance`` needs ``offset`` of the state of chains (:mod:`fald_hpc.kernels.state`)."""
    chains_together: int | None = None
    """Chains whose state and noise stay in cache beside the clients' data: so many run a segment together where no message
    leaves the rank; None: all."""
    fald_parts: dict[str, Any] = field(default_factory=dict)
    """What to bind in ``advance`` for FALD."""
    vr_parts: dict[str, Any] = field(default_factory=dict)
    """The same for VR-FALD*."""


class Potential:
    """Base of the potentials: U^i(x) = w_i U0(x) + Σ_j U^{i,j}(x), in nats.

    Subclasses are frozen dataclasses whose fields are the model's constants.
    """

    name: ClassVar[str]
    takes_rows: ClassVar[bool] = True
    """False if a client is a whole distribution (Gaussian) and minibatches do not exist."""

    @property
    def kernels(self) -> Kernels:
        """The compiled functions."""
        raise NotImplementedError

    def parameter_names(self, feature_names: Sequence[str]) -> list[str]:
        """Return the names of the d parameters."""
        raise NotImplementedError

    def check(self, client: Any) -> None:
        """Raise UserError if a client's data lie outside the model's range."""

    def pack(self, clients: Sequence[Any], shares: np.ndarray) -> Any:
        """Return the data of some clients, with their prior shares w_i: float64[c], as contiguous arrays."""
        raise NotImplementedError

    def for_steps(self, problem: Any, step_size: float) -> Any:
        """Return packed data with what only the steps of a sampler need."""
        return problem

    def kept_size(self, n_rows: int) -> int:
        """Return how many numbers a chain keeps of its reference for ``n_rows`` rows of data."""
        return 0

    def value(self, problem: Any, i: int, x: np.ndarray) -> float:
        """Return U^i(x) of local client i, constants dropped, in nats."""
        raise NotImplementedError

    def hessian(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return the Hessian of U^i at x: float64[d, d]."""
        raise NotImplementedError

    def hessian_diagonal(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return the diagonal of the Hessian of U^i at x: float64[d]."""
        return np.diag(self.hessian(problem, i, x)).copy()

    def row_gradients(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return the gradients of the rows of local client i at x, without the prior: float64[n, d]."""
        raise NotImplementedError

    def row_curvatures(self, problem: Any, i: int, x: np.ndarray) -> np.ndarray:
        """Return an upper bound of each row's Hessian norm at x: float64[n] (spectral norm of ∇²U^{i,j})."""
        raise NotImplementedError

    def row_lengths(self, problem: Any, i: int) -> np.ndarray:
        """Return |z_j|² of the rows of local client i where U^{i,j} depends on z_j·x and is not quadratic, else nothing."""
        return np.empty(0)

    def raised(self, problem: Any, i: int, points: Sequence[np.ndarray]) -> str | None:
        """Return what a user's function raises for local client i at one of some points, None where there is none."""
        return None


def check_scale(key: str, value: Any) -> float:
    """Return a positive finite number or raise UserError."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value < float("inf"):
        raise UserError(f"{key} = {value!r}: give a positive finite number.")
    return float(value)
