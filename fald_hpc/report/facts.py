"""What was run, from the manifest, as (name, value) pairs for the head of the page."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

MOST_NAMES = 6


def collect(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return model, sampler, run, data, layout and versions; what a manifest lacks is left out."""
    found = [
        ("Model", _with_settings(manifest.get("potential"), ())),
        ("Sampler", _with_settings(manifest.get("sampler"), ("step_size",))),
        ("Step size", _step_size(manifest)),
        ("Run", _run(manifest, summary)),
        ("Data", _data(manifest)),
        ("Layout", _layout(manifest)),
        ("Versions", _versions(manifest)),
    ]
    return [(name, value) for name, value in found if value]


def title(manifest: Mapping[str, Any]) -> str:
    """Return the page's title."""
    model, sampler = (manifest.get(key, {}).get("name", "?") for key in ("potential", "sampler"))
    return f"{sampler} on {model}, seed {manifest.get('seed', '?')}"


def _with_settings(part: Any, without: Sequence[str]) -> str:
    if not isinstance(part, Mapping):
        return ""
    settings = [f"{k} {_text(v)}" for k, v in part.items() if k not in ("name", *without) and v is not None]
    return ", ".join([str(part.get("name", "?")), *settings])


def _step_size(manifest: Mapping[str, Any]) -> str:
    if "step_size" not in manifest:
        return ""
    chosen = "chosen automatically" if manifest.get("step_size_requested") == "auto" else "given"
    return f"{manifest['step_size']:g}, {chosen}"


def _run(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    parts = [f"{summary['chains']} chains of {summary['steps']:,} iterations"]
    if "burn_in" in manifest:
        parts.append(f"the first {manifest['burn_in']:,} dropped")
    parts.append(f"{summary['records']:,} records a chain")
    parts += [f"{key} {manifest[key]}" for key in ("seed", "schedule", "record") if key in manifest]
    return ", ".join(parts)


def _data(manifest: Mapping[str, Any]) -> str:
    clients = list(manifest.get("clients", []))
    names = ", ".join(clients[:MOST_NAMES]) + (", ..." if len(clients) > MOST_NAMES else "")
    words = f"{len(clients)} {'client' if len(clients) == 1 else 'clients'} ({names})"
    prints = manifest.get("data")
    if isinstance(prints, list) and prints:
        words += f", SHA-256 of all {hashlib.sha256(''.join(map(str, prints)).encode()).hexdigest()[:12]}"
    return words


def _layout(manifest: Mapping[str, Any]) -> str:
    layout, machine = manifest.get("layout", {}), manifest.get("machine", {})
    if not layout:
        return ""
    ranks = layout.get("ranks", 1)
    grid = ""
    if ranks > 1:
        grid = f" ({layout.get('chain_groups')} groups of chains x {layout.get('client_groups')} groups of clients)"
    hosts = sorted(set(machine.get("hosts", [])))
    where = f" on {', '.join(hosts[:MOST_NAMES])}{', ...' if len(hosts) > MOST_NAMES else ''}" if hosts else ""
    mpi = f", MPI: {machine['mpi']}" if machine.get("mpi") else ""
    return f"{ranks} {'rank' if ranks == 1 else 'ranks'}{grid}{where}{mpi}"


def _versions(manifest: Mapping[str, Any]) -> str:
    found = {"fald_hpc": manifest.get("fald_hpc"), **manifest.get("versions", {})}
    return ", ".join(f"{name} {version}" for name, version in found.items() if version)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
