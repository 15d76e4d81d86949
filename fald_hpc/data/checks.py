"""Checks of the arrays that come from a user: numeric, finite, of the right shape; a failure names row and column."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fald_hpc.errors import UserError


def numbers(value: Any, label: str, n_axes: int, columns: Sequence[str] = ()) -> NDArray[np.float64]:
    """Return the value as a finite float64 array with a number of axes, C-contiguous.

    Raises
    ------
    UserError
        If it has another number of axes, does not hold real numbers, or holds NaN or infinity.
    """
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        raise UserError(f"{label} is ragged: all rows must have the same length") from None
    if array.dtype.kind not in "biuf":
        kinds = {"O": "Python objects", "U": "text", "S": "text", "c": "complex numbers"}
        raise UserError(f"{label} holds {kinds.get(array.dtype.kind, str(array.dtype))}, not real numbers")
    if array.ndim != n_axes:
        shape = "two axes (rows, columns)" if n_axes == 2 else "one axis"
        raise UserError(f"{label} has shape {array.shape}, but must have {shape}")
    with np.errstate(all="ignore"):  # what does not fit becomes infinite, and is refused for it
        result = np.ascontiguousarray(array, dtype=np.float64)
    finite(result, label, columns)
    return result


def finite(array: NDArray[np.float64], label: str, columns: Sequence[str] = ()) -> None:
    """Refuse NaN and infinity and name the first one."""
    good = np.isfinite(array)
    if bool(good.all()):
        return
    index = tuple(int(i) for i in np.argwhere(~good)[0])
    place = f"row {index[0] + 1}"
    if len(index) > 1:
        place += f", column {columns[index[1]] if columns else index[1] + 1}"
    raise UserError(f"{label}: {array[index]} in {place}; every value must be a finite number")


def same_rows(array: NDArray[np.float64], n: int, label: str) -> None:
    """Refuse an array whose number of rows is not that of the target."""
    if array.shape[0] != n:
        raise UserError(f"{label}: {array.shape[0]} rows, but the target (y) has {n}")


def not_negative(array: NDArray[np.float64], label: str) -> None:
    """Refuse a negative entry and name its row."""
    if array.size and float(array.min()) < 0.0:
        row = int(np.argmax(array < 0.0))
        raise UserError(f"{label}: {array[row]} in row {row + 1}; a weight must not be negative")
