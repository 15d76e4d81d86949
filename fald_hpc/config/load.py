"""Reading a configuration from a file or a built-in example, with overrides, into a checked record."""

import tomllib
from collections.abc import Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fald_hpc.config import contradictions, messages
from fald_hpc.config.examples import example_names, example_text
from fald_hpc.config.names import names_of, nearest, potential_keys, sampler_keys
from fald_hpc.config.schema import Config, PartitionTable, expand
from fald_hpc.errors import UserError

_PATHS = ("data.folder", "data.file", "target.function")


def load(source: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read and check a configuration.

    Parameters
    ----------
    source : str or path
        Path of a TOML file, or the name of a built-in example.
    overrides : sequence of str
        ``table.key=value`` with the value in TOML, quotes of a plain text optional: ``run.steps=1e6``,
        ``sampler.name=fald``. Paths in overrides are relative to the current folder, those in the file to its folder.

    Raises
    ------
    UserError
        For anything wrong, in one sentence that starts with the source.
    """
    text, folder = _text(str(source))
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise UserError(f"{source}: this is not valid TOML ({reason})") from None
    try:
        set_keys = [_override(raw, override) for override in overrides]
        _drop_keys_of_others(raw, set_keys)
        return from_dict(raw, folder)
    except UserError as error:
        raise UserError(f"{source}: {error}") from None


def from_dict(tables: dict[str, Any], folder: str | Path = ".") -> Config:
    """Check a configuration given as plain data (see ``Config.to_dict``) and fill in its defaults.

    Parameters
    ----------
    tables : dict
        The five tables.
    folder : path
        What relative paths refer to.
    """
    messages.check_keys(tables)
    try:
        config = Config.model_validate(tables)
    except ValidationError as error:
        raise UserError(messages.sentence(error, tables)) from None
    except RecursionError:
        raise UserError("the configuration is nested too deeply") from None
    contradictions.check(config)
    config = _resolved(config)
    config._folder = Path(folder)
    return config


def _text(source: str) -> tuple[str, Path]:
    """Return the text of a configuration and the folder that its paths refer to."""
    if source in example_names():
        return example_text(source), Path(".")
    path = Path(source)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        names = example_names()
        raise UserError(
            f"{source}: there is no such file, and no built-in example of that name{nearest(source, names)}; "
            f"the examples are {', '.join(names)}"
        ) from None
    except IsADirectoryError:
        raise UserError(f"{source}: this is a folder; give the TOML file in it") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{source}: the file cannot be read ({getattr(error, 'strerror', None) or error})") from None
    try:
        return content.decode("utf-8-sig"), path.parent
    except UnicodeDecodeError:
        raise UserError(f"{source}: this is not UTF-8 text; save the file as UTF-8") from None


def _override(raw: dict[str, Any], override: str) -> str:
    """Set one key of the raw tables and return its full name."""
    name, mark, text = override.partition("=")
    parts = [part.strip() for part in name.split(".")]
    if not mark or not all(parts):
        raise UserError(f"the override {override!r} must have the form table.key=value, as in run.steps=1000")
    if len(parts) < 2:
        known = [f"{table}.{key}" for table, model in messages.tables().items() for key in model.model_fields]
        exact = [full for full in known if full.endswith(f".{parts[0]}")]
        hint = f" (did you mean {exact[0]!r}?)" if exact else nearest(parts[0], known)
        raise UserError(f"the override {override!r} must name a table and a key{hint}")
    value = _value(text.strip())
    if ".".join(parts) in _PATHS and isinstance(value, str) and value:
        value = str(expand(value).absolute())
    place = raw
    for part in parts[:-1]:
        place = place.setdefault(part, {})
        if not isinstance(place, dict):
            raise UserError(f"the override {override!r} sets a key of {part!r}, which is not a table")
    place[parts[-1]] = value
    return ".".join(parts)


def _drop_keys_of_others(raw: dict[str, Any], set_keys: Sequence[str]) -> None:
    """Let an override choose another sampler or potential although the file sets keys that this one does not take."""
    for table, name, keys_of in (("sampler", "name", sampler_keys), ("target", "potential", potential_keys)):
        content = raw.get(table)
        if f"{table}.{name}" not in set_keys or not isinstance(content, dict) or not isinstance(content[name], str):
            continue
        every = set().union(*(keys_of(other) for other in names_of(table)))
        foreign = every - set(keys_of(content[name]))
        raw[table] = {k: v for k, v in content.items() if k not in foreign or f"{table}.{k}" in set_keys}


def _value(text: str) -> Any:
    """Return the TOML value of a text, or the text itself where it is not TOML."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if set(parsed) == {"value"} else text


def _resolved(config: Config) -> Config:
    """Fill in the defaults that depend on other keys."""
    target: dict[str, Any] = {
        key: default
        for key, default in potential_keys(config.target.potential).items()
        if default is not MISSING and getattr(config.target, key, None) is None
    }
    sampler: dict[str, Any] = {}
    for key, default in sampler_keys(config.sampler.name).items():
        if getattr(config.sampler, key, None) is None:
            # refreshing as often as averaging is the paper's choice
            sampler[key] = config.sampler.comm_prob if key == "refresh_prob" else default
    update: dict[str, Any] = {
        "target": config.target.model_copy(update=target),
        "sampler": config.sampler.model_copy(update=sampler),
    }
    partition: PartitionTable | None = config.data.partition
    if partition is not None and partition.alpha is None and partition.scheme in ("dirichlet", "quantity"):
        partition = partition.model_copy(update={"alpha": 1.0})
        update["data"] = config.data.model_copy(update={"partition": partition})
    return config.model_copy(update=update)
