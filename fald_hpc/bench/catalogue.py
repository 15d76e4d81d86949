"""All workloads by name, and the order in which they are measured."""

from collections.abc import Callable, Iterator, Sequence

from fald_hpc.bench import (
    children,
    images,
    logistics,
    machine,
    memory,
    normals,
    quadratics,
    questions,
    ranks,
    start_up,
)
from fald_hpc.bench.result import Result
from fald_hpc.bench.workbench import Setting
from fald_hpc.errors import UserError

Measurement = Callable[[Setting], list[Result]]

NAMES = (
    "machine", *(f"W{n}" for n in range(1, 10)), "two-ranks", "schedule", "recording", "sums", "chains",
)  # fmt: skip
QUICK = ("machine", "W1", "W3", "W4", "W7", "schedule", "recording", "sums")
"""What ``--quick`` measures where nothing is named: no children, and seconds in all."""


def workloads(prefix: children.Prefix) -> dict[str, Measurement]:
    """Return the measurements by name; ``prefix`` starts children on several ranks."""
    found: tuple[Measurement, ...] = (
        machine.measure,
        normals.measure,
        quadratics.measure_w2,
        quadratics.measure_w3,
        logistics.measure,
        ranks.measure("W5", prefix),
        ranks.measure("W6", prefix),
        images.measure,
        memory.measure,
        lambda setting: start_up.measure(setting, prefix),
        ranks.measure("W2", prefix),
        questions.schedules,
        questions.recordings,
        questions.exact_sums,
        questions.chains,
    )
    return dict(zip(NAMES, found, strict=True))


def chosen(names: Sequence[str] | None, quick: bool) -> list[str]:
    """Return the workloads asked for, in their order.

    Raises
    ------
    UserError
        If a name is unknown.
    """
    if names is None:
        return list(QUICK if quick else NAMES)
    by_name = {name.lower(): name for name in NAMES}
    for name in names:
        if name.lower() not in by_name:
            raise UserError(f"there is no workload {name!r}: choose from {', '.join(NAMES)}")
    asked = {by_name[name.lower()] for name in names}
    return [name for name in NAMES if name in asked]


def measure(names: Sequence[str], setting: Setting, prefix: children.Prefix) -> Iterator[list[Result]]:
    """Measure workloads one after another and yield the results of each."""
    known = workloads(prefix)
    for name in names:
        yield known[name](setting)
