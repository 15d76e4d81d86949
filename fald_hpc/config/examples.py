"""The built-in examples as texts, ready to be edited."""

from functools import cache
from importlib import resources

from fald_hpc.config.names import nearest
from fald_hpc.errors import UserError


@cache
def example_names() -> tuple[str, ...]:
    """Return the names of the built-in examples."""
    files = resources.files("fald_hpc.examples").iterdir()
    return tuple(sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml")))


def example_text(name: str) -> str:
    """Return a built-in example as commented TOML.

    Raises
    ------
    UserError
        If there is no example of this name.
    """
    if name not in example_names():
        names = example_names()
        raise UserError(f"there is no example {name!r}{nearest(name, names)}; the examples are {', '.join(names)}")
    return (resources.files("fald_hpc.examples") / f"{name}.toml").read_text(encoding="utf-8")
