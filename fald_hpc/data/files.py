"""Opening the files of a user: every failure of the operating system becomes one sentence."""

from pathlib import Path

from fald_hpc.errors import UserError


def read_bytes(path: Path) -> bytes:
    """Return the content of a file.

    Raises
    ------
    UserError
        If the path is missing, a folder, empty or not readable.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise UserError(f"{path}: this is a folder, not a file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: the file cannot be read ({reason})") from None
    if not content:
        raise UserError(f"{path}: the file is empty")
    return content
