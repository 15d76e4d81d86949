"""How a problem grows with the number of ranks in a weak scaling study.

- ``rows``: every rank hosts as many clients, with as many rows each, as the whole configuration: its clients, repeated.
- ``clients``: every rank hosts as many clients as the configuration has, but the rows stay those of the configuration,
  dealt in turn over the more clients. For clients without rows the same as ``rows``.
- ``chains``: every rank runs as many chains as the configuration, on all its clients: as many chain groups as ranks.
"""

import copy
from typing import Any

import numpy as np

from fald_hpc.data.clients import Clients
from fald_hpc.data.records import ClientData
from fald_hpc.errors import UserError

FIXED = ("clients", "rows", "chains")


def grown(arguments: dict[str, Any], fixed: str | None, ranks: int) -> dict[str, Any]:
    """Return the arguments of :func:`fald_hpc.sample` at a number of ranks; ``fixed`` None is a strong study.

    Raises
    ------
    UserError
        If there are fewer rows than clients are wanted.
    """
    if fixed is None or ranks == 1:
        return arguments
    if fixed == "chains":
        return {**arguments, "chains": arguments["chains"] * ranks, "chain_groups": ranks}
    clients = arguments["clients"]
    if fixed == "clients" and clients.kind == "rows":
        return {**arguments, "clients": split(clients, ranks)}
    return {**arguments, "clients": repeated(clients, ranks)}


def repeated(clients: Clients, times: int) -> Clients:
    """Return the clients several times over, still loaded only where they are asked for."""
    b = len(clients)
    ids = [f"{name}+{t}" for t in range(times) for name in clients.ids]

    def read(order: list[int]) -> Any:
        for i in order:
            (record,) = clients.load([i % b])
            other = copy.copy(record)
            object.__setattr__(other, "id", ids[i])
            yield other, clients.feature_names

    return Clients(ids, read, kind=clients.kind)


def split(clients: Clients, parts: int) -> Clients:
    """Return clients that share the rows of each given client among ``parts``, dealt in turn."""
    b = len(clients)
    ids = [f"{name}/{t}" for t in range(parts) for name in clients.ids]

    def read(order: list[int]) -> Any:
        for i in order:
            (record,) = clients.load([i % b])
            assert isinstance(record, ClientData)
            rows = slice(i // b, None, parts)
            if record.target.size < parts:
                raise UserError(
                    f"client {record.id} has {record.target.size} rows, fewer than the {parts} parts that this number of "
                    "ranks asks for: take fewer ranks, or --fixed rows"
                )
            part = ClientData(
                ids[i],
                np.ascontiguousarray(record.features[rows]),
                record.target[rows].copy(),
                None if record.weights is None else record.weights[rows].copy(),
                None if record.offset is None else record.offset[rows].copy(),
            )
            yield part, clients.feature_names

    return Clients(ids, read, kind=clients.kind)
