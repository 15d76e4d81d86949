"""One door to the files of clients: npz, csv and parquet, told apart by their names."""

from pathlib import Path

from fald_hpc.data.columns import Columns, Rows
from fald_hpc.errors import UserError

SUFFIXES = (".npz", ".csv", ".parquet")


def suffix(path: Path) -> str:
    """Return the format of a file by its name.

    Raises
    ------
    UserError
        If it is none of those that can be read.
    """
    ending = path.suffix.lower()
    if ending not in SUFFIXES:
        raise UserError(f"{path}: the format {ending or 'without a suffix'!r} is not known; use .npz, .csv or .parquet")
    return ending


def read_rows(path: Path, columns: Columns) -> Rows:
    """Read the rows of a file.

    Raises
    ------
    UserError
        For anything that keeps the file from being a table of finite numbers with the named columns.
    """
    try:
        return _read(path, columns, suffix(path))
    except MemoryError:
        raise UserError(f"{path}: its table does not fit into the memory of this machine") from None


def _read(path: Path, columns: Columns, ending: str) -> Rows:
    if ending == ".npz":
        from fald_hpc.data import read_npz

        return read_npz.read_rows(path, columns)
    from fald_hpc.data import arrow_columns

    if ending == ".csv":
        from fald_hpc.data import read_csv

        header, table = read_csv.read_table(path)
    else:
        from fald_hpc.data import read_parquet

        header, table = read_parquet.read_table(path, columns)
    return arrow_columns.rows(header, table, columns, path, text=ending == ".csv")
