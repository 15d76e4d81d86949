"""W1: one normal of the generator, 53-bit radius and sine and cosine included, written to an array in cache.

Filled from compiled code, as in a run: a call from Python costs as much as 500 normals.
"""

import numpy as np

from fald_hpc.bench import limits
from fald_hpc.bench.result import Result
from fald_hpc.bench.spread import PROCESSOR, Clock, in_turns, timed
from fald_hpc.bench.workbench import Setting
from fald_hpc.kernels import noise, normals
from fald_hpc.kernels.jit import jit

PRODUCTS = 10.0
"""32-bit products of a normal: ten rounds of two for a block of two normals."""

FLOATING = 18.0
"""Multiply-adds of a normal: half of those of a logarithm, a sine with cosine, and a few scalings."""

CALLS = 100
"""Arrays filled in a measurement."""


@jit(cache=False)
def _fill(key, calls, out):
    for call in range(calls):
        normals.fill_normals(key, noise.COMMON, 0, 0, call * out.shape[0], out)


def seconds_of(out: np.ndarray, calls: int = CALLS, clock: Clock = PROCESSOR) -> float:
    """Return seconds of a normal of rows: float64[t, d], filled again and again."""
    return timed(lambda: _fill(noise.key(1), calls, out), clock) / (calls * out.size)


def measure(setting: Setting) -> list[Result]:
    """Measure whole rows of 20, as the workloads use them."""
    out = np.empty((256, 20))
    compiling = timed(lambda: _fill(noise.key(1), 1, out))
    calls = CALLS // 5 if setting.quick else CALLS
    found = in_turns(
        {
            "fald": lambda: seconds_of(out, calls),
            "product": limits.product,
            "multiply-add": limits.multiply_add,
        },
        setting.repeats,
    )
    parts = {
        "products": PRODUCTS * found["product"].median,
        "multiply-adds": FLOATING * found["multiply-add"].median,
    }
    return [Result("W1", "normals, rows of 20", "normal", found["fald"], parts, "<= 2.2 ns", None, compiling)]


def seconds_of_one(repeats: int = 5) -> float:
    """Return seconds of a normal, for limits that contain normals."""
    out = np.empty((256, 20))
    seconds_of(out, 1)
    return min(seconds_of(out, 1) for _ in range(repeats))
