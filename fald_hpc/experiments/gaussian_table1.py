"""The Gaussian experiment of section 10.1 of the paper: how far Tr Σ_* is missed, exactly and by simulation.

The clients' precisions are built of 2 by 2 blocks, so the exact moments split into d/2 problems of two coordinates.
What the theory orders is the exact squared bias: VR-FALD* far below FALD, and both shrinking with the step.
The simulated mean squared error holds the Monte Carlo variance of a chain besides (specification section 5).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fald_hpc import checkpoint
from fald_hpc.comm import Serial
from fald_hpc.data.builtin import EXAMPLES
from fald_hpc.data.clients import Clients
from fald_hpc.experiments.quadratic_moments import average_moments
from fald_hpc.kernels import moments
from fald_hpc.potentials.gaussian import Gaussian
from fald_hpc.samplers.base import Sampler
from fald_hpc.samplers.fald import FALD
from fald_hpc.samplers.vr_fald_star import VRFALDStar
from fald_hpc.sampling import sample


@dataclass(frozen=True)
class Setting:
    """Size of the experiment: the built-in clients, steps and chains, p_c, and the factors f of γ = f p_c γ̄."""

    example: str
    steps: int
    chains: int
    comm_probs: tuple[float, ...]
    factors: tuple[float, ...] = (0.5, 0.2, 0.1)
    noise_sharing: tuple[float, ...] = (0.0, 1.0)


SETTINGS = {
    "small": Setting("gaussian", 50_000, 20, (0.2,)),
    "full": Setting("gaussian-table1", 10_000_000, 100, (0.2, 0.1, 0.05)),
}


def run(
    out: Path, setting: str = "small", steps: int | None = None, exact_only: bool = False, comm: Serial | None = None
) -> list[dict[str, Any]]:
    """Run all cells, one folder each, continuing what an earlier call has left; return the rows on rank 0.

    Parameters
    ----------
    out : path
        Folder of the results.
    setting : str
        Key of ``SETTINGS``.
    steps : int, optional
        Instead of the setting's.
    exact_only : bool
        Without simulation.
    comm : communicator, optional
        All ranks.
    """
    chosen = SETTINGS[setting]
    communicator = Serial() if comm is None else comm
    clients = EXAMPLES[chosen.example]()
    records: list[Any] = clients.load(range(len(clients)))
    means, precisions = np.array([r.mean for r in records]), np.array([r.precision for r in records])
    root = communicator.rank == 0
    if root:
        out.mkdir(parents=True, exist_ok=True)
    true = float(np.trace(np.linalg.inv(precisions.sum(axis=0))))
    rows = []
    for name, p, factor, tau in _cells(chosen):
        gamma = factor * p * largest_step(precisions)
        row: dict[str, Any] = {"sampler": name, "tau": tau, "comm_prob": p, "factor": factor, "step_size": gamma}
        if root:
            trace = exact_trace(means, precisions, gamma, p, p if name == VRFALDStar.name else None, tau)
            row |= {"trace": true, "exact_trace": trace, "exact_squared_bias": (trace - true) ** 2}
        if not exact_only:
            found = _simulated(out, row, clients, steps or chosen.steps, chosen.chains, communicator)
            if found is not None:
                error = (found - true) ** 2
                row |= {
                    "mse": float(error.mean()),
                    "mse_error": float(error.std(ddof=1) / np.sqrt(error.size)),
                    "chain_variance": float(found.var(ddof=1)),
                }
        rows.append(row)
    return rows


def _cells(setting: Setting) -> Iterator[tuple[str, float, float, float]]:
    yield from product((FALD.name, VRFALDStar.name), setting.comm_probs, setting.factors, setting.noise_sharing)


def largest_step(precisions: np.ndarray) -> float:
    """Return γ̄ = 2/(λmin + λmax) of the product's precision."""
    values = np.linalg.eigvalsh(precisions.sum(axis=0))
    return float(2.0 / (values[0] + values[-1]))


def exact_trace(means: np.ndarray, precisions: np.ndarray, gamma: float, p: float, q: float | None, tau: float) -> float:
    """Return the trace of the stationary covariance of the average, two coordinates at a time."""
    total = 0.0
    for j in range(0, means.shape[1], 2):
        block = slice(j, j + 2)
        _, covariance = average_moments(means[:, block], precisions[:, block, block], gamma, p, q, tau)
        total += float(np.trace(covariance))
    return total


def _simulated(
    out: Path, row: dict[str, Any], clients: Clients, steps: int, chains: int, communicator: Serial
) -> np.ndarray | None:
    """Return every chain's own estimate of the trace on rank 0: float64[chains]."""
    p, tau = row["comm_prob"], row["tau"]
    sampler: Sampler = FALD(row["step_size"], p, tau)
    if row["sampler"] == VRFALDStar.name:
        sampler = VRFALDStar(row["step_size"], p, tau, refresh_prob=p)
    folder = out / f"{row['sampler']}-p{p:g}-f{row['factor']:g}-tau{tau:g}"
    # the chains are replications: independent coins; all start at the mode
    sample(
        Gaussian(), clients, sampler, steps=steps, chains=chains, schedule="independent", init="mode", out=folder,
        resume=True, comm=communicator, draws_megabytes=1.0,
    )  # fmt: skip
    if communicator.rank != 0:
        return None
    saved = checkpoint.load(folder / "checkpoint")
    assert saved is not None
    return chain_traces(moments.from_arrays(saved[0]))


def chain_traces(acc: moments.Accumulators) -> np.ndarray:
    """Return the trace of each chain's own covariance (about its own mean): float64[s]."""
    count = acc.count[:, None].astype(float)
    return (acc.squares / count - (acc.total / count) ** 2).sum(axis=1)


def text(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table."""
    lines = ["sampler       tau  p_c   step/(p_c γ̄)  exact bias²  simulated MSE      chain variance"]
    for row in rows:
        simulated = f"{row['mse']:.3g} ± {row['mse_error']:.2g}" if "mse" in row else "-"
        variance = f"{row['chain_variance']:.3g}" if "mse" in row else "-"
        lines.append(
            f"{row['sampler']:12s}  {row['tau']:3g}  {row['comm_prob']:4g}  {row['factor']:12g}  "
            f"{row['exact_squared_bias']:11.3g}  {simulated:17s}  {variance}"
        )
    return "\n".join(lines)
