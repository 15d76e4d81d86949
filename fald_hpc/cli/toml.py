"""A configuration as TOML text: tables of plain values, as :meth:`fald_hpc.config.Config.to_dict` gives them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def text(tables: Mapping[str, Any], prefix: str = "") -> str:
    """Return nested tables as TOML, plain values of a table before its own tables."""
    parts = []
    for name, table in tables.items():
        full = f"{prefix}{name}"
        plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
        parts.append(f"[{full}]\n" + "".join(f"{key} = {_value(value)}\n" for key, value in plain.items()))
        inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
        if inner:
            parts.append(text(inner, f"{full}."))
    return "\n".join(parts)


def _value(value: Any) -> str:
    """Return a plain value as TOML."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)
