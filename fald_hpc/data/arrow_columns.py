"""Numbers and ids from the columns of a csv or Parquet table; a cell that is not a finite number is named."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fald_hpc.data import checks
from fald_hpc.data.columns import Columns, Rows
from fald_hpc.errors import UserError


def rows(header: list[str], table: Any, columns: Columns, path: Path, text: bool) -> Rows:
    """Return the rows of a table whose columns are named by their position in the header.

    Parameters
    ----------
    header : list of str
        Names of all columns of the file.
    table : pyarrow.Table
    columns : Columns
        Their roles.
    path : Path
        For messages.
    text : bool
        Whether cells are text that must be parsed (csv).

    Raises
    ------
    UserError
        If a column is missing or a cell is empty, not a number, NaN or infinite.
    """
    features = columns.choose(header, str(path))
    place = {name: str(j) for j, name in enumerate(header)}

    def get(name: str | None) -> NDArray[np.float64] | None:
        return None if name is None else numbers(table.column(place[name]), name, path, text)

    x = np.empty((table.num_rows, len(features)))
    for j, name in enumerate(features):
        x[:, j] = get(name)
    y = get(columns.label)
    weights = get(columns.weight)
    if weights is not None:
        checks.not_negative(weights, f"{path}: column {columns.weight!r}")
    clients = None
    if columns.client is not None:
        clients = ids(table.column(place[columns.client]), columns.client, path)
    assert y is not None  # choose() refuses a missing label
    return Rows(features, x, y, weights, get(columns.offset), clients)


def numbers(column: Any, name: str, path: Path, text: bool) -> NDArray[np.float64]:
    """Return a column as finite float64[n]."""
    import pyarrow
    from pyarrow import compute, types

    where = f"{path}: column {name!r}"
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        row = compute.index(compute.is_null(column), True).as_py()
        raise UserError(f"{where}: the value in row {row + 1} is missing; fill it in or drop the row")
    kind = column.type
    if text:
        column = compute.utf8_trim_whitespace(column)
        try:
            column = column.cast(pyarrow.float64())
        except pyarrow.ArrowInvalid:
            column = _booleans(column, where)
    elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)):
        raise UserError(f"{where}: it holds {kind}, not numbers; encode it as numbers or leave it out of the features")
    try:
        if types.is_boolean(column.type):
            column = column.cast(pyarrow.int8())
        values = np.array(column.cast(pyarrow.float64(), safe=False).to_numpy(), dtype=np.float64)
    except (pyarrow.ArrowException, ValueError, TypeError):
        raise UserError(f"{where}: {kind} cannot be converted to double precision") from None
    checks.finite(values, where)
    return values


def _booleans(column: Any, where: str) -> Any:
    """Return a column of true and false as booleans, else name the first cell that is not a number."""
    import pyarrow
    from pyarrow import compute

    lower = compute.utf8_lower(column)
    if compute.all(compute.is_in(lower, value_set=pyarrow.array(["true", "false"]))).as_py():
        return compute.equal(lower, "true")
    low, high = 0, len(column)  # the first bad cell lies in [low, high)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            column.slice(low, middle - low).cast(pyarrow.float64())
            low = middle
        except pyarrow.ArrowInvalid:
            high = middle
    cell = column[low].as_py()
    problem = f"{cell[:40]!r} is not a number" if cell else "the cell is empty"
    raise UserError(f"{where}: {problem} (row {low + 1} after the header); every cell must hold a number")


def ids(column: Any, name: str, path: Path) -> tuple[str, ...]:
    """Return the client id of every row, from a column of text or integers."""
    from pyarrow import compute, types

    where = f"{path}: column {name!r}"
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        row = compute.index(compute.is_null(column), True).as_py()
        raise UserError(f"{where}: the client id in row {row + 1} is missing")
    kind = column.type
    if types.is_integer(kind):
        return tuple(str(value) for value in column.to_pylist())
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
        raise UserError(f"{where}: client ids must be text or integers, not {kind}")
    try:
        return tuple(value.strip() for value in column.to_pylist())
    except UnicodeDecodeError:  # Parquet does not check its text
        raise UserError(f"{where}: a client id is not UTF-8 text") from None
