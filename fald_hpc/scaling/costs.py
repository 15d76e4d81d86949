"""What one core takes for the parts of an iteration, fitted to measured pieces of runs.

A rank with c clients and s chains, m minibatch rows a step and n rows in all, takes in seconds::

    step      s (step + c client_step + m row_step)
    refresh   s (c client_refresh + n row_refresh)
    message   message + s c client_message                    its own part: collect, round, record; no network

"By shape" is meant so: dimension and potential are those of the configuration that was measured.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

COEFFICIENTS = (
    "step", "client_step", "row_step", "client_refresh", "row_refresh", "message", "client_message",
)  # fmt: skip


DISTURBED = 0.1
"""Share by which a piece may take longer than its fit before it counts as disturbed."""


@dataclass(frozen=True)
class Costs:
    """Seconds; see the module's formula. Fields after the seven coefficients describe what is random.

    Attributes
    ----------
    step_jitter : float
        Standard deviation of a step's seconds, as a share of its mean; steps are independent.
    detour_rate, detour_seconds : float
        Interruptions of a busy core (operating system, other jobs) a second, and the mean of their exponential length.
    """

    step: float = 0.0
    client_step: float = 0.0
    row_step: float = 0.0
    client_refresh: float = 0.0
    row_refresh: float = 0.0
    message: float = 0.0
    client_message: float = 0.0
    step_jitter: float = 0.0
    detour_rate: float = 0.0
    detour_seconds: float = 0.0

    def of_step(self, work: "Work") -> np.ndarray:
        """Return seconds of a step on each rank of a group: float64[g]."""
        return work.chains * (self.step + work.clients * self.client_step + work.batch_rows * self.row_step)

    def of_refresh(self, work: "Work") -> np.ndarray:
        """Return seconds of a refresh's full gradients: float64[g]."""
        return work.chains * (work.clients * self.client_refresh + work.rows * self.row_refresh)

    def of_message(self, work: "Work") -> np.ndarray:
        """Return a rank's own seconds of a message: float64[g]."""
        return self.message + work.chains * work.clients * self.client_message

    def with_noise(self, jitter: float, rate: float, seconds: float) -> "Costs":
        """Return the same costs with other random parts."""
        return replace(self, step_jitter=jitter, detour_rate=rate, detour_seconds=seconds)

    def to_dict(self) -> dict[str, float]:
        """Return all fields."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Costs":
        """Return costs from :meth:`to_dict`."""
        return cls(**{field.name: float(values[field.name]) for field in fields(cls) if field.name in values})


@dataclass(frozen=True)
class Work:
    """What ranks host; ranks with the same work form a group: g of them.

    Attributes
    ----------
    clients, rows, batch_rows, chains : float64[g]
        Of one rank. ``chains`` are those of one message: 1 with independent coins.
    slow : float64[g]
        Factor of a rank's compute time, 1 for a rank like the measured core.
    count : int64[g]
        Ranks in the group.
    """

    clients: np.ndarray
    rows: np.ndarray
    batch_rows: np.ndarray
    chains: np.ndarray
    slow: np.ndarray
    count: np.ndarray


@dataclass(frozen=True)
class Piece:
    """A measured piece of a run on one core: what was done, and the seconds it took."""

    clients: int
    rows: int
    batch_rows: int
    chains: int
    steps: int
    refreshes: int
    messages: int
    seconds: float

    def features(self) -> list[float]:
        """Return how often each coefficient counts."""
        s = self.chains
        return [
            self.steps * s,
            self.steps * s * self.clients,
            self.steps * s * self.batch_rows,
            self.refreshes * s * self.clients,
            self.refreshes * s * self.rows,
            self.messages,
            self.messages * s * self.clients,
        ]


def fit(pieces: Sequence[Piece]) -> Costs:
    """Return the costs, none negative, that fit pieces best in relative terms.

    Pieces that take far more than the others allow were disturbed by something else on the machine: up to a quarter
    of them is left out.
    """
    from scipy.optimize import nnls

    table = np.array([piece.features() for piece in pieces], float)
    table /= np.array([piece.seconds for piece in pieces])[:, None]
    # columns of equal size, or the solver would take small coefficients for zero
    size = np.where(table.any(axis=0), np.linalg.norm(table, axis=0), 1.0)
    used = np.ones(len(pieces), bool)
    found = np.zeros(len(COEFFICIENTS))
    for _ in range(3):
        found, _ = nnls(table[used] / size, np.ones(int(used.sum())))
        short = 1.0 - table @ (found / size)
        limit = max(DISTURBED, 4.0 * float(np.median(np.abs(short))), float(np.quantile(short, 0.75)))
        used = short <= limit
    return Costs(**dict(zip(COEFFICIENTS, (found / size).tolist(), strict=True)))


def misfit(costs: Costs, pieces: Sequence[Piece]) -> float:
    """Return the median relative error of the fit over its pieces."""
    values = costs.to_dict()
    coefficients = np.array([values[name] for name in COEFFICIENTS])
    errors = [abs(float(np.dot(piece.features(), coefficients)) / piece.seconds - 1.0) for piece in pieces]
    return float(np.median(errors))
