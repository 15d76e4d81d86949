"""Which columns of a file mean what, and the rows that a reader makes of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from fald_hpc.errors import UserError


@dataclass(frozen=True)
class Columns:
    """The roles of columns.

    Attributes
    ----------
    label : str or None
        Column of the target; csv and parquet files need it, npz files hold ``y``.
    features : tuple of str or None
        Columns of the features, in this order; None means all that have no other role, in the file's order.
    weight, offset, client : str or None
        Columns of row weights, of offsets and of client ids.
    """

    label: str | None = None
    features: tuple[str, ...] | None = None
    weight: str | None = None
    offset: str | None = None
    client: str | None = None

    def __post_init__(self) -> None:
        """Refuse a column with two roles."""
        named = [
            c for c in (self.label, self.weight, self.offset, self.client, *(self.features or ())) if c is not None
        ]
        twice = sorted(c for c, count in Counter(named).items() if count > 1)
        if twice:
            raise UserError(f"the column {twice[0]!r} is named twice among label, features, weight, offset and client")
        if self.features is not None and not self.features:
            raise UserError("the list of features is empty; name at least one column, or leave it out to take all")

    def choose(self, available: Sequence[str], where: str) -> tuple[str, ...]:
        """Return the feature columns among those that a file has.

        Raises
        ------
        UserError
            If the file has a column twice or lacks one that is named.
        """
        if self.label is None:
            raise UserError(
                f"{where}: which column is the label? Name it (in a config: [data] label = ...); "
                f"the columns are {listing(available)}"
            )
        count = Counter(available)
        for name in (self.label, self.weight, self.offset, self.client, *(self.features or ())):
            if name is not None and name not in count:
                present(name, available, where)
        roles = {self.label, self.weight, self.offset, self.client}
        features = self.features or tuple(c for c in available if c not in roles)
        if not features:
            raise UserError(
                f"{where}: there is no feature column beside the label; the columns are {listing(available)}"
            )
        for name in (*features, *(role for role in roles if role is not None)):
            if count[name] > 1:
                raise UserError(f"{where}: the column {name!r} appears twice in the header; rename one of them")
        return features


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one file: features float64[n, p], target float64[n] and so on; ``names`` is None where unknown."""

    names: tuple[str, ...] | None
    features: NDArray[np.float64]
    target: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    offset: NDArray[np.float64] | None = None
    clients: tuple[str, ...] | None = None


def present(name: str, available: Sequence[str], where: str) -> None:
    """Refuse a name that the file does not have, and name the nearest one that it has."""
    if name in available:
        return
    near = get_close_matches(name, available, n=1)
    hint = f"did you mean {near[0]!r}? The columns are" if near else "the columns are"
    raise UserError(f"{where}: there is no column {name!r}; {hint} {listing(available)}")


def listing(names: Sequence[str]) -> str:
    """Return names for a message, shortened when there are many."""
    shown = ", ".join(repr(name) for name in names[:12])
    return f"{shown}, ... ({len(names)} in all)" if len(names) > 12 else shown or "none"
