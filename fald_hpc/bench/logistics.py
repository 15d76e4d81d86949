"""W4: minibatches of 10 of 10^4 rows with 50 features, 2 clients: VR-FALD* beside FALD on the same minibatches."""

from fald_hpc.bench import limits, normals, problems
from fald_hpc.bench.result import Result
from fald_hpc.bench.spread import PROCESSOR, Clock, in_turns, ratio
from fald_hpc.bench.workbench import Case, Setting, repeated
from fald_hpc.potentials.logistic import Logistic
from fald_hpc.samplers.base import Sampler
from fald_hpc.samplers.fald import FALD
from fald_hpc.samplers.vr_fald_star import VRFALDStar

CLIENTS, ROWS, FEATURES, BATCH = 2, 10_000, 50, 10


def cases(comm_prob: float = 0.1, refresh_prob: float = 0.001, clock: Clock = PROCESSOR) -> dict[str, Case]:
    """Return both samplers on the same data.

    A refresh costs a pass over all rows, so q_c is such that it touches as many rows as the minibatches between two.
    """
    clients, point, gamma = problems.logistic(CLIENTS, ROWS, FEATURES)
    samplers: dict[str, Sampler] = {
        "fald": FALD(gamma, comm_prob, 1.0, BATCH),
        "vr_fald_star": VRFALDStar(gamma, comm_prob, 1.0, BATCH, refresh_prob),
        "vr_fald_star without refreshes": VRFALDStar(gamma, comm_prob, 1.0, BATCH, 1e-9),
    }
    return {name: Case(Logistic(), clients, sampler, 1, point, clock=clock) for name, sampler in samplers.items()}


def measure(setting: Setting) -> list[Result]:
    """Measure VR-FALD* with refreshes, and the cost of its step alone against FALD's."""
    prepared = cases()
    reader = limits.RowReader(8 * CLIENTS * ROWS * FEATURES, FEATURES)
    measurements = {
        name: repeated(case, setting)["fald"] for name, case in prepared.items()
    }
    found = in_turns(
        {**measurements, "multiply-add": limits.multiply_add, "byte": reader, "normal": lambda: normals.seconds_of_one(1)},
        setting.repeats,
    )
    floating = CLIENTS * BATCH * FEATURES * 2.0 * found["multiply-add"].median
    reading = CLIENTS * BATCH * FEATURES * 8.0 * found["byte"].median
    # reading and arithmetic can overlap: the slower of the two is the limit
    slower = {"rows read": reading} if reading > floating else {"multiply-adds": floating}
    drawing = {"normals": FEATURES * found["normal"].median}
    refresh = {"refreshes": 0.001 * (ROWS / BATCH) * max(reading, floating)}
    step = ratio(found["vr_fald_star without refreshes"], found["fald"]).median
    operations = {
        "multiply_adds": CLIENTS * BATCH * FEATURES * 2.0,
        "bytes": CLIENTS * BATCH * FEATURES * 8.0,
    }
    names = {
        "fald": ("FALD", {}, "", None),
        "vr_fald_star": ("VR-FALD*, q_c = 1/1000", refresh, "", None),
        "vr_fald_star without refreshes": ("VR-FALD*, steps alone", {}, "<= 1.15 x FALD's step", step),
    }
    return [
        Result("W4", label, "chain-step", found[name], slower | drawing | more, target, value,
               prepared[name].compile_seconds, {"sampler": name, **operations})
        for name, (label, more, target, value) in names.items()
    ]  # fmt: skip
