"""Sentences for keys that are unknown, missing or of the wrong type or range."""

import json
import typing
from typing import Any

from pydantic import BaseModel, ValidationError

from fald_hpc.config.names import nearest, potential_keys, sampler_keys
from fald_hpc.config.schema import Config, PartitionTable
from fald_hpc.errors import UserError

_OWN = {"sampler": ("name", "schedule", "init"), "target": ("potential",)}


def tables() -> dict[str, type[BaseModel]]:
    """Return the tables by name."""
    return {name: typing.cast(type[BaseModel], field.annotation) for name, field in Config.model_fields.items()}


def check_keys(raw: dict[str, Any]) -> None:
    """Raise UserError for the first key that does not exist or has no meaning for the sampler or potential."""
    known = tables()
    for name, content in raw.items():
        if name not in known:
            owners = [table for table, model in known.items() if name in model.model_fields]
            hint = f"; the key {name!r} belongs to [{owners[0]}]" if owners else nearest(name, known)
            raise UserError(f"there is no table {name!r}{hint}; the tables are {', '.join(f'[{t}]' for t in known)}")
        if not isinstance(content, dict):
            raise UserError(f"{name} = {show(content)} is not allowed: it must be a table [{name}]")
        for key in content:
            _check_key(name, key, _allowed(name, content), known)
    partition = raw.get("data", {}).get("partition")
    if isinstance(partition, dict):
        for key in partition:
            _check_key("data.partition", key, list(PartitionTable.model_fields), known)


def _allowed(table: str, content: dict[str, Any]) -> list[str]:
    """Return the keys of a table; for a sampler or potential, its own."""
    declared = list(tables()[table].model_fields)
    if table == "sampler":
        name = content.get("name", "vr_fald_star")
        return [*_OWN[table], *sampler_keys(name)] if isinstance(name, str) else declared
    if table == "target":
        name = content.get("potential")
        return [*_OWN[table], *potential_keys(name)] if isinstance(name, str) else declared
    return declared


def _check_key(table: str, key: str, allowed: list[str], known: dict[str, type[BaseModel]]) -> None:
    if key in allowed:
        return
    model = PartitionTable if table == "data.partition" else known[table]
    keys = f"the keys are {', '.join(allowed)}"
    if key in model.model_fields:
        kind = "this sampler" if table == "sampler" else "this potential"
        raise UserError(f"[{table}] {key} has no meaning for {kind}; {keys}")
    hint = nearest(key, allowed)
    owners = [name for name, other in known.items() if key in other.model_fields and name != table]
    if owners:
        hint = f"; it belongs to [{owners[0]}]"
    elif hint:
        match = next(name for name in allowed if repr(name) in hint)
        field = model.model_fields.get(match)
        hint += f"; {match} is {field.description}" if field is not None and field.description else ""
    raise UserError(f"[{table}] has no key {key!r}{hint}; {keys}")


def sentence(error: ValidationError, raw: dict[str, Any]) -> str:
    """Return one sentence about the first wrong value, and how many others there are."""
    places: dict[tuple[str, ...], bool] = {}
    for item in error.errors(include_url=False, include_context=False, include_input=False):
        place = _place(item["loc"])
        places[place] = places.get(place, False) or item["type"] == "missing"
    place, missing = next(iter(places.items()))
    field = _field(place)
    allowed = field.description if field is not None and field.description else "of another type"
    name = f"[{'.'.join(place[:-1])}] {place[-1]}" if len(place) > 1 else f"[{place[0]}]"
    if missing:
        text = f"{name} is needed: it must be {allowed}" if len(place) > 1 else f"the table {name} is missing"
    else:
        value: Any = raw
        for part in place:
            value = value[part]
        text = f"{name} = {show(value)} is not allowed: it must be {allowed}"
    rest = len(places) - 1
    return text + (f" (and {rest} more wrong or missing)" if rest else "")


def _place(location: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the table and key of an error; what follows are pydantic's branches of a union."""
    if location[:2] == ("data", "partition"):
        return tuple(str(part) for part in location[:3])
    return tuple(str(part) for part in location[:2])


def _field(place: tuple[str, ...]) -> Any:
    if len(place) == 1:
        return Config.model_fields.get(place[0])
    model = PartitionTable if place[:2] == ("data", "partition") and len(place) == 3 else tables()[place[0]]
    return model.model_fields.get(place[-1])


def show(value: Any) -> str:
    """Return a value as TOML would roughly write it, shortened."""
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
    except ValueError:  # an integer of thousands of digits
        text = "a very long number"
    return text if len(text) <= 60 else text[:57] + "..."
