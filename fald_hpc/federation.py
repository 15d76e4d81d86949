"""All clients together: this rank's packed clients, and the means over every client that set-up asks for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fald_hpc.comm import Serial
from fald_hpc.potentials.base import Potential
from fald_hpc.reduce import mean_over_clients


@dataclass(frozen=True, eq=False)
class Federation:
    """The clients of one rank, and the group of ranks that hosts all clients once.

    Attributes
    ----------
    potential : Potential
        The model.
    problem : namedtuple
        This rank's clients, packed.
    n_rows : int64[c]
        Rows of this rank's clients.
    n_clients : int
        b, over all ranks.
    first_client : int
        Global index of this rank's first client.
    names : list of str
        Names of the d parameters.
    group : communicator
        The ranks that share this rank's chains.
    """

    potential: Potential
    problem: Any
    n_rows: np.ndarray
    n_clients: int
    first_client: int
    names: Sequence[str]
    group: Serial

    @property
    def dimension(self) -> int:
        """The number of parameters, d."""
        return len(self.names)

    def mean(self, per_client: Callable[[int], np.ndarray]) -> np.ndarray:
        """Return the exact mean over all clients of an array computed for each local client index."""
        values = np.array([per_client(i) for i in range(self.n_rows.size)], np.float64)
        return mean_over_clients(values, self.n_clients, self.group)

    def largest(self, per_client: Callable[[int], float]) -> float:
        """Return the maximum over all clients of a number computed for each local client index."""
        return float(self.group.maximum(np.array([max(per_client(i) for i in range(self.n_rows.size))]))[0])

    def client_gradient(self, i: int, x: np.ndarray) -> np.ndarray:
        """Return ∇U^i(x) of a local client: float64[d]."""
        out = np.zeros(x.size)
        kept = np.zeros(self.potential.kept_size(int(self.n_rows.sum())))
        self.potential.kernels.full_gradient(self.problem, i, x, kept, out)
        return out

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return (1/b) Σ_i ∇U^i(x): float64[d]."""
        return self.mean(lambda i: self.client_gradient(i, x))

    def hessian(self, x: np.ndarray) -> np.ndarray:
        """Return (1/b) Σ_i ∇²U^i(x): float64[d, d]."""
        return self.mean(lambda i: self.potential.hessian(self.problem, i, x))

    def hessian_diagonal(self, x: np.ndarray) -> np.ndarray:
        """Return the diagonal of (1/b) Σ_i ∇²U^i(x): float64[d]."""
        return self.mean(lambda i: self.potential.hessian_diagonal(self.problem, i, x))
