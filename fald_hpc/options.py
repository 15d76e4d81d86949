"""How a run is kept and cut: what the caller may choose beside the study itself."""

from dataclasses import dataclass
from typing import Any

CHECKPOINT_SECONDS = 30.0


@dataclass(frozen=True)
class Options:
    """How a run is kept and cut: nothing here but ``thin``, the cap and the covariance changes what is kept."""

    draws_megabytes: float = 64.0
    thin: int = 1
    covariance: str = "auto"
    segment_steps: int | str = "auto"
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    deadline: float | None = None
    """When the run must have ended, in seconds since 1970."""

    def fixed(self) -> dict[str, Any]:
        """Return those that a resumed run may not change, by configuration key."""
        return {"output.thin": self.thin, "output.covariance": self.covariance}
