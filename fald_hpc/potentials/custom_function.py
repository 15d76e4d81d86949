"""A user's gradient of a row: loaded from a file, and checked in Python on a few rows before anything is compiled."""

import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np

from fald_hpc.data.records import ClientData
from fald_hpc.errors import UserError

DIFFERENCE = 6e-6
"""Step of a central difference relative to the parameter's scale: the cube root of the rounding unit."""

CHECKED_ROWS = 3
"""Rows of a client on which the function is tried."""


def check_rows(function: Any, value: Any, client: ClientData, d: int) -> None:
    """Try a row gradient on the first rows of a client, against differences of ``value`` where it is given.

    Raises
    ------
    UserError
        If the function raises, leaves an entry unset or not finite, or does not match the value.
    """
    gradient = python_of(function)
    for row in range(min(CHECKED_ROWS, client.features.shape[0])):
        theta = 0.1 + 0.05 * np.cos(np.arange(d) + row)
        x, y = client.features[row].copy(), float(client.target[row])
        out = np.full(d, np.nan)
        try:
            gradient(theta, x, y, out)
        except Exception as error:
            raise UserError(
                f"the row gradient raised {type(error).__name__}: {error} (client {client.id}, row {row + 1}, "
                f"theta of {d} numbers, x of {x.size})."
            ) from error
        if not np.isfinite(out).all():
            bad = int(np.flatnonzero(~np.isfinite(out))[0])
            raise UserError(
                f"the row gradient left entry {bad} of out unset or not finite (client {client.id}, row {row + 1}): "
                f"it must write all {d} entries."
            )
        if value is not None:
            _check_differences(value, client, row, theta, out)


def _check_differences(value: Any, client: ClientData, row: int, theta: np.ndarray, out: np.ndarray) -> None:
    """Compare a gradient with central differences of the value."""
    value = python_of(value)
    x, y = client.features[row], float(client.target[row])
    for j in range(theta.size):
        h = DIFFERENCE * max(1.0, abs(theta[j]))
        ahead, behind = theta.copy(), theta.copy()
        ahead[j] += h
        behind[j] -= h
        high, low = float(value(ahead, x, y)), float(value(behind, x, y))
        slope = (high - low) / (2.0 * h)
        # a central difference is right to about h² of the third derivative plus the rounding of the values
        allowed = 1e-4 * max(1.0, abs(slope), abs(out[j])) + 1e-15 * max(abs(high), abs(low)) / h
        if not abs(slope - out[j]) <= allowed:
            raise UserError(
                f"the row gradient does not match the value: entry {j} is {out[j]:.6g}, differences of the value "
                f"give {slope:.6g} (client {client.id}, row {row + 1})."
            )


def load_function(place: str) -> Any:
    """Return the object that "file.py:name" names.

    Raises
    ------
    UserError
        If the file or the name does not exist, or the file raises.
    """
    file, _, name = place.rpartition(":")
    path = Path(file)
    if not file or not path.is_file():
        raise UserError(f'function = "{place}": no file {os.fspath(path)}; give "file.py:name".')
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UserError(f'function = "{place}": {path} is not a Python file.')
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f'function = "{place}": {path} raised {type(error).__name__}: {error}.') from error
    if not hasattr(module, name):
        raise UserError(f'function = "{place}": {path} defines no {name}.')
    return getattr(module, name)


def python_of(function: Any) -> Any:
    """Return the Python function behind a compiled one."""
    return getattr(function, "py_func", function)
