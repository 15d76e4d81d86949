"""Checkpoints: arrays and a JSON record in one file with a checksum, two generations of it.

The bytes of a file depend on its content only, so the checkpoints of equal states are equal files.

Layout: a line ``fald_hpc checkpoint 1``; a line with the length of the header; the header, JSON with sorted keys
(``arrays``: name, dtype, shape in order; ``meta``); the arrays' bytes, little-endian and C order; SHA-256 of all this.

Saving writes ``next`` to the disk, renames ``newest`` to ``previous``, then ``next`` to ``newest``. So whenever the
program is killed one sound file is there; loading takes the first sound one of next, newest, previous.
"""

import hashlib
import json
import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fald_hpc import durable
from fald_hpc.errors import UserError

MAGIC = b"fald_hpc checkpoint 1\n"

_DTYPE = re.compile(r"[<|][biuf]\d{1,2}")


class CheckpointWarning(UserWarning):
    """The newest checkpoint is damaged; an older one is used."""


def pack(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> list[bytes]:
    """Return a checkpoint's content in parts; joined, they are the file.

    Raises
    ------
    TypeError
        An array that is not of plain numbers, or a ``meta`` that is not JSON.
    """
    fields, data = [], []
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        if array.dtype.kind not in "biuf":
            raise TypeError(f"checkpoint array {name!r} has dtype {array.dtype}, not plain numbers")
        # ascontiguousarray would make a 0-dimensional array 1-dimensional.
        array = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
        fields.append([name, array.dtype.str, list(array.shape)])
        data.append(array.tobytes())
    header = json.dumps({"arrays": fields, "meta": dict(meta)}, sort_keys=True, allow_nan=False).encode()
    parts: list[bytes] = [MAGIC, b"%d\n" % len(header), header, *data]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return [*parts, digest.digest()]


def unpack(content: bytes) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Return the arrays (writable copies) and the record of a file's content; None if it is torn or damaged."""
    body = memoryview(content)[:-32]
    if not content.startswith(MAGIC) or hashlib.sha256(body).digest() != content[-32:]:
        return None
    try:
        start = content.index(b"\n", len(MAGIC)) + 1
        offset = start + int(content[len(MAGIC) : start])
        header = json.loads(content[start:offset])
        arrays = {}
        for name, dtype, shape in header["arrays"]:
            if not _DTYPE.fullmatch(dtype):  # NumPy evaluates some texts
                return None
            size = int(np.prod(shape, dtype=np.int64))
            array = np.frombuffer(content, np.dtype(dtype), count=size, offset=offset).reshape(shape)
            arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=True)
            offset += array.nbytes
        return arrays, dict(header["meta"])
    # the checksum is right, but this program did not write it
    except (ValueError, TypeError, KeyError, LookupError, OverflowError, MemoryError, RecursionError):
        return None


def save(folder: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
    """Save a state; the one before is kept.

    Parameters
    ----------
    folder : path
        Made if missing (not its parents).
    arrays : dict of arrays
        Plain numbers of any shape.
    meta : dict
        JSON-able; no NaN.

    Raises
    ------
    OSError
        The state could not be written; the last saved one is still there.
    """
    folder = Path(folder)
    parts = pack(arrays, meta)
    if not folder.is_dir():
        folder.mkdir()
        durable.sync_folder(folder.parent)
    durable.write(folder / "next", *parts)
    if (folder / "newest").exists():
        os.replace(folder / "newest", folder / "previous")
    os.replace(folder / "next", folder / "newest")
    durable.sync_folder(folder)


def load(folder: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
    """Return the last sound state, None if none was ever saved.

    Warns
    -----
    CheckpointWarning
        A damaged file was passed over.

    Raises
    ------
    UserError
        There are checkpoints and none is sound.
    """
    folder = Path(folder)
    damaged: list[str] = []
    for name in ("next", "newest", "previous"):
        try:
            content = (folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        state = unpack(content)
        if state is not None:
            if damaged:
                warnings.warn(
                    f"checkpoint {folder / damaged[0]} is damaged (checksum): continuing from {folder / name}, "
                    "which is older",
                    CheckpointWarning,
                    stacklevel=2,
                )
            return state
        damaged.append(name)
    if damaged:
        raise UserError(
            f"no checkpoint in {folder} is sound ({', '.join(damaged)}: checksum does not match); "
            "start the run again with --overwrite, or restore the folder from a backup"
        )
    return None
