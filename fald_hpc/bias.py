r"""The bias that the step size leaves in posterior means and standard deviations, with its Monte Carlo error.

Nothing corrects the discretisation, so an estimate at step γ tends to ``truth + c γ + O(γ²)``. Two runs, at γ and at
γ/2 with twice the steps (so both cover the same diffusion time) and another seed (so they are independent), give

    bias(γ) ≈ 2 [est(γ) - est(γ/2)],        error² = 4 [error(γ)² + error(γ/2)²]

(Richardson). *Assumed*: the leading error is of first order in γ at fixed p_c, q_c, τ and batch size, and γ is small
enough for it to lead. Where the leading error is of second order (private noise; the minibatches of VR-FALD*) the true
bias is two thirds of the number given, which errs on the safe side.

Where the posterior is known (Gaussian clients; linear regression with its Gaussian prior) the bias is also measured
directly, ``est(γ) - truth``, without that assumption and with the smaller error of one run.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fald_hpc.comm import Serial
from fald_hpc.config import Config
from fald_hpc.execute import arguments
from fald_hpc.metrics import diagnostics
from fald_hpc.metrics.spread import sd_error
from fald_hpc.mode import DENSE_LIMIT
from fald_hpc.potentials.gaussian import Gaussian
from fald_hpc.potentials.linear import Linear
from fald_hpc.run import Run
from fald_hpc.sampling import request, sample
from fald_hpc.study import prepare

ERRORS = 2.0
"""A bias of fewer Monte Carlo standard errors is not resolved."""

Progress = Callable[[int, int], None]


class Measured(NamedTuple):
    """Something measured of the means and of the standard deviations, with Monte Carlo errors, each float64[d].

    An error is NaN where the run is too short to know it.
    """

    mean: np.ndarray
    mean_error: np.ndarray
    sd: np.ndarray
    sd_error: np.ndarray


class Exact(NamedTuple):
    """Posterior means and standard deviations of a quadratic potential, float64[d] each."""

    mean: np.ndarray
    sd: np.ndarray


@dataclass(frozen=True, eq=False)
class Bias:
    """What two runs of one setting say.

    Attributes
    ----------
    names : list of str
        The d parameters.
    sampler : str
        Its name.
    settings : dict
        Settings of the sampler, ``step_size`` = γ as a number.
    steps, chains : int
        Iterations of a chain at γ (at γ/2 twice as many), and chains.
    seeds : (int, int)
        Seeds of the two runs.
    whole, half : Measured
        At γ and at γ/2.
    exact : Exact or None
        The posterior where it is known.
    notes : list of str
        What a reader must know of the runs.
    """

    names: list[str]
    sampler: str
    settings: dict[str, Any]
    steps: int
    chains: int
    seeds: tuple[int, int]
    whole: Measured
    half: Measured
    exact: Exact | None
    notes: list[str]

    @property
    def richardson(self) -> Measured:
        """The bias at γ from the two runs."""
        one, two = self.whole, self.half
        return Measured(
            2.0 * (one.mean - two.mean),
            2.0 * np.hypot(one.mean_error, two.mean_error),
            2.0 * (one.sd - two.sd),
            2.0 * np.hypot(one.sd_error, two.sd_error),
        )

    @property
    def against_exact(self) -> Measured | None:
        """The bias at γ against the known posterior, None if it is not known."""
        if self.exact is None:
            return None
        one = self.whole
        return Measured(one.mean - self.exact.mean, one.mean_error, one.sd - self.exact.sd, one.sd_error)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; a bias whose error is unknown is null."""
        kinds = {"richardson": self.richardson, "against_exact": self.against_exact}
        rows = []
        for p, name in enumerate(self.names):
            row: dict[str, Any] = {"name": name, "mean": float(self.whole.mean[p]), "sd": float(self.whole.sd[p])}
            for kind, found in kinds.items():
                row[kind] = None if found is None else _as_numbers(found, p)
            rows.append(row)
        return {
            "sampler": {"name": self.sampler, **self.settings},
            "steps": self.steps,
            "chains": self.chains,
            "seeds": list(self.seeds),
            "parameters": rows,
            "notes": self.notes,
        }


def resolved(bias: float, error: float) -> bool:
    """Return whether a bias is at least :data:`ERRORS` of its Monte Carlo errors."""
    return math.isfinite(error) and abs(bias) >= ERRORS * error


