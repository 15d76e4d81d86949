"""W7: softmax regression with the shape of MNIST, d = 7850, 20 clients, minibatch 64, VR-FALD*."""

from fald_hpc.bench import limits, normals, problems
from fald_hpc.bench.result import Result
from fald_hpc.bench.spread import PROCESSOR, Clock, in_turns
from fald_hpc.bench.workbench import Case, Setting, repeated
from fald_hpc.potentials.softmax import Softmax
from fald_hpc.samplers.vr_fald_star import VRFALDStar

CLIENTS, PIXELS, CLASSES, BATCH = 20, 784, 10, 64
DIMENSION = (PIXELS + 1) * CLASSES


def case(rows: int, clock: Clock = PROCESSOR) -> Case:
    """Return the prepared case with so many rows a client (MNIST: 3000)."""
    clients, start, gamma = problems.softmax(CLIENTS, rows, PIXELS, CLASSES)
    sampler = VRFALDStar(gamma, 0.1, 1.0, BATCH, 0.001)
    return Case(Softmax(classes=CLASSES, intercept=True), clients, sampler, 1, start, clock=clock)


def measure(setting: Setting) -> list[Result]:
    """Measure a step over all clients."""
    rows = 100 if setting.quick else 3000
    prepared = case(rows)
    reader = limits.RowReader(8 * CLIENTS * rows * (PIXELS + 1), PIXELS + 1)
    found = in_turns(
        repeated(
            prepared, setting, add=limits.multiply_add, byte=reader, normal=lambda: normals.seconds_of_one(1)
        ),
        setting.repeats,
    )
    parts = {
        "multiply-adds": CLIENTS * BATCH * DIMENSION * 2.0 * found["add"].median,
        "rows read": CLIENTS * BATCH * (PIXELS + 1) * 8.0 * found["byte"].median,
        "normals": DIMENSION * found["normal"].median,
    }
    parts["refreshes"] = 0.001 * (rows / BATCH) * (parts["multiply-adds"] + parts["rows read"])
    label = f"VR-FALD*, softmax, d = {DIMENSION}, {CLIENTS} clients of {rows} rows, minibatch {BATCH}"
    return [
        Result("W7", label, "chain-step", found["fald"], parts, "<= 2 x limit", None, prepared.compile_seconds,
               {"multiply_adds": CLIENTS * BATCH * DIMENSION * 2.0, "bytes": CLIENTS * BATCH * (PIXELS + 1) * 8.0})
    ]  # fmt: skip


