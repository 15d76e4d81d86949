"""The yardsticks themselves: multiply-adds of one core, and reading of rows from each level of the memory."""

from collections.abc import Callable

from fald_hpc.bench import limits
from fald_hpc.bench.result import Result
from fald_hpc.bench.spread import in_turns
from fald_hpc.bench.workbench import Setting

WIDTH = 50
TABLES = {"16 kB": 1 << 14, "512 kB": 1 << 19, "8 MB": 1 << 23, "256 MB": 1 << 28}


def measure(setting: Setting) -> list[Result]:
    """Measure peak multiply-adds and the reading of rows of 50 doubles in random order."""
    tables = dict(list(TABLES.items())[: 2 if setting.quick else None])
    measurements: dict[str, Callable[[], float]] = {
        "multiply-adds, 256-bit vectors": lambda: limits.multiply_add_in(4),
        "multiply-adds, 512-bit vectors": lambda: limits.multiply_add_in(8),
        "32-bit products": limits.product,
        **{f"rows of {WIDTH} in a table of {name}": limits.RowReader(size, WIDTH) for name, size in tables.items()},
    }
    found = in_turns(measurements, setting.repeats)
    return [
        Result("machine", name, "byte" if name.startswith("rows") else "operation", spread)
        for name, spread in found.items()
    ]
