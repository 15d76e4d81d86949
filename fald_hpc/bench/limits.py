"""Yardsticks: what one core and the memory behind it can do, in seconds per operation. Each call measures anew."""

import numpy as np

from fald_hpc.bench.spread import timed
from fald_hpc.kernels import _yardsticks
from fald_hpc.kernels.jit import jit, wide_vectors

_ROUNDS = 40_000
_READ_BYTES = 4_000_000
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_FACTOR = np.uint64(0xD2511F53)


def multiply_add_in(lanes: int) -> float:
    """Return seconds of one fused multiply-add of doubles in vectors of 4 or 8."""
    return timed(lambda: _yardsticks.multiply_adds(_ROUNDS, lanes)) / (16 * lanes * _ROUNDS)


def multiply_add() -> float:
    """Return seconds of one fused multiply-add of doubles in the faster of 256-bit and 512-bit vectors."""
    return min(multiply_add_in(4), multiply_add_in(8))


@jit
def _multiply(words, repeats):
    wide_vectors()
    for _ in range(repeats):
        for i in range(words.size):
            # one after another: a loop in here would keep the outer one from being vectorised. The upper half goes into
            # the next factor, else the compiler would join the factors
            p = (words[i] & _LOW) * _FACTOR
            p = ((p ^ (p >> _32)) & _LOW) * _FACTOR
            p = ((p ^ (p >> _32)) & _LOW) * _FACTOR
            p = ((p ^ (p >> _32)) & _LOW) * _FACTOR
            p = ((p ^ (p >> _32)) & _LOW) * _FACTOR
            p = ((p ^ (p >> _32)) & _LOW) * _FACTOR
            p = ((p ^ (p >> _32)) & _LOW) * _FACTOR
            p = ((p ^ (p >> _32)) & _LOW) * _FACTOR
            words[i] = p ^ (p >> _32)


def product() -> float:
    """Return seconds of one 32-by-32-bit product and of a shift and an exclusive or with it: what Philox consists of."""
    words = np.arange(1, 1025, dtype=np.uint64)
    _multiply(words, 1)
    return timed(lambda: _multiply(words, 200)) / (200 * 8 * words.size)


class RowReader:
    """Reading rows of a table in random order, as minibatches do: seconds per byte for a table of some size.

    Parameters
    ----------
    table_bytes : int
        Size of the table, which decides the cache or memory that it lies in.
    width : int
        Doubles of a row.
    """

    def __init__(self, table_bytes: int, width: int) -> None:
        rows = max(1, table_bytes // (8 * width))
        self.table = np.ones((rows, width))
        # a full-period walk in steps far from any prefetcher's reach; the golden ratio spreads them evenly
        n = max(1, _READ_BYTES // (8 * width))
        self.order = ((np.arange(n, dtype=np.uint64) * np.uint64(2654435769)) % np.uint64(rows)).astype(np.int64)

    def __call__(self) -> float:
        """Measure once."""
        return timed(lambda: _yardsticks.read_rows(self.table, self.order)) / (8 * self.order.size * self.table.shape[1])
