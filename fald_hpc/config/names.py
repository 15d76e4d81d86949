"""Samplers and potentials by name, and the keys that each of them takes: its dataclass fields."""

from collections.abc import Iterable
from dataclasses import MISSING, fields
from difflib import get_close_matches
from typing import Any

from fald_hpc.errors import UserError

_CUSTOM = {"function": MISSING, "dimension": MISSING, "prior_scale": 1.0}


def sampler_keys(name: str) -> dict[str, Any]:
    """Return the settings of a sampler and their defaults."""
    from fald_hpc.samplers import by_name

    return _defaults("[sampler] name", name, by_name())


def potential_keys(name: str) -> dict[str, Any]:
    """Return the constants of a potential and their defaults (MISSING where there is none)."""
    from fald_hpc.potentials import by_name

    return dict(_CUSTOM) if name == "custom" else _defaults("[target] potential", name, by_name(), ("custom",))


def _defaults(key: str, name: str, classes: dict[str, Any], more: tuple[str, ...] = ()) -> dict[str, Any]:
    names = sorted({*classes, *more})
    if name not in classes:
        raise UserError(f"{key} = {name!r} is unknown{nearest(name, names)}; it must be one of {', '.join(names)}")
    return {item.name: item.default for item in fields(classes[name]) if item.init}


def names_of(table: str) -> list[str]:
    """Return the names of all samplers ("sampler") or potentials ("target")."""
    if table == "sampler":
        from fald_hpc.samplers import by_name

        return sorted(by_name())
    from fald_hpc import potentials

    return sorted({*potentials.by_name(), "custom"})


def nearest(word: str, words: Iterable[str]) -> str:
    """Return ``, did you mean ...?`` or nothing."""
    found = get_close_matches(word, list(words), n=1)
    return f" (did you mean {found[0]!r}?)" if found else ""
