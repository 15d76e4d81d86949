"""Federated standardisation of feature columns, and how to undo it in the results.

A column becomes ``(x - mean) / sd`` with the mean and the population standard deviation over the rows of all clients.
Only sums and extremes leave a client. With an intercept the model is the same in other coordinates; without one a shift
could not be undone, so columns are then only scaled. Constant columns stay as they are. Row weights do not enter.

Letters: n rows, p features.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fald_hpc.errors import UserError

Array = NDArray[np.float64]
_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class Standardisation:
    """The shift and scale of every column: mean float64[p] and sd float64[p], in the units of the columns."""

    mean: Array
    sd: Array


def moments_rows(X: Array, centre: Array | None = None) -> Array:
    """Return (n, sums of x - centre, sums of (x - centre)²) of one client, float64[1 + 2p].

    Rows are added one after the other, so the bits depend on the client's rows only.
    """
    n, p = X.shape
    total = np.zeros(2 * p)
    for start in range(0, n, _BLOCK):
        block = X[start : start + _BLOCK]
        if centre is not None:
            block = block - centre
        with np.errstate(over="ignore"):  # infinity is refused by fit()
            both = np.concatenate([total[None, :], np.concatenate([block, block * block], axis=1)])
        # a running sum has one order of addition; a plain sum may have several
        total = np.add.accumulate(both, axis=0)[-1]
    return np.concatenate([[float(n)], total])


def extremes(X: Array) -> Array:
    """Return (largest x, largest -x, largest |x|) of every column of one client, float64[3p]; -inf without rows."""
    p = X.shape[1]
    if X.shape[0] == 0:
        return np.full(3 * p, -np.inf)
    return np.concatenate([X.max(axis=0), -X.min(axis=0), np.abs(X).max(axis=0)])


def fit(
    features: Sequence[Array],
    add: Callable[[list[Array]], Array],
    maximum: Callable[[Array], Array],
    intercept: bool,
    n_features: int,
) -> Standardisation:
    """Compute the shift and scale from the clients of all ranks.

    Parameters
    ----------
    features : sequence of float64[n, p]
        The clients of this rank.
    add : callable
        Takes one float64[k] array for each local client; returns their exact sum over all clients of all ranks.
    maximum : callable
        Takes a float64[k] array; returns the elementwise maximum over ranks.
    intercept : bool
        Whether the model has an intercept; without one the mean stays 0.
    n_features : int
        p, for ranks that hold no client.

    Raises
    ------
    UserError
        If no client has a row, or a column's scale overflows.
    """
    p = n_features
    local = np.full(3 * p, -np.inf)
    for x in features:
        local = np.maximum(local, extremes(x))
    top = maximum(local)
    constant = top[:p] == -top[p : 2 * p]
    first = add([moments_rows(x)[: 1 + p] for x in features])
    n = first[0]
    if n == 0.0:
        raise UserError("no client has any row, so the features cannot be standardised; set standardise = false")
    # the second pass is about the mean: sums of squares about zero would lose the digits of a small spread
    mean = first[1:] / n
    second = add([moments_rows(x, mean) for x in features])
    with np.errstate(invalid="ignore", over="ignore"):
        variance = second[1 + p :] / n - (second[1 : 1 + p] / n) ** 2
        sd = np.sqrt(np.maximum(variance, 0.0))
    if not bool(np.isfinite(mean).all() and np.isfinite(sd).all()):
        raise UserError("a feature column is too large to be standardised; rescale it")
    plain = constant | (sd == 0.0)
    sd = np.where(plain, 1.0, sd)
    mean = np.where(plain, 0.0, mean) if intercept else np.zeros(p)
    return Standardisation(mean, sd)


def apply(X: Array, mean: Array, sd: Array) -> Array:
    """Return the standardised features, float64[n, p]."""
    return (X - mean) / sd


def undo(draws: Array, mean: Array, sd: Array, intercept: bool) -> Array:
    """Return parameters for the original columns from parameters for the standardised ones.

    Parameters
    ----------
    draws : float64[..., d]
        The last axis holds one block of p coefficients (p + 1 with an intercept) for each linear predictor: one block
        for most models, one for every class in softmax regression.
    mean, sd : float64[p]
        As applied.
    intercept : bool
        Whether the last entry of a block is an intercept, as in the package's regressions.
    """
    p = mean.shape[0]
    width = p + intercept
    blocks = draws.reshape(*draws.shape[:-1], draws.shape[-1] // width, width)
    result = np.array(blocks, dtype=np.float64)
    result[..., :p] = blocks[..., :p] / sd
    if intercept:
        for j in range(p):
            result[..., p] = result[..., p] - result[..., j] * mean[j]
    return result.reshape(draws.shape)


def matrix(mean: Array, sd: Array, intercept: bool, blocks: int = 1) -> Array:
    """Return the matrix A of :func:`undo`, float64[d, d]: means become A m, covariances A S A'."""
    width = mean.shape[0] + intercept
    return undo(np.eye(width * blocks), mean, sd, intercept).T.copy()


def scale_warning(largest: Array, names: Sequence[str], low: float = 1e-6, high: float = 1e6) -> str | None:
    """Return a warning about columns of huge or tiny scale, or None.

    Parameters
    ----------
    largest : float64[p]
        Largest |x| of every column over all clients (the last third of :func:`extremes`).
    """
    odd: list[Any] = [name for name, top in zip(names, largest, strict=True) if top > high or 0.0 < top < low]
    if not odd:
        return None
    shown = ", ".join(repr(name) for name in odd[:5]) + (", ..." if len(odd) > 5 else "")
    return (
        f"the feature columns {shown} have a huge or tiny scale: the prior then weighs their coefficients very "
        "unevenly and the step size must be small; consider standardise = true"
    )
