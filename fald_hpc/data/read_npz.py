"""Client files in NumPy's npz format; pickled objects are refused, never loaded."""

import io
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fald_hpc.data import checks
from fald_hpc.data.columns import Columns, Rows, present
from fald_hpc.data.files import read_bytes
from fald_hpc.errors import UserError


def arrays(path: Path, wanted: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Return those of the wanted arrays that an npz file holds.

    Raises
    ------
    UserError
        If the file cannot be read, is no npz archive, or holds a pickle under a wanted name.
    """
    content = read_bytes(path)
    if content[:2] != b"PK":
        raise UserError(f"{path}: this is not an npz archive (write it with numpy.savez)")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: np.asarray(archive[name]) for name in wanted if name in archive.files}
    # bytes of unknown origin make zipfile, zlib and NumPy raise about ten kinds of exceptions
    except Exception as error:
        if "allow_pickle" in str(error) or "pickled" in str(error):
            raise UserError(
                f"{path}: an array holds pickled Python objects, which are refused because loading them can run "
                "code; save arrays of numbers (or of text for names)"
            ) from None
        raise UserError(f"{path}: the npz archive is damaged ({type(error).__name__}); write it again") from None


def read_rows(path: Path, columns: Columns) -> Rows:
    """Read ``X`` (n, p) and ``y`` (n,), and, where present, ``weights``, ``offset`` and ``feature_names``.

    The names of label, weight and offset columns do not apply to this format, but a weight or an offset that is asked
    for must be there. A client column is an array of that name, one entry a row.
    """
    extra = () if columns.client is None else (columns.client,)
    found = arrays(path, ("X", "y", "weights", "offset", "feature_names", *extra))
    for name in ("X", "y"):
        if name not in found:
            raise UserError(f"{path}: there is no array `{name}`; an npz file of rows holds `X` (n, p) and `y` (n,)")
    for name, asked in (("weights", columns.weight), ("offset", columns.offset)):
        if asked is not None and name not in found:
            raise UserError(f"{path}: {asked!r} is asked for, but the archive has no array `{name}`")
    names = _names(found.get("feature_names"), path)
    x = checks.numbers(found["X"], f"{path}: X", 2, names or ())
    y = checks.numbers(found["y"], f"{path}: y", 1)
    checks.same_rows(x, y.size, f"{path}: X")
    if names is not None and len(names) != x.shape[1]:
        raise UserError(f"{path}: {len(names)} feature_names, but X has {x.shape[1]} columns")
    x, names = _select(x, names, columns, path)
    optional: dict[str, NDArray[np.float64] | None] = {"weights": None, "offset": None}
    for name in optional:
        if name in found:
            optional[name] = values = checks.numbers(found[name], f"{path}: {name}", 1)
            checks.same_rows(values, y.size, f"{path}: {name}")
    if optional["weights"] is not None:
        checks.not_negative(optional["weights"], f"{path}: weights")
    clients = None
    if columns.client is not None:
        present(columns.client, tuple(found), str(path))
        clients = _ids(found[columns.client], y.size, columns.client, path)
    return Rows(names, x, y, optional["weights"], optional["offset"], clients)


def _names(array: NDArray[Any] | None, path: Path) -> tuple[str, ...] | None:
    """Return the names of the features."""
    if array is None:
        return None
    if array.dtype.kind not in "US" or array.ndim != 1:
        raise UserError(f"{path}: feature_names must be a one-dimensional array of text")
    return tuple(_text(array, "feature_names", path))


def _text(array: NDArray[Any], name: str, path: Path) -> list[str]:
    """Return an array of text as a list of strings."""
    try:
        if array.dtype.kind == "U" and array.nbytes:
            # words of 32 bits that are no characters make NumPy fail as a fault of its own (SystemError)
            words = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
            if int(words.max()) > sys.maxunicode:
                raise ValueError
        texts = [item.decode() if isinstance(item, bytes) else str(item) for item in array.tolist()]
        "".join(texts).encode()
    except ValueError:  # UnicodeError is one
        raise UserError(f"{path}: {name} holds text that is not valid Unicode") from None
    return texts


def _select(
    x: NDArray[np.float64], names: tuple[str, ...] | None, columns: Columns, path: Path
) -> tuple[NDArray[np.float64], tuple[str, ...] | None]:
    """Return the features asked for, in that order."""
    asked = columns.features
    if asked is None:
        return x, names
    if names is None:
        if len(asked) != x.shape[1]:
            raise UserError(
                f"{path}: {len(asked)} features are asked for, X has {x.shape[1]} columns, and there is no array "
                "`feature_names` to choose by"
            )
        return x, asked
    place = {name: j for j, name in enumerate(names)}
    for name in asked:
        if name not in place:
            present(name, names, str(path))
    if len(place) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise UserError(f"{path}: {twice!r} appears twice in feature_names")
    return np.ascontiguousarray(x[:, [place[name] for name in asked]]), asked


def _ids(array: NDArray[Any], n: int, name: str, path: Path) -> tuple[str, ...]:
    """Return one client id a row."""
    if array.ndim != 1 or array.size != n:
        raise UserError(f"{path}: `{name}` has shape {array.shape}, but there are {n} rows")
    if array.dtype.kind in "iu":
        return tuple(str(item) for item in array.tolist())
    if array.dtype.kind not in "US":
        raise UserError(f"{path}: `{name}` must hold client ids as text or integers")
    return tuple(_text(array, name, path))


def read_gaussian(path: Path) -> dict[str, NDArray[Any]]:
    """Read ``mean`` and one of ``covariance`` and ``precision``."""
    found = arrays(path, ("mean", "covariance", "precision"))
    if "mean" not in found or len(found) != 2:
        raise UserError(
            f"{path}: a Gaussian client's file holds `mean` (d,) and exactly one of `covariance` and `precision`; "
            f"of these it has {', '.join(found) or 'none'}"
        )
    return found
