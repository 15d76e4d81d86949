"""One look: how the clients' gradients differ at a point where all clients agree, and how their minibatches scatter."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from fald_hpc.federation import Federation
from fald_hpc.kernels import scatter as templates
from fald_hpc.kernels.jit import compile_for, instantiate
from fald_hpc.mode import dot
from fald_hpc.potentials.base import Kernels

HETEROGENEITY, CORRECTED, PLAIN, REDUCED, N_NUMBERS = range(5)
"""What a look gives of a client: columns of float64[c, N_NUMBERS]."""

_VECTOR = types.float64[::1]


@cache
def _compiled_scatter(kernels: Kernels) -> Callable[..., Any]:
    found: Callable[..., Any] = instantiate(
        templates.scatter, kernels.label, cache=kernels.cache, gradient=kernels.gradient, difference=kernels.difference
    )
    return found


class Observer:
    """What looks at this rank's clients.

    Parameters
    ----------
    federation : Federation
        The clients.
    batch : int64[c]
        n_i of this rank's clients.
    uses_reference : bool
        Whether the sampler has a reference point (VR-FALD*).
    """

    def __init__(self, federation: Federation, batch: np.ndarray, uses_reference: bool) -> None:
        self.federation, self.uses_reference = federation, uses_reference
        n = federation.n_rows.astype(np.float64)
        self._factor = np.where(n > batch, (n - batch) / np.maximum(batch * (n - 1.0), 1.0), 0.0)
        self._scatter = _compiled_scatter(federation.potential.kernels) if uses_reference else None
        self._scratch = np.zeros(federation.potential.kept_size(int(n.sum())))
        self._row, self._out = np.zeros(1, np.int64), np.zeros(federation.dimension)

    def compile(self) -> None:
        """Compile what a look calls, or load it from the disk cache."""
        kernels, problem, x = self.federation.potential.kernels, self.federation.problem, self._out
        dot(x, x)
        if self.federation.n_rows.size == 0:
            return
        kernels.full_gradient(problem, 0, np.zeros_like(x), self._scratch, x)
        if self._scatter is None or not self._factor.any():
            return
        if kernels.problem_type is not None:
            kind = kernels.problem_type(problem)
            row = types.int64[::1]
            compile_for(self._scatter, (kind, types.int64, *[_VECTOR] * 5, types.int64, row, _VECTOR))
        self._scatter(problem, 0, x, x, self._scratch, x, x, 0, self._row, self._out)

    def look(self, x: np.ndarray, y: np.ndarray, shift: np.ndarray, kept: np.ndarray) -> np.ndarray | None:
        """Return the numbers of this rank's clients, None where a gradient failed or is not finite.

        Parameters
        ----------
        x : float64[d]
            Where all clients agree.
        y, shift : float64[d]
            Reference point Y and mean gradient C there; not used without a reference.
        kept : float64[...]
            What the sampler kept of Y.

        Returns
        -------
        float64[c, N_NUMBERS]
            |∇U^i(x) - (1/b) Σ_j ∇U^j(x)|²; the same of ∇U^i(x) - ∇U^i(Y) + C; variance (trace) of g_S(x); variance of
            g_S(x) - g_S(Y). All nats² per parameter²; 0 for what does not apply.
        """
        at_x = self._gradients(x)
        try:
            mean = self.federation.mean(lambda i: at_x[i])
        except FloatingPointError:
            return None
        numbers = np.zeros((len(at_x), N_NUMBERS))
        numbers[:, HETEROGENEITY] = _squares(at_x - mean)
        if self._scatter is None:
            return numbers
        moved = at_x - self._gradients(y)
        numbers[:, CORRECTED] = _squares(moved + (shift - mean))
        for i in np.flatnonzero(self._factor):
            plain, reduced = self._scatter(
                self.federation.problem, i, x, y, kept, at_x[i], moved[i], int(self.federation.n_rows[i]),
                self._row, self._out,
            )  # fmt: skip
            if plain < 0.0:
                return None
            numbers[i, PLAIN], numbers[i, REDUCED] = self._factor[i] * plain, self._factor[i] * reduced
        return numbers

    def _gradients(self, x: np.ndarray) -> np.ndarray:
        """Return ∇U^i(x) of this rank's clients: float64[c, d], NaN where it fails."""
        kernels, problem = self.federation.potential.kernels, self.federation.problem
        found = np.zeros((self.federation.n_rows.size, x.size))
        for i, out in enumerate(found):
            if kernels.full_gradient(problem, i, x, self._scratch, out) < 0:
                out[:] = np.nan
        return found


def _squares(vectors: np.ndarray) -> np.ndarray:
    """Return |v|² of every row."""
    return np.array([dot(v, v) for v in vectors])
