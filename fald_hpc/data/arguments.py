"""What a caller may give beside the data: ids, prior shares, names, weights; checked and put in the clients' order."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fald_hpc.data import checks
from fald_hpc.data.columns import listing
from fald_hpc.data.partition import MAX_CLIENTS, Partition
from fald_hpc.data.records import ClientData
from fald_hpc.errors import UserError


def checked_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """Return the ids after a check."""
    result = tuple(str(name) for name in ids)
    if not result:
        raise UserError("there is no client: at least one is needed")
    if len(result) > MAX_CLIENTS:
        raise UserError(f"{len(result)} clients are more than the {MAX_CLIENTS} that the random streams can tell apart")
    seen: set[str] = set()
    for position, name in enumerate(result):
        if not name:
            raise UserError(f"the id of client number {position + 1} is missing (empty)")
        if name in seen:
            raise UserError(f"the client id {name!r} appears twice; ids must be unique")
        if not name.isprintable():
            raise UserError(f"the client id {name!r} holds characters that cannot be printed; rename the client")
        seen.add(name)
    return result


def checked_shares(shares: Any, b: int) -> NDArray[np.float64] | None:
    """Return the prior shares after a check."""
    if shares is None:
        return None
    w = checks.numbers(shares, "the prior shares", 1)
    if w.size != b:
        raise UserError(f"{w.size} prior shares for {b} clients: give one for each, in the order of the clients")
    total = math.fsum(w.tolist())
    if float(w.min()) < 0.0 or abs(total - 1.0) > 1e-9:
        raise UserError(f"the prior shares must not be negative and must sum to 1; the sum is {total:.12g}")
    return w


def default_ids(b: int) -> tuple[str, ...]:
    """Return ``client-0``, ``client-1``, ... padded so that they sort in order."""
    return Partition("iid", b).ids if b else ()


def checked_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of features after a check."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise UserError(f"names of features must be a list of text, not {names!r}")
    return tuple(names)


def named(data: Mapping[Any, Any] | Sequence[Any]) -> tuple[tuple[str, ...], list[Any]]:
    """Return ids and entries of a mapping or of a sequence."""
    if isinstance(data, Mapping):
        return tuple(str(name) for name in data), list(data.values())
    entries = list(data)
    default = default_ids(len(entries))
    return tuple(e.id if isinstance(e, ClientData) else default[i] for i, e in enumerate(entries)), entries


def aligned(values: Any, ids: tuple[str, ...], data: Any, noun: str) -> list[Any]:
    """Return one entry (or None) for every client, from a mapping by id or a sequence in the same order."""
    if values is None:
        return [None] * len(ids)
    if isinstance(values, Mapping):
        by_id = {str(name): value for name, value in values.items()}
        unknown = [name for name in by_id if name not in ids]
        if unknown:
            raise UserError(f"{noun} are given for {listing(unknown)}, which is not a client")
        return [by_id.get(name) for name in ids]
    if isinstance(data, Mapping) or len(values) != len(ids):
        raise UserError(f"{noun} must be given like the data: one entry for every client")
    return list(values)
