"""The clients' drift, where a run's manifest has it: numbers by client as a table, the rest as facts."""

from collections.abc import Mapping
from typing import Any

MOST = 20
"""Clients shown; of more, those with the largest value in the first column."""


def table(manifest: Mapping[str, Any]) -> tuple[list[str], list[list[str]]] | None:
    """Return the head and rows of the table by client, None where the manifest has no such numbers."""
    clients, drift = manifest.get("clients", []), manifest.get("drift")
    if not isinstance(drift, Mapping):
        return None
    columns = {k: v for k, v in drift.items() if isinstance(v, list) and clients and len(v) == len(clients)}
    if not columns:
        return None
    order = range(len(clients))
    if len(clients) > MOST:
        first = next(iter(columns.values()))
        order = sorted(sorted(order, key=lambda i: -(first[i] if _is_number(first[i]) else 0.0))[:MOST])  # type: ignore[assignment]
    head = ["client", *(name.replace("_", " ") for name in columns)]
    return head, [[clients[i], *(_text(values[i]) for values in columns.values())] for i in order]


def facts(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what the manifest says of drift that is not by client."""
    drift = manifest.get("drift")
    if not isinstance(drift, Mapping):
        return []
    clients = manifest.get("clients", [])
    found = []
    for name, value in drift.items():
        if isinstance(value, list) and len(value) != len(clients):
            found.append((name.replace("_", " "), ", ".join(_text(v) for v in value[:MOST])))
        elif _is_number(value) or isinstance(value, str):
            found.append((name.replace("_", " "), _text(value)))
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return f"{value:.3g}" if _is_number(value) else ("-" if value is None else str(value))
