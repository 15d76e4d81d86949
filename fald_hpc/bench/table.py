"""The benchmark as lines of text."""

from collections.abc import Sequence

from fald_hpc.bench.result import Result

WIDTH = 58
HEADER = (
    f"{'':11s}{'case':{WIDTH}s} {'median':>10s} {'quartiles':>17s} {'limit':>9s} {'ratio':>6s} {'compile':>8s}  must reach"
)


def quantity(value: float, unit: str) -> str:
    """Return a number with three digits and a unit that suits it."""
    if unit == "bytes":
        return f"{value / 1e6:.4g} MB"
    for factor, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {name}"
    return f"{value / 1e-9:.3g} ns"


def line(result: Result) -> str:
    """Return the line of a result."""
    low, high = (quantity(value, result.unit).split() for value in result.seconds.quartiles)
    spread = f"{low[0]}-{high[0]} {high[1]}" if low[1] == high[1] else f"{' '.join(low)}-{' '.join(high)}"
    limit = sum(result.limit.values())
    ratio = "" if result.ratio is None else f"{result.ratio:.3g}"
    compiling = "" if result.compile_seconds is None else f"{result.compile_seconds:.2g} s"
    reached = result.target if result.value is None else f"{result.target}{'; ' if result.target else ''}is {result.value:.3g}"
    return (
        f"{result.workload:11s}{result.case:{WIDTH}s} {quantity(result.seconds.median, result.unit):>10s} {spread:>17s} "
        f"{quantity(limit, result.unit) if limit else '':>9s} {ratio:>6s} {compiling:>8s}  {reached}"
    ).rstrip()


def text(results: Sequence[Result]) -> str:
    """Return the whole table."""
    return "\n".join([HEADER, *(line(result) for result in results)])
