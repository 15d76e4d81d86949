"""Logistic regression: U^{i,j}(x) = log(1 + e^η) - y η with η = z_j·x + o_j and y in {0, 1}, Gaussian prior."""

from dataclasses import dataclass

import numpy as np

from fald_hpc.data.records import ClientData
from fald_hpc.errors import UserError
from fald_hpc.kernels.elementary import sigmoid
from fald_hpc.kernels.jit import jit
from fald_hpc.potentials.base import Kernels
from fald_hpc.potentials.regression import Regression, glm_kernels


@jit(forceinline=True)
def residual(eta, target):
    """Return the predicted probability minus the label."""
    return sigmoid(eta) - target


@jit
def _variances(eta, out):
    for j in range(eta.size):
        p = sigmoid(eta[j])
        out[j] = p * (1.0 - p)


_KERNELS = glm_kernels("logistic", residual)


@dataclass(frozen=True)
class Logistic(Regression):
    """Logistic regression.

    Parameters
    ----------
    prior_scale : float
        Standard deviation σ of the prior N(0, σ² I), in units of the parameters.
    intercept : bool
        Add a column of ones, last; penalised like the rest.
    """

    name = "logistic"

    @property
    def kernels(self) -> Kernels:
        """The compiled functions."""
        return _KERNELS

    def check_target(self, client: ClientData) -> None:
        """Raise UserError unless all labels are 0 or 1."""
        wrong = np.flatnonzero((client.target != 0.0) & (client.target != 1.0))
        if wrong.size:
            raise UserError(
                f"client {client.id}: label {client.target[wrong[0]]:g} in row {wrong[0] + 1}; logistic regression "
                "takes labels 0 and 1 (recode them, or use softmax for more classes)."
            )

    def second_derivative(self, eta: np.ndarray) -> np.ndarray:
        """Return p (1 - p)."""
        out = np.empty_like(eta)
        _variances(eta, out)
        return out

    def losses(self, eta: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return log(1 + e^η) - y η."""
        return np.logaddexp(0.0, eta) - target * eta
