"""How a run is kept and cut: what the caller may choose beside the study itself."""

from dataclasses import dataclass
from typing import Any

from fald_hpc.errors import UserError

CHECKPOINT_SECONDS = 30.0


@dataclass(frozen=True)
class Options:
    """How a run is kept and cut: nothing here but ``thin``, the cap and the covariance changes what is kept."""

    draws_megabytes: float = 64.0
    thin: int = 1
    covariance: str = "auto"
    segment_steps: int | str = "auto"
    chain_batches: int | str = "auto"
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    deadline: float | None = None
    """When the run must have ended, in seconds since 1970."""

    def check(self, schedule: str) -> None:
        """Check the ranges; ``schedule`` is that of the coins.

        Raises
        ------
        UserError
            If an option is out of range.
        """
        if self.covariance not in ("auto", "full", "diagonal"):
            raise UserError(f'covariance = {self.covariance!r}: give "auto", "full" or "diagonal".')
        if self.thin < 1 or not self.draws_megabytes > 0:
            raise UserError("thin must be at least 1 and draws_megabytes positive.")
        for name in ("segment_steps", "chain_batches"):
            value = getattr(self, name)
            if value != "auto" and (isinstance(value, (bool, str)) or int(value) != value or value < 1):
                raise UserError(f'{name} = {value!r}: give a whole number of at least 1 or "auto".')
        if self.chain_batches not in ("auto", 1) and schedule == "independent":
            raise UserError(
                f'chain_batches = {self.chain_batches} needs schedule = "shared": with coins of their own, chains send '
                "their messages one after another; leave chain_batches out."
            )

    def fixed(self) -> dict[str, Any]:
        """Return those that a resumed run may not change, by configuration key."""
        return {"output.thin": self.thin, "output.covariance": self.covariance}
