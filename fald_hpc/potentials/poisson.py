"""Poisson regression: U^{i,j}(x) = e^η - y η with η = z_j·x + o_j, o_j the offset (log exposure), Gaussian prior.

The gradient is not Lipschitz: it grows like e^η. The theory's assumptions do not hold, and a chain with too large a step
size, or started far out, diverges; the run then stops and says so. Choose a smaller step or a start at the mode.
"""

from dataclasses import dataclass

import numpy as np

from fald_hpc.data.records import ClientData
from fald_hpc.errors import UserError
from fald_hpc.kernels.elementary import exp
from fald_hpc.kernels.jit import jit
from fald_hpc.potentials.base import Kernels
from fald_hpc.potentials.regression import Regression, glm_kernels


@jit(forceinline=True)
def residual(eta, target):
    """Return the predicted rate minus the count."""
    return exp(eta) - target


@jit
def _rates(eta, out):
    for j in range(eta.size):
        out[j] = exp(eta[j])


_KERNELS = glm_kernels("poisson", residual)


@dataclass(frozen=True)
class Poisson(Regression):
    """Poisson regression.

    Parameters
    ----------
    prior_scale : float
        Standard deviation σ of the prior N(0, σ² I), in units of the parameters.
    intercept : bool
        Add a column of ones, last; penalised like the rest.
    """

    name = "poisson"

    @property
    def kernels(self) -> Kernels:
        """The compiled functions."""
        return _KERNELS

    def check_target(self, client: ClientData) -> None:
        """Raise UserError unless all labels are whole numbers from 0 on."""
        wrong = np.flatnonzero((client.target < 0.0) | (client.target != np.floor(client.target)))
        if wrong.size:
            raise UserError(
                f"client {client.id}: label {client.target[wrong[0]]:g} in row {wrong[0] + 1}; Poisson regression "
                "takes counts 0, 1, 2, ..."
            )

    def second_derivative(self, eta: np.ndarray) -> np.ndarray:
        """Return e^η."""
        out = np.empty_like(eta)
        _rates(eta, out)
        return out

    def losses(self, eta: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return e^η - y η."""
        return self.second_derivative(eta) - target * eta
