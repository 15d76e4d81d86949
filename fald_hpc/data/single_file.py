"""One file with the rows of all clients, told apart by a column or by a partition.

Every rank reads the whole file and keeps the rows of its own clients: convenient, but not private.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fald_hpc.data.columns import Columns, Rows
from fald_hpc.data.partition import Partition, label_table
from fald_hpc.data.readers import read_rows
from fald_hpc.data.records import ClientData, fingerprint
from fald_hpc.errors import UserError


class SingleFile:
    """Rows of one file and who owns them.

    Attributes
    ----------
    ids : tuple of str
        In order of first appearance, or those of the partition.
    assignment : list of int64 arrays
        Row numbers of each client, ascending.
    label_table : (float64[k], int64[b, k]) or None
        Distinct labels and how often each client holds them, for a partition by label.
    digest : str
        SHA-256 of the table (hex), to see that all ranks read the same.
    """

    def __init__(self, path: Path, columns: Columns, partition: Partition | None) -> None:
        if (columns.client is None) == (partition is None):
            raise UserError(
                f"{path}: say how its rows belong to clients, by exactly one of a client column and a partition"
            )
        self._path = path
        self._columns = columns
        self._rows: Rows | None = read_rows(path, columns)
        self.names = self._rows.names
        self.digest = fingerprint(
            ClientData("", self._rows.features, self._rows.target, self._rows.weights, self._rows.offset)
        )
        self.label_table = None
        if partition is not None:
            self.ids = partition.ids
            self.assignment = partition.split(self._rows.target)
            if partition.scheme in ("dirichlet", "classes"):
                self.label_table = label_table(self._rows.target, self.assignment)
        else:
            self.ids, self.assignment = self._by_column(self._rows.clients or ())

    def _by_column(self, owners: tuple[str, ...]) -> tuple[tuple[str, ...], list[NDArray[np.int64]]]:
        if not owners:
            raise UserError(f"{self._path}: the file has no rows, so there is no client")
        members: dict[str, list[int]] = {}
        for row, owner in enumerate(owners):
            members.setdefault(owner, []).append(row)
        if "" in members:
            raise UserError(
                f"{self._path}: the client id in row {members[''][0] + 1} is missing (column {self._columns.client!r})"
            )
        return tuple(members), [np.array(rows, np.int64) for rows in members.values()]

    def read(self, indices: list[int]) -> list[ClientData]:
        """Return the clients' rows; the whole table is then let go, and read again should more be asked for."""
        rows = self._rows or read_rows(self._path, self._columns)
        self._rows = None
        result = []
        for i in indices:
            own = self.assignment[i]
            result.append(
                ClientData(
                    self.ids[i],
                    rows.features[own],
                    rows.target[own],
                    None if rows.weights is None else rows.weights[own],
                    None if rows.offset is None else rows.offset[own],
                )
            )
        return result