def _as_numbers(found: Measured, p: int) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for key in ("mean", "sd"):
        bias, error = float(getattr(found, key)[p]), float(getattr(found, f"{key}_error")[p])
        known = math.isfinite(bias) and math.isfinite(error)
        numbers[f"{key}_bias"] = bias if known else None
        numbers[f"{key}_error"] = error if known else None
        numbers[f"{key}_resolved"] = resolved(bias, error) if known else None
    return numbers


def measure(config: Config, comm: Serial | None = None, progress: Progress | None = None) -> Bias | None:
    """Sample a configuration at its step size and at half of it, and return the bias; None on ranks other than 0.

    Parameters
    ----------
    config : Config
        ``step_size`` = "auto" stands for the step that a run of this configuration takes.
    comm : communicator, optional
        All ranks.
    progress : callable, optional
        Called on rank 0 with (iterations done, iterations of both runs).

    Raises
    ------
    UserError
        As :func:`fald_hpc.sample`.
    """
    communicator = Serial() if comm is None else comm
    given = arguments(config)
    steps, seed = given["steps"], given["seed"]

    def after(done: int) -> Progress | None:
        return None if progress is None else lambda step, _: progress(done + step, 3 * steps)

    whole = sample(**given, comm=communicator, progress=after(0))
    gamma = float(communicator.share(whole.manifest.get("step_size")))
    finer = {
        **given,
        "steps": 2 * steps,
        "burn_in": 2 * config.run.burn_in_steps,
        "sampler": replace(given["sampler"], step_size=gamma / 2.0),
        "seed": (seed + 1) % 2**64,
    }
    half = sample(**finer, comm=communicator, progress=after(steps))
    known = exact_posterior(given, gamma, communicator)
    if communicator.rank != 0:
        return None
    settings = {key: value for key, value in whole.manifest["sampler"].items() if key != "name"}
    notes = [f"at step size {g:g}: {text}" for g, run in ((gamma, whole), (gamma / 2.0, half)) for text in _notes(run)]
    return Bias(
        names=whole.names,
        sampler=whole.manifest["sampler"]["name"],
        settings=settings,
        steps=steps,
        chains=given["chains"],
        seeds=(seed, finer["seed"]),
        whole=estimate(whole),
        half=estimate(half),
        exact=known,
        notes=notes,
    )


def _notes(run: Run) -> list[str]:
    return [str(text) for text in run.summary()["warnings"]]


def estimate(run: Run) -> Measured:
    """Return a run's means and standard deviations with their errors.

    Chains that disagree know the error of their mean from their spread, and that of their sd not at all: NaN.
    """
    columns = {key: np.array([_nan(row[key]) for row in run.summary()["parameters"]]) for key in ("mcse", "r_hat")}
    spread = sd_error(np.asarray(run.draws))
    spread[columns["r_hat"] > diagnostics.LARGEST_R_HAT] = np.nan
    return Measured(run.mean, columns["mcse"], run.sd, spread)


def _nan(value: float | None) -> float:
    return math.nan if value is None else value


def exact_posterior(given: dict[str, Any], gamma: float, communicator: Serial) -> Exact | None:
    """Return the posterior of a quadratic potential, None for others and above DENSE_LIMIT parameters.

    For Gaussian clients this is the product of Gaussians, for linear regression the conjugate posterior: in both the
    precision is the Hessian of U and the mean the zero of its gradient.

    Parameters
    ----------
    given : dict
        Arguments of :func:`fald_hpc.sample`.
    gamma : float
        The step size, so that it is not looked for again.
    communicator : communicator
        All ranks.
    """
    if not isinstance(given["potential"], (Gaussian, Linear)):
        return None
    names = ("potential", "clients", "sampler", "steps", "chains", "seed", "burn_in", "init", "schedule", "record")
    asked = request(**{name: given[name] for name in (*names, "standardise")})
    study = prepare(asked, communicator, given["chain_groups"], known_step_size=gamma, need_mode=False)
    federation = study.federation
    b, d = federation.n_clients, federation.dimension
    if d > DENSE_LIMIT:
        return None
    mean = np.zeros(d)
    precision = b * federation.hessian(mean)
    for _ in range(2):  # the second removes the rounding of the first
        mean = mean - np.linalg.solve(precision, b * federation.gradient(mean))
    undo = study.original(np.eye(d)) - study.original(np.zeros((1, d)))
    covariance = undo.T @ np.linalg.inv(precision) @ undo
    return Exact(study.original(mean[None])[0], np.sqrt(np.diag(covariance)))
