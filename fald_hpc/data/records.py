"""What one client holds: rows of a regression, or the mean and precision of a Gaussian.

Letters: n rows, p features, d dimension.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fald_hpc.data import checks
from fald_hpc.errors import UserError


@dataclass(frozen=True, eq=False)
class ClientData:
    """The rows of one client.

    Attributes
    ----------
    id : str
        Name of the client, unique among all.
    features : float64[n, p]
        Finite, C-contiguous; n may be 0.
    target : float64[n]
        Responses or labels, finite; whether they suit a model is for its potential to say.
    weights : float64[n] or None
        Non-negative factors of the rows' log likelihoods; None means 1.
    offset : float64[n] or None
        Known part of the linear predictor; None means 0.
    """

    id: str
    features: NDArray[np.float64]
    target: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    offset: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class GaussianClient:
    """A client whose potential is quadratic, ``U(x) = (x - mean)' precision (x - mean) / 2``.

    Attributes
    ----------
    id : str
        Name of the client, unique among all.
    mean : float64[d]
        Units of the parameter.
    precision : float64[d, d] or float64[d]
        Symmetric positive definite, or the positive diagonal; units of 1/parameter².
    """

    id: str
    mean: NDArray[np.float64]
    precision: NDArray[np.float64]


def client_data(
    id: str, features: Any, target: Any, weights: Any = None, offset: Any = None, *, where: str | None = None
) -> ClientData:
    """Check the arrays of a client and make them float64 and contiguous.

    Raises
    ------
    UserError
        If a shape does not fit, or an entry is not a finite number; row and column are named, rows counted from 1.
    """
    where = where or f"client {id!r}"
    x = checks.numbers(features, f"{where}: the features (X)", 2)
    y = checks.numbers(target, f"{where}: the target (y)", 1)
    n = y.shape[0]
    checks.same_rows(x, n, f"{where}: the features (X)")
    if weights is not None:
        weights = checks.numbers(weights, f"{where}: the weights", 1)
        checks.same_rows(weights, n, f"{where}: the weights")
        checks.not_negative(weights, f"{where}: the weights")
    if offset is not None:
        offset = checks.numbers(offset, f"{where}: the offset", 1)
        checks.same_rows(offset, n, f"{where}: the offset")
    return ClientData(id, x, y, weights, offset)


def gaussian_client(
    id: str, mean: Any, covariance: Any = None, precision: Any = None, *, where: str | None = None
) -> GaussianClient:
    """Check the arrays of a Gaussian client; a covariance is inverted by a routine with the same bits on any processor.

    Raises
    ------
    UserError
        If not exactly one of covariance and precision is given, or it is not symmetric positive definite.
    """
    where = where or f"client {id!r}"
    if (covariance is None) == (precision is None):
        raise UserError(f"{where}: a Gaussian client needs `mean` and exactly one of `covariance` and `precision`")
    mean = checks.numbers(mean, f"{where}: the mean", 1)
    d = mean.shape[0]
    if d == 0:
        raise UserError(f"{where}: the mean is empty; a Gaussian needs at least one dimension")
    name = "covariance" if precision is None else "precision"
    given = covariance if precision is None else precision
    label = f"{where}: the {name}"
    matrix = checks.numbers(given, label, 2 if np.ndim(given) == 2 else 1)
    if matrix.shape not in ((d,), (d, d)):
        raise UserError(f"{label} has shape {matrix.shape}, but the mean has {d} entries: give ({d}, {d}) or ({d},)")
    if matrix.ndim == 1:
        if not bool((matrix > 0.0).all()):
            raise UserError(f"{label} has an entry that is not positive on its diagonal")
        with np.errstate(over="ignore"):
            diagonal = matrix if name == "precision" else 1.0 / matrix
        if not bool(np.isfinite(diagonal).all()):
            raise UserError(f"{label} has a variance too small to be inverted: rescale the parameters")
        return GaussianClient(id, mean, diagonal)
    return GaussianClient(id, mean, _positive_definite(matrix, label, invert=name == "covariance"))


def _positive_definite(matrix: NDArray[np.float64], label: str, invert: bool) -> NDArray[np.float64]:
    """Return the symmetric matrix or its inverse, after a check by Cholesky's factorisation."""
    from fald_hpc import linalg

    with np.errstate(over="ignore"):
        if not float(np.abs(matrix - matrix.T).max()) <= 1e-10 * float(np.abs(matrix).max()):
            raise UserError(f"{label} is not symmetric")
        matrix = np.ascontiguousarray((matrix + matrix.T) / 2.0)
    if not bool(np.isfinite(matrix).all()):
        raise UserError(f"{label} has entries too large to be added: rescale the parameters")
    try:
        if not invert:
            linalg.cholesky(matrix)
            return matrix
        inverse = linalg.inverse_spd(matrix)
    except np.linalg.LinAlgError:
        raise UserError(f"{label} is not positive definite") from None
    if not bool(np.isfinite(inverse).all()):
        raise UserError(f"{label} is too near to singular to be inverted")
    return inverse


def fingerprint(record: ClientData | GaussianClient) -> str:
    """Return the sha256 (hex) of a client's id and arrays; the file's format, layout and column names do not enter."""
    digest = hashlib.sha256()
    if isinstance(record, ClientData):
        kind = "rows"
        arrays = [record.features, record.target, record.weights, record.offset]
    else:
        kind = "gaussian"
        arrays = [record.mean, record.precision]
    name = record.id.encode()
    digest.update(f"{kind} {len(name)} ".encode() + name)
    for array in arrays:
        if array is None:
            digest.update(b" none")
        else:
            digest.update(f" {array.shape} ".encode())
            digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return digest.hexdigest()
