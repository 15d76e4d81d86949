"""``fald init``: a built-in example as a commented TOML file to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fald_hpc.errors import UserError


def init(
    example: Annotated[str, typer.Argument(help="Name of a built-in example (`fald examples` lists them).")],
    file: Annotated[Path | None, typer.Argument(help="File to write; EXAMPLE.toml by default.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a built-in example as an editable, commented TOML file."""
    from fald_hpc import config

    text = config.example_text(example)
    target = file or Path(f"{example}.toml")
    if target.exists() and not overwrite:
        raise UserError(f"{target} exists already: choose another name or add --overwrite")
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}") from error
    print(f"Wrote {target}. Edit it, then: fald check {target}")
