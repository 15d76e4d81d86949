"""Splitting one set of rows over clients: disjoint, complete, reproducible, and never looping for ever.

The split depends on the labels, the scheme and the partition's own seed, not on the run's seed. A scheme that leaves
a client with too few rows is drawn again a bounded number of times; then an error names a value that works.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fald_hpc.data import checks, variates
from fald_hpc.errors import UserError

SCHEMES = ("iid", "dirichlet", "classes", "quantity")
MAX_LABELS = 1000
MAX_CLIENTS = 1 << 20
ALPHA_RANGE = (1e-6, 1e6)
_BUDGET = 1_000_000  # Dirichlet variates spent before giving up
_ROWS, _CLIENTS, _LABELS, _SHARES = 0, 1, 2, 3  # streams; per-label streams follow

Parts = list[NDArray[np.int64]]


@dataclass(frozen=True)
class Partition:
    """A recipe for splitting rows over clients.

    Attributes
    ----------
    scheme : str
        ``"iid"`` (equal sizes), ``"dirichlet"`` (every label's rows by Dirichlet shares), ``"classes"`` (each client
        holds some labels only), ``"quantity"`` (sizes by Dirichlet shares, rows at random).
    clients : int
        Number of clients, b.
    seed : int
        Seed of the split, 0..2^64-1.
    alpha : float or None
        Concentration for ``dirichlet`` and ``quantity`` (1 if not given); small means uneven.
    classes_per_client : int or None
        For ``classes``.
    min_rows : int
        Rows that every client must get at least.
    """

    scheme: str
    clients: int
    seed: int = 1
    alpha: float | None = None
    classes_per_client: int | None = None
    min_rows: int = 1

    def __post_init__(self) -> None:
        """Check the recipe."""
        if self.scheme not in SCHEMES:
            raise UserError(f"partition: scheme {self.scheme!r} is unknown; it must be one of {', '.join(SCHEMES)}")
        for name, low, high in (("clients", 1, MAX_CLIENTS), ("seed", 0, 2**64 - 1), ("min_rows", 0, 2**40)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
                raise UserError(f"partition: {name} = {value!r} must be an integer from {low} to {high}")
        skewed = self.scheme in ("dirichlet", "quantity")
        if self.alpha is not None:
            if not skewed:
                raise UserError(f"partition: alpha has no meaning for the scheme {self.scheme!r}; leave it out")
            number = isinstance(self.alpha, int | float | np.number) and not isinstance(self.alpha, bool)
            if not number or not ALPHA_RANGE[0] <= self.alpha <= ALPHA_RANGE[1]:
                raise UserError(f"partition: alpha = {self.alpha!r} must be a number from 1e-6 to 1e6")
        k = self.classes_per_client
        if (k is not None) != (self.scheme == "classes"):
            raise UserError("partition: classes_per_client goes with the scheme 'classes', which needs it")
        if k is not None and (isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1):
            raise UserError(f"partition: classes_per_client = {k!r} must be a positive integer")

    @property
    def ids(self) -> tuple[str, ...]:
        """Names of the clients: ``client-0`` and so on, padded so that they sort in order."""
        width = len(str(self.clients - 1))
        return tuple(f"client-{i:0{width}d}" for i in range(self.clients))

    def split(self, target: Any) -> Parts:
        """Split the rows with these labels.

        Parameters
        ----------
        target : float64[n]
            Labels (or responses, for the schemes that do not look at them).

        Returns
        -------
        list of int64 arrays
            The row numbers of each client, ascending.

        Raises
        ------
        UserError
            If the rows cannot be split so; the sentence names a value that works.
        """
        y = checks.numbers(target, "partition: the target", 1)
        b, n = self.clients, y.shape[0]
        if b * self.min_rows > n:
            raise UserError(
                f"partition: {n} rows cannot give {b} clients {self.min_rows} each; "
                f"use at most {n // self.min_rows} clients"
            )
        if self.scheme == "iid":
            return _cut(variates.permutation(self.seed, 0, _ROWS, n), [i * n // b for i in range(1, b)])
        if self.scheme == "quantity":
            return self._skewed(lambda alpha, attempt: _quantity(n, b, alpha, self.seed, attempt), 1)
        labels, codes = np.unique(y, return_inverse=True)
        if labels.size > MAX_LABELS:
            raise UserError(
                f"partition: the label takes {labels.size} values, which looks continuous; the scheme "
                f"{self.scheme!r} needs at most {MAX_LABELS} classes: use 'iid' or 'quantity'"
            )
        rows = [np.flatnonzero(codes == code) for code in range(labels.size)]
        if self.scheme == "dirichlet":
            return self._skewed(lambda alpha, attempt: _dirichlet(rows, b, alpha, self.seed, attempt), labels.size)
        return self._classes(rows)

    def _enough(self, parts: Parts) -> bool:
        return min(part.size for part in parts) >= self.min_rows

    def _skewed(self, draw: Callable[[float, int], Parts], n_labels: int) -> Parts:
        """Draw until every client has enough rows, else look for an alpha that works and name it."""
        alpha = 1.0 if self.alpha is None else float(self.alpha)
        tries = max(3, min(100, _BUDGET // (self.clients * max(1, n_labels))))
        for attempt in range(tries):
            parts = draw(alpha, attempt)
            if self._enough(parts):
                return parts
        problem = (
            f"partition: with alpha = {alpha:g}, {tries} draws left some of the {self.clients} clients with fewer than "
            f"{self.min_rows} rows"
        )
        larger = _two_digits(alpha * 2.0)
        while larger <= ALPHA_RANGE[1]:
            if self._enough(draw(larger, 0)):
                raise UserError(f"{problem}; alpha = {larger:g} works, or use fewer clients")
            larger = _two_digits(larger * 2.0)
        raise UserError(f"{problem}, and no larger alpha helps; use fewer clients or the scheme 'iid'")

    def _classes(self, rows: Parts) -> Parts:
        """Give every client a few labels; every label has a client, or its rows would be lost."""
        b, k, n_labels = self.clients, int(self.classes_per_client or 0), len(rows)
        if k > n_labels:
            raise UserError(f"partition: classes_per_client = {k}, but there are {n_labels} labels; use at most that")
        if b * k < n_labels:
            raise UserError(
                f"partition: {b} clients with {k} labels each cannot hold all {n_labels} labels; "
                f"use classes_per_client = {-(-n_labels // b)} or more"
            )
        for attempt in range(100):
            parts = _by_class(rows, b, k, self.seed, attempt)
            if self._enough(parts):
                return parts
        fewer = b // 2
        while fewer * k >= n_labels:
            if self._enough(_by_class(rows, fewer, k, self.seed, 0)):
                break
            fewer //= 2
        hint = f"clients = {fewer} works" if fewer * k >= n_labels else f"use classes_per_client = {n_labels}"
        raise UserError(f"partition: 100 draws left some client with fewer than {self.min_rows} rows; {hint}")


def partition(
    X: Any,
    y: Any,
    scheme: str,
    clients: int,
    seed: int = 1,
    alpha: float | None = None,
    classes_per_client: int | None = None,
    min_rows: int = 1,
) -> Parts:
    """Split rows over clients and return the row numbers of each; see :class:`Partition`.

    Parameters
    ----------
    X : float64[n, p]
        Features; only their number of rows is looked at.
    y : float64[n]
        Labels.
    """
    if np.shape(X)[:1] != np.shape(y)[:1]:
        raise UserError(f"partition: X has shape {np.shape(X)}, but y has shape {np.shape(y)}")
    return Partition(scheme, clients, seed, alpha, classes_per_client, min_rows).split(y)


def label_table(y: Any, parts: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the distinct labels, float64[k], and how often each client holds them, int64[b, k]."""
    labels, codes = np.unique(np.asarray(y, np.float64), return_inverse=True)
    counts = [np.bincount(codes[part], minlength=labels.size) for part in parts]
    return labels, np.array(counts, np.int64).reshape(len(parts), labels.size)


