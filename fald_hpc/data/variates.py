"""Random variates for setting up data: shuffles, uniforms, normals and Dirichlet shares.

All come from the counter-based generator under the purpose ``PARTITION`` and from IEEE operations and the package's
own logarithm and exponential, so a partition is the same on every processor. The address of a draw is
(seed, attempt, stream, position); ``attempt`` counts retries, ``stream`` tells apart the uses within one attempt.
"""

import math

import numpy as np
from numpy.typing import NDArray

# the generator's chain field holds attempt and kind, so that no kind of variate shares a counter with another
_KINDS = 4
_WORDS, _NORMALS, _UNIFORMS, _BOOST = range(_KINDS)
_ROUNDS = 16  # of rejection; a round fails with probability < 0.05


def words(seed: int, attempt: int, stream: int, n: int, kind: int = _WORDS) -> NDArray[np.uint64]:
    """Return n random 64-bit words."""
    from fald_hpc.kernels import noise
    from fald_hpc.kernels.normals import fill_words

    out = np.empty(((n + 1) // 2, 2), np.uint64)
    fill_words(noise.key(seed), noise.PARTITION, attempt * _KINDS + kind, stream, 0, out)
    return out.reshape(-1)[:n]


def uniforms(seed: int, attempt: int, stream: int, n: int, kind: int = _UNIFORMS) -> NDArray[np.float64]:
    """Return n uniforms strictly between 0 and 1 (52 bits: exact in double precision, never an end point)."""
    return ((words(seed, attempt, stream, n, kind) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def normals(seed: int, attempt: int, stream: int, n: int) -> NDArray[np.float64]:
    """Return n standard normals."""
    from fald_hpc.kernels import noise
    from fald_hpc.kernels.normals import fill_normals

    out = np.empty(((n + 1) // 2, 2))
    fill_normals(noise.key(seed), noise.PARTITION, attempt * _KINDS + _NORMALS, stream, 0, out)
    return out.reshape(-1)[:n]


def permutation(seed: int, attempt: int, stream: int, n: int) -> NDArray[np.int64]:
    """Return a uniformly random permutation of 0..n-1: the order of n random words."""
    return np.argsort(words(seed, attempt, stream, n), kind="stable").astype(np.int64)


def log_gammas(alpha: float, seed: int, attempt: int, stream: int, n: int) -> list[float]:
    """Return the logarithms of n Gamma(alpha, 1) variates (Marsaglia and Tsang, TOMS 2000).

    For alpha < 1 a variate is G(alpha + 1) U^(1/alpha), which underflows for small alpha: hence the logarithm.
    """
    from fald_hpc.kernels.elementary import log

    shape = alpha if alpha >= 1.0 else alpha + 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    log_d = float(log(d))
    x = normals(seed, attempt, stream, n * _ROUNDS).reshape(n, _ROUNDS).tolist()
    u = uniforms(seed, attempt, stream, n * _ROUNDS).reshape(n, _ROUNDS).tolist()
    result = []
    for i in range(n):
        value = log_d
        for z, w in zip(x[i], u[i], strict=True):
            root = 1.0 + c * z
            if root <= 0.0:
                continue
            v = root * root * root
            log_v = float(log(v))
            if float(log(w)) < 0.5 * z * z + d - d * v + d * log_v:
                value = log_d + log_v
                break
        result.append(value)
    if alpha < 1.0:
        boost = uniforms(seed, attempt, stream, n, _BOOST).tolist()
        result = [g + float(log(w)) / alpha for g, w in zip(result, boost, strict=True)]
    return result


def dirichlet(alpha: float, seed: int, attempt: int, stream: int, n: int) -> list[float]:
    """Return the n shares of a symmetric Dirichlet distribution; they never are all zero, however small alpha."""
    from fald_hpc.kernels.elementary import exp

    logs = log_gammas(alpha, seed, attempt, stream, n)
    top = max(logs)
    weights = [float(exp(value - top)) for value in logs]
    total = math.fsum(weights)
    return [weight / total for weight in weights]
