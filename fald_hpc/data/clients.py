"""All clients of a study, by name; their data are loaded only where they are asked for."""

import copy
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fald_hpc.data import checks, records
from fald_hpc.data.arguments import aligned, checked_ids, checked_names, checked_shares, default_ids, named
from fald_hpc.data.columns import Columns, listing
from fald_hpc.data.folder import list_clients
from fald_hpc.data.partition import Partition
from fald_hpc.data.readers import read_rows
from fald_hpc.data.records import ClientData, GaussianClient
from fald_hpc.errors import UserError

Record = ClientData | GaussianClient
Named = tuple[Record, tuple[str, ...] | None]


class Clients:
    """An ordered collection of clients that knows their ids without opening their files.

    Built by one of the class methods. The position of an id in ``ids`` is the client's index, 0..b-1, everywhere.

    Attributes
    ----------
    ids : tuple of str
        Sorted for a folder, in order of first appearance for a client column, else in the order given.
    kind : str
        ``"rows"`` or ``"gaussian"``.
    prior_shares : float64[b] or None
        Share of the log prior that each client carries, w_i >= 0 with sum 1; None means 1/b each.
    assignment : list of int64 arrays or None
        For one file: the rows of each client, to be saved beside the results.
    label_table : (float64[k], int64[b, k]) or None
        For a partition by label: the distinct labels, and how often each client holds them.
    digest : str or None
        For one file: SHA-256 of its table (hex).
    """

    def __init__(
        self,
        ids: Iterable[str],
        read: Callable[[list[int]], Iterable[Named]],
        *,
        kind: str = "rows",
        prior_shares: Any = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.ids = checked_ids(ids)
        self.kind = kind
        self.prior_shares = checked_shares(prior_shares, len(self.ids))
        self.assignment: list[NDArray[np.int64]] | None = None
        self.label_table: tuple[NDArray[np.float64], NDArray[np.int64]] | None = None
        self.digest: str | None = None
        self._read = read
        self._names = None if feature_names is None else tuple(feature_names)

    def __len__(self) -> int:
        """Return the number of clients, b."""
        return len(self.ids)

    def __repr__(self) -> str:
        """Return a short description."""
        return f"Clients({len(self.ids)} of kind {self.kind!r}: {listing(self.ids)})"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features (of the dimensions of Gaussians): as given, else of the first client loaded.

        Empty before a client is loaded; ``x0``, ``x1``, ... where the data carry no names.
        """
        return self._names or ()

    def load(self, indices: Sequence[int]) -> list[Record]:
        """Return the clients with these indices and open no other client's file.

        Raises
        ------
        UserError
            If a file cannot be read, or the clients do not have the same columns or dimension.
        """
        order = [self._index(i) for i in indices]
        result: list[Record] = []
        width: int | None = None
        for record, names in self._read(order):
            shape = record.features.shape[1] if isinstance(record, ClientData) else record.mean.shape[0]
            if width is not None and shape != width:
                noun = "features" if isinstance(record, ClientData) else "dimensions"
                raise UserError(
                    f"client {record.id!r} has {shape} {noun}, but client {result[0].id!r} has {width}; "
                    "all clients need the same"
                )
            width = shape
            if names is not None and len(names) != shape:
                raise UserError(f"client {record.id!r} has {shape} features, but {len(names)} feature names are given")
            self._same_names(record, tuple(f"x{j}" for j in range(shape)) if names is None else names)
            result.append(record)
        return result

    def fingerprint(self, indices: Sequence[int]) -> list[str]:
        """Return a sha256 (hex) of the content of each client, whatever the format of its file."""
        return [records.fingerprint(record) for record, _ in self._read([self._index(i) for i in indices])]

    def _index(self, i: int) -> int:
        i = operator.index(i)
        if not 0 <= i < len(self.ids):
            raise IndexError(f"client index {i} is outside 0..{len(self.ids) - 1}")
        return i

    def _same_names(self, record: Record, names: tuple[str, ...]) -> None:
        """Hold that all clients have the same columns in the same order."""
        if self._names is None:
            self._names = names
        if len(self._names) != len(names):
            raise UserError(
                f"client {record.id!r} has {len(names)} features or dimensions, but {len(self._names)} are named"
            )
        if names == self._names:
            return
        missing = [name for name in self._names if name not in names]
        extra = [name for name in names if name not in self._names]
        if missing or extra:
            difference = f"lacks {listing(missing)}" if missing else ""
            difference += " and " if missing and extra else ""
            difference += f"adds {listing(extra)}" if extra else ""
        else:
            difference = "has them in another order"
        raise UserError(
            f"client {record.id!r} does not have the same feature columns as the others: it {difference}; "
            "name the features to use (in a config: [data] features = [...])"
        )

    def with_prior_shares(self, shares: Any) -> "Clients":
        """Return the same clients with other shares of the prior (None for 1/b each)."""
        other = copy.copy(self)
        other.prior_shares = checked_shares(shares, len(self.ids))
        return other

    @classmethod
    def from_arrays(
        cls,
        data: Mapping[Any, Any] | Sequence[Any],
        *,
        weights: Any = None,
        offsets: Any = None,
        feature_names: Sequence[str] | None = None,
        prior_shares: Any = None,
    ) -> "Clients":
        """Make clients of arrays in memory.

        Parameters
        ----------
        data : mapping of id to (X, y), or sequence of (X, y), or sequence of ClientData
            X: float64[n, p], y: float64[n]. A sequence of pairs gets the ids ``client-0``, ``client-1``, ...
        weights, offsets : mapping or sequence like ``data``, optional
            Row weights and offsets, float64[n] for each client (or None for one of them).
        feature_names : sequence of str, optional
            ``x0``, ``x1``, ... if not given.
        prior_shares : float64[b], optional
            Shares of the prior; 1/b if not given.
        """
        ids, pairs = named(data)
        extra = [aligned(weights, ids, data, "weights"), aligned(offsets, ids, data, "offsets")]
        loaded = []
        for i, (name, pair) in enumerate(zip(ids, pairs, strict=True)):
            if isinstance(pair, ClientData):
                w = pair.weights if extra[0][i] is None else extra[0][i]
                o = pair.offset if extra[1][i] is None else extra[1][i]
                loaded.append(records.client_data(name, pair.features, pair.target, w, o))
                continue
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise UserError(f"client {name!r}: give a pair (X, y), not {type(pair).__name__}")
            loaded.append(records.client_data(name, pair[0], pair[1], extra[0][i], extra[1][i]))
        names = None if feature_names is None else checked_names(feature_names)
        clients = cls(
            ids, lambda order: ((loaded[i], names) for i in order), prior_shares=prior_shares, feature_names=names
        )
        clients.load(range(len(loaded)))
        return clients

    @classmethod
    def from_gaussians(
        cls, means: Any, covariances: Any = None, precisions: Any = None, *, ids: Any = None, prior_shares: Any = None
    ) -> "Clients":
        """Make Gaussian clients of arrays in memory.

        Parameters
        ----------
        means : float64[b, d]
        covariances, precisions : float64[b, d, d] or float64[b, d] (diagonals)
            Exactly one of the two.
        ids : sequence of str, optional
            ``client-0``, ``client-1``, ... if not given.
        """
        means = checks.numbers(means, "means", 2)
        ids = default_ids(len(means)) if ids is None else tuple(ids)
        for name, value in (("covariances", covariances), ("precisions", precisions), ("ids", ids)):
            if value is not None and len(value) != len(means):
                raise UserError(f"{len(means)} means, but {len(value)} {name}: give one of each for every client")
        loaded = [
            records.gaussian_client(
                str(ids[i]),
                means[i],
                None if covariances is None else covariances[i],
                None if precisions is None else precisions[i],
            )
            for i in range(len(means))
        ]
        return cls(ids, lambda order: ((loaded[i], None) for i in order), kind="gaussian", prior_shares=prior_shares)

    @classmethod
    def from_folder(
        cls,
        path: str | Path,
        kind: str = "rows",
        *,
        label: str | None = None,
        features: Sequence[str] | None = None,
        weight: str | None = None,
        offset: str | None = None,
        prior_shares: Any = None,
    ) -> "Clients":
        """Make clients of a folder with one .npz, .csv or .parquet file for each; file names give the ids.

        Parameters
        ----------
        path : path
            The folder.
        kind : {"rows", "gaussian"}
            ``rows``: a table (npz: ``X``, ``y``, optional ``weights``, ``offset``, ``feature_names``); ``gaussian``:
            npz files with ``mean`` and one of ``covariance`` and ``precision``.
        label, features, weight, offset : str, sequence of str, str, str
            Columns; ``features`` None means all that have no other role.
        """
        folder = Path(path)
        found = list_clients(folder)
        ids = [name for name, _ in found]
        paths = [file for _, file in found]
        if kind == "gaussian":
            return cls(
                ids, lambda order: (_gaussian(ids[i], paths[i]) for i in order), kind=kind, prior_shares=prior_shares
            )
        if kind != "rows":
            raise UserError(f"the kind of clients must be 'rows' or 'gaussian', not {kind!r}")
        columns = Columns(label, None if features is None else checked_names(features), weight, offset)
        return cls(
            ids,
            lambda order: (_table(ids[i], paths[i], columns) for i in order),
            prior_shares=prior_shares,
            feature_names=columns.features,
        )

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        client_column: str | None = None,
        partition: Partition | None = None,
        *,
        label: str | None = None,
        features: Sequence[str] | None = None,
        weight: str | None = None,
        offset: str | None = None,
        prior_shares: Any = None,
    ) -> "Clients":
        """Make clients of one file with all rows, by a column with client ids or by a partition.

        Every rank reads the whole file and keeps the rows of its own clients.
        """
        from fald_hpc.data.single_file import SingleFile

        columns = Columns(label, None if features is None else checked_names(features), weight, offset, client_column)
        file = SingleFile(Path(path), columns, partition)
        clients = cls(
            file.ids,
            lambda order: ((record, file.names) for record in file.read(order)),
            prior_shares=prior_shares,
            feature_names=file.names,
        )
        clients.assignment = file.assignment
        clients.label_table, clients.digest = file.label_table, file.digest
        return clients


def _gaussian(name: str, path: Path) -> Named:
    if path.suffix.lower() != ".npz":
        raise UserError(f"{path}: Gaussian clients are read from .npz files only")
    from fald_hpc.data.read_npz import read_gaussian

    found = read_gaussian(path)
    record = records.gaussian_client(
        name, found["mean"], found.get("covariance"), found.get("precision"), where=str(path)
    )
    return record, None


def _table(name: str, path: Path, columns: Columns) -> Named:
    rows = read_rows(path, columns)
    return ClientData(name, rows.features, rows.target, rows.weights, rows.offset), rows.names