def _two_digits(value: float) -> float:
    """Round to two digits, so that the value tried is the value printed."""
    return float(f"{value:.1e}")


def _cut(rows: NDArray[np.int64], marks: Sequence[int]) -> Parts:
    """Cut rows at the marks; the last part takes the rest."""
    bounds = [0, *marks, rows.size]
    return [np.sort(rows[a:z]) for a, z in pairwise(bounds)]


def _marks(shares: Sequence[float], n: int) -> list[int]:
    """Return where to cut n rows: at the running sums of all shares but the last, added one after the other."""
    total, result = 0.0, []
    for share in shares[:-1]:
        total += share
        result.append(min(n, int(total * n)))
    return result


def _quantity(n: int, b: int, alpha: float, seed: int, attempt: int) -> Parts:
    shares = variates.dirichlet(alpha, seed, attempt, _SHARES, b)
    return _cut(variates.permutation(seed, attempt, _ROWS, n), _marks(shares, n))


def _dirichlet(rows: Parts, b: int, alpha: float, seed: int, attempt: int) -> Parts:
    pieces: list[Parts] = []
    for code, members in enumerate(rows):
        stream = _SHARES + 1 + code
        shares = variates.dirichlet(alpha, seed, attempt, stream, b)
        order = members[variates.permutation(seed, attempt, stream, members.size)]
        pieces.append(_cut(order, _marks(shares, order.size)))
    return _join(pieces, b)


def _by_class(rows: Parts, b: int, k: int, seed: int, attempt: int) -> Parts:
    """Deal labels round and round to the clients, both in random order; a label's rows are shared out evenly."""
    n_labels = len(rows)
    label_order = variates.permutation(seed, attempt, _LABELS, n_labels)
    client_order = variates.permutation(seed, attempt, _CLIENTS, b)
    holders: list[list[int]] = [[] for _ in rows]
    for turn, client in enumerate(client_order.tolist()):
        for t in range(k):
            holders[int(label_order[(turn * k + t) % n_labels])].append(client)
    pieces: list[Parts] = []
    for code, members in enumerate(rows):
        order = members[variates.permutation(seed, attempt, _SHARES + 1 + code, members.size)]
        h = len(holders[code])
        shares: Parts = [order[:0]] * b
        for j, client in enumerate(holders[code]):
            shares[client] = order[j * order.size // h : (j + 1) * order.size // h]
        pieces.append(shares)
    return _join(pieces, b)


def _join(pieces: Sequence[Parts], b: int) -> Parts:
    """Put the pieces of all labels together, client by client."""
    return [np.sort(np.concatenate([piece[i] for piece in pieces])) for i in range(b)]
