"""The clients' drift, where a run's manifest has it: numbers by client as a table, the rest as facts."""

from collections.abc import Mapping
from typing import Any

from fald_hpc.drift import text, waiting
from fald_hpc.drift.numbers import COLUMNS

MOST = 20
"""Clients shown; of more, those with the largest value in the first column."""

NOTE = (
    "Root mean squares over averagings, chains and looks. Distance: of a client from the mean just before averaging. "
    "Heterogeneity: of a client's gradient from the clients' mean gradient, where all agree; corrected: what the reference "
    "point of VR-FALD* leaves of it. Variance ratio: minibatch variance with the reference point over that without. In units "
    "of the sampled parameters, and nats per unit."
)


def table(manifest: Mapping[str, Any]) -> tuple[list[str], list[list[str]]] | None:
    """Return the head and rows of the table by client, None where the manifest has no such numbers."""
    clients, drift = manifest.get("clients", []), manifest.get("drift")
    if not isinstance(drift, Mapping):
        return None
    columns = {name: drift[name] for name in COLUMNS if isinstance(drift.get(name), list)}
    columns = {name: values for name, values in columns.items() if len(values) == len(clients)}
    if not columns:
        return None
    order = range(len(clients))
    if len(clients) > MOST:
        first = next(iter(columns.values()))
        order = sorted(sorted(order, key=lambda i: -(first[i] if _is_number(first[i]) else 0.0))[:MOST])  # type: ignore[assignment]
    head = ["client", *(text.HEADS[name] for name in columns)]
    return head, [[clients[i], *(_text(values[i]) for values in columns.values())] for i in order]


def facts(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what the manifest says of drift that is not by client."""
    drift = manifest.get("drift")
    if not isinstance(drift, Mapping) or "all_clients" not in drift:
        return []
    try:
        return _facts(drift)
    except text.DAMAGE:
        return [("Drift", "not what a run writes")]


def _facts(drift: Mapping[str, Any]) -> list[tuple[str, str]]:
    of_all, missing = drift["all_clients"], drift["missing"]
    found = [("Seen", f"{drift['averagings']:,} averagings of all chains, {drift['looks']:,} looks at gradients")]
    found += [(f"All clients: {text.HEADS[name]}", _text(of_all[name])) for name in COLUMNS if name not in missing]
    if of_all["distance_in_sd"] is not None:
        found.append(("Distance in posterior sds", _text(of_all["distance_in_sd"])))
    found += [(f"No {text.HEADS[name]}", missing[name]) for name in COLUMNS if name in missing]
    waited = text.waiting(waiting.total(drift.get("waiting", [])))
    return [*found, *([("Ranks", waited)] if waited else [])]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return f"{value:.3g}" if _is_number(value) else ("-" if value is None else str(value))
