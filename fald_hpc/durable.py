"""Files that are whole or absent, whatever ends the program or the machine."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def write(path: str | os.PathLike[str], *parts: bytes | memoryview) -> None:
    """Write a file at once: temporary file, fsync, rename, fsync of the folder.

    A reader sees the old content or the new, never a part; after the return the new one survives a power cut.

    Parameters
    ----------
    path : path
        Its folder exists. The temporary file lies beside it, under the same name with a dot before and ``.new`` after.
    *parts : bytes
        The content, in order.

    Raises
    ------
    OSError
        Disk full, folder read-only, ...: the old file is untouched.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.new")
    try:
        put(temporary, parts)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def put(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview]) -> None:
    """Write a file in place and force it to the disk."""
    with open(path, "wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Force a folder's entries (new names, renames) to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        # Some network filesystems refuse to sync a folder; there is nothing better to do there.
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
