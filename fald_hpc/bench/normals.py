"""W1: one normal of the generator, 53-bit radius and sine and cosine included, written to an array in cache."""

import numpy as np

from fald_hpc.bench import limits
from fald_hpc.bench.result import Result
from fald_hpc.bench.spread import in_turns, timed
from fald_hpc.bench.workbench import Setting
from fald_hpc.kernels import noise

PRODUCTS = 10.0
"""32-bit products of a normal: ten rounds of two for a block of two normals."""

FLOATING = 18.0
"""Multiply-adds of a normal: half of those of a logarithm, a sine with cosine, and a few scalings."""


def measure(setting: Setting) -> list[Result]:
    """Measure whole rows of 20, as the workloads use them."""
    steps = 256
    out = np.empty((steps, 20))
    key = noise.key(1)
    compiling = timed(lambda: noise.fill_normals(key, noise.COMMON, 0, 0, 0, out))
    calls = 20 if setting.quick else 100

    def fill() -> None:
        for call in range(calls):
            noise.fill_normals(key, noise.COMMON, 0, 0, call * steps, out)

    found = in_turns(
        {
            "fald": lambda: timed(fill) / (calls * out.size),
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
    key = noise.key(1)
    noise.fill_normals(key, noise.COMMON, 0, 0, 0, out)
    return min(timed(lambda: noise.fill_normals(key, noise.COMMON, 0, 0, 0, out)) / out.size for _ in range(repeats))
