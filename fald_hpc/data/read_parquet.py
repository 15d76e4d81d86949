"""Client files in the Parquet format."""

import os
from pathlib import Path
from typing import Any

from fald_hpc.data.columns import Columns
from fald_hpc.data.files import read_bytes
from fald_hpc.errors import UserError


def read_table(path: Path, columns: Columns) -> tuple[list[str], Any]:
    """Return the names of all columns, and a pyarrow Table of those needed, named by their position in that list.

    Raises
    ------
    UserError
        If the file is not valid Parquet.
    """
    content = read_bytes(path)

    import pyarrow
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(pyarrow.BufferReader(content))
        names = [str(name) for name in file.schema_arrow.names]
        _check_size(file.metadata, len(names) if columns.features is None else len(columns.features))
        needed = None
        if columns.features is not None and len(set(names)) == len(names):
            roles = {columns.label, columns.weight, columns.offset, columns.client, *columns.features}
            needed = [name for name in names if name in roles]
        table = file.read(columns=needed, use_threads=False)
        place = {name: str(j) for j, name in enumerate(names)}
        positions = [str(j) for j in range(len(names))] if needed is None else [place[name] for name in table.column_names]
        return names, table.rename_columns(positions)
    except MemoryError:
        raise
    # a damaged file makes Arrow raise many kinds of exceptions
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:160]
        raise UserError(f"{path}: this is not a valid Parquet file ({reason})") from None


def _check_size(metadata: Any, width: int) -> None:
    """Refuse, before Arrow allocates for them, rows that the file cannot hold or this machine cannot.

    Raises
    ------
    ValueError
        The parts of the file contradict the whole.
    MemoryError
        The table would be larger than the memory of this machine.
    """
    rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    if min(rows, default=0) < 0 or sum(rows) != metadata.num_rows:
        raise ValueError(f"its parts have {sum(rows)} rows, but it says {metadata.num_rows}")
    if 8 * width * metadata.num_rows > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise MemoryError
