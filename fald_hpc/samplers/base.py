"""What every sampler shares: the settings of the update and their ranges."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from fald_hpc.errors import UserError


@dataclass(frozen=True)
class Sampler:
    """Base of the samplers; subclasses add the compiled loop (``compiled``)."""

    step_size: float | Literal["auto"] = "auto"
    comm_prob: float = 0.1
    noise_sharing: float = 1.0
    batch_size: int | Literal["full"] = "full"

    name: ClassVar[str]
    uses_reference: ClassVar[bool]

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises
        ------
        UserError
            If a setting is out of range.
        """
        for key in ("comm_prob", "refresh_prob"):
            value = getattr(self, key, 1.0)
            if not _is_number(value) or not 0.0 < value <= 1.0:
                raise UserError(f"{key} = {value!r}: give a probability in (0, 1].")
        if not _is_number(self.noise_sharing) or not 0.0 <= self.noise_sharing <= 1.0:
            raise UserError(f"noise_sharing = {self.noise_sharing!r}: give a number in [0, 1].")
        if self.step_size != "auto" and not (_is_number(self.step_size) and 0.0 < self.step_size < math.inf):
            raise UserError(f'step_size = {self.step_size!r}: give a positive finite number or "auto".')
        if self.batch_size != "full" and (
            not isinstance(self.batch_size, int) or isinstance(self.batch_size, bool) or self.batch_size < 1
        ):
            raise UserError(f'batch_size = {self.batch_size!r}: give a positive whole number or "full".')

    def compiled(self, kernels: Any) -> Any:
        """Return the compiled segment for a potential's kernels."""
        raise NotImplementedError


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
