"""A folder with one file per client: listed once, the files opened only by the rank that owns the client."""

import os
from pathlib import Path

from fald_hpc.data.readers import SUFFIXES
from fald_hpc.errors import UserError

_IGNORED = (".md", ".txt", ".toml", ".json", ".yaml", ".yml", ".rst")


def list_clients(folder: Path) -> list[tuple[str, Path]]:
    """Return the ids (file names without suffix) and paths of the clients of a folder, sorted by id.

    Hidden files and notes (.md, .txt, .toml, ...) are skipped. Anything else that is not a client's file is refused:
    a client skipped in silence would change the target.

    Raises
    ------
    UserError
        If the folder is missing, not readable, without clients, or holds one id twice or something unknown.
    """
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.is_dir()) for entry in entries]
    except FileNotFoundError:
        raise UserError(f"{folder}: there is no such folder") from None
    except NotADirectoryError:
        raise UserError(f"{folder}: this is a file; use `file` for one file with all clients") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{folder}: the folder cannot be read ({reason})") from None
    clients: dict[str, Path] = {}
    for name, is_folder in sorted(found):
        stem, ending = os.path.splitext(name)
        if name.startswith(".") or (ending.lower() in _IGNORED and not is_folder):
            continue
        path = folder / name
        if is_folder:
            raise UserError(
                f"{path}: this is a folder, but every client is one file; move it out of the clients' folder"
            )
        if ending.lower() not in SUFFIXES:
            raise UserError(f"{path}: a client's file must end in .npz, .csv or .parquet; move other files elsewhere")
        if stem in clients:
            raise UserError(f"{path}: the client id {stem!r} appears twice (also {clients[stem].name})")
        clients[stem] = path
    if not clients:
        raise UserError(
            f"{folder}: there is no client in this folder; it needs one .npz, .csv or .parquet file for each"
        )
    return sorted(clients.items())
