"""W5, W6, and W2 on two ranks, started as children by mpiexec."""

from collections.abc import Callable

from fald_hpc.bench import children
from fald_hpc.bench.result import Result
from fald_hpc.bench.workbench import Setting


def measure(name: str, prefix: children.Prefix) -> Callable[[Setting], list[Result]]:
    """Return the measurement of a workload of :mod:`fald_hpc.bench.on_ranks` on two ranks."""

    def measured(setting: Setting) -> list[Result]:
        return [Result.from_dict(found) for found in children.on_ranks(prefix, 2, name, setting.quick)]

    return measured
