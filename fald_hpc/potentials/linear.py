"""Linear regression with known noise: U^{i,j}(x) = (y_j - z_j·x - o_j)²/(2 σ_noise²), Gaussian prior."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fald_hpc.kernels.jit import jit
from fald_hpc.potentials.base import Kernels, check_scale
from fald_hpc.potentials.regression import Regression, glm_kernels


@jit(forceinline=True)
def residual(eta, target):
    """Return ∂/∂η of (y - η)²/2."""
    return eta - target


_KERNELS = glm_kernels("linear", residual)


@dataclass(frozen=True)
class Linear(Regression):
    """Linear regression.

    Parameters
    ----------
    noise_sd : float
        Standard deviation of the observations, in units of the target.
    prior_scale : float
        Standard deviation σ of the prior N(0, σ² I), in units of the parameters.
    intercept : bool
        Add a column of ones, last; penalised like the rest.
    """

    noise_sd: float = 1.0

    name = "linear"

    def __post_init__(self) -> None:
        """Check the scales."""
        super().__post_init__()
        check_scale("noise_sd", self.noise_sd)

    @property
    def kernels(self) -> Kernels:
        """The compiled functions."""
        return _KERNELS

    def likelihood_factor(self) -> float:
        """Return 1/σ_noise²."""
        return 1.0 / self.noise_sd**2

    def second_derivative(self, eta: np.ndarray) -> np.ndarray:
        """Return 1."""
        return np.ones_like(eta)

    def losses(self, eta: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return (y - η)²/2."""
        return 0.5 * (target - eta) ** 2

    def row_lengths(self, problem: Any, i: int) -> np.ndarray:
        """Return nothing: the potential is quadratic."""
        return np.empty(0)
