"""``fald examples``: the built-in examples, one a line."""

from __future__ import annotations


def examples() -> None:
    """List the built-in examples; `fald run NAME` samples one, `fald init NAME` writes it as a file to edit."""
    from fald_hpc import config

    for name in config.example_names():
        print(f"{name:22s} {_first_comment(config.example_text(name))}")


def _first_comment(text: str) -> str:
    """Return the first comment line of a TOML text: what the example is."""
    for line in text.splitlines():
        if line.startswith("#") and line.strip("# "):
            return line.strip("# ")
    return ""
