"""Client files as comma-separated values: a header, then one row of numbers a line, in UTF-8."""

import codecs
import csv
import io
import re
from pathlib import Path
from typing import Any

from fald_hpc.data.files import read_bytes
from fald_hpc.errors import UserError

_MAX_BLOCK = 1 << 30
_LINE = re.compile(rb"[^\r\n]*")


def read_table(path: Path) -> tuple[list[str], Any]:
    """Return the header and the cells, all still text, as a pyarrow Table with columns named ``"0"``, ``"1"``, ...

    A byte order mark is skipped; empty lines are skipped.

    Raises
    ------
    UserError
        If the file is not UTF-8 text, has no header, or has a line with another number of cells.
    """
    content = _utf8(read_bytes(path), path)
    header, body = _header(content, path)

    import pyarrow
    from pyarrow import csv as arrow_csv

    names = [str(j) for j in range(len(header))]
    if not body.strip():
        return header, pyarrow.table({name: pyarrow.array([], pyarrow.string()) for name in names})
    wrong: list[tuple[int, int]] = []

    def refuse(row: Any) -> str:
        wrong.append((row.number, row.actual_columns))
        return "error"

    try:
        table = arrow_csv.read_csv(
            io.BytesIO(body),
            # one block, so that a long line or a line break inside quotes never straddles two
            read_options=arrow_csv.ReadOptions(
                use_threads=False, column_names=names, block_size=min(len(body) + 1, _MAX_BLOCK)
            ),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pyarrow.string()), strings_can_be_null=False
            ),
        )
    except (pyarrow.ArrowException, ValueError, OSError, KeyError, TypeError) as error:
        if wrong:
            row, cells = wrong[0]
            place = f"row {row}" if row is not None and row > 0 else "a row"
            raise UserError(
                f"{path}: {place} after the header has {cells} cells, but the header has {len(header)}"
            ) from None
        raise UserError(f"{path}: this is not valid csv ({_first_line(error)})") from None
    return header, table


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]


def _utf8(content: bytes, path: Path) -> bytes:
    """Return the content without a byte order mark, after a check of its encoding."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UserError(f"{path}: the file is UTF-16; save it as UTF-8")
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}: line {line} is not UTF-8 text; save the file as UTF-8") from None
    if b"\0" in content:
        raise UserError(f"{path}: the file holds NUL bytes, so it is not csv text")
    return content


def _header(content: bytes, path: Path) -> tuple[list[str], bytes]:
    """Return the cells of the first non-empty line, and the rest."""
    content = content.lstrip()
    if not content:
        raise UserError(f"{path}: the file has no header line")
    line = _LINE.match(content)[0]  # type: ignore[index]  # it matches whatever comes
    rest = content[len(line) :].removeprefix(b"\r").removeprefix(b"\n")
    try:
        header = [cell.strip() for cell in next(csv.reader([line.decode()], strict=True))]
    except (csv.Error, StopIteration):
        raise UserError(f"{path}: the header line is not valid csv (a quote that does not end?)") from None
    if "" in header:
        raise UserError(
            f"{path}: column {header.index('') + 1} has no name in the header "
            "(pandas writes its index so: use to_csv(index=False))"
        )
    if len(header) == 1 and any(mark in header[0] for mark in (";", "\t", "|")):
        raise UserError(f"{path}: the cells are not separated by commas; write the file with commas")
    if all(_is_number(cell) for cell in header):
        raise UserError(f"{path}: the first line holds numbers; it must be a header with the columns' names")
    return header, rest


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
