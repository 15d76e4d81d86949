"""Workloads of several ranks, run as ``mpiexec -n 2 python -m fald_hpc.bench.on_ranks NAME [--quick]``.

Rank 0 prints the results as one line of JSON. Ranks must agree on everything: steps are fixed here, not timed.
"""

import json
import os
import sys
from collections.abc import Callable

import numpy as np

from fald_hpc import comm
from fald_hpc.bench import limits, normals, problems, quadratics
from fald_hpc.bench.result import Result
from fald_hpc.bench.spread import WALL, Spread, difference, in_turns, ratio, timed
from fald_hpc.bench.workbench import Case, Setting
from fald_hpc.data import builtin
from fald_hpc.kernels import _collectives, _yardsticks
from fald_hpc.potentials.gaussian import Gaussian
from fald_hpc.potentials.logistic import Logistic
from fald_hpc.samplers.fald import FALD
from fald_hpc.samplers.vr_fald_star import VRFALDStar

BINS = 3
FLAGS = 3
WHOLE = 10_000_000


def reductions(communicator: comm.Serial, doubles: int, calls: int, work: int, send: bool = True) -> float:
    """Return seconds of one call of a C loop of MPI_Allreduce, after the same work on every rank."""
    address = _collectives.addresses()["fald_allreduce"] if send else 0
    communicator.maximum(np.zeros(1))  # start together
    return timed(lambda: _yardsticks.reductions(address, communicator.number, doubles, calls, work), WALL) / calls


def w2(communicator: comm.Serial, setting: Setting) -> list[Result]:
    """Measure W2 on all ranks, for the comparison with a peer on both cores."""
    results = []
    for name, tau in (("fald", 1.0), ("vr_fald_star", 1.0), ("fald", 0.0), ("vr_fald_star", 0.0)):
        chains = 16 if setting.quick else 100
        case = quadratics.case(name, 20, chains, tau, communicator=communicator, clock=WALL)
        steps = 100 if setting.quick else 3000
        found = in_turns({"fald": lambda case=case, n=steps: case.per_chain_step(n)}, setting.repeats)  # type: ignore[misc]
        words = {"fald": "FALD", "vr_fald_star": "VR-FALD*"}[name]
        label = f"{words}, d = 20, {chains} chains, τ = {tau:g}, {communicator.size} ranks"
        facts = {"sampler": name, "chains": chains, "noise_sharing": tau, "ranks": communicator.size}
        results.append(Result("W2", label, "chain-step", found["fald"], facts=facts))
    return results


def w5(communicator: comm.Serial, setting: Setting) -> list[Result]:
    """Measure the Titanic's shape: ten clients, minibatch 1, p_c = q_c = 1/20, one chain."""
    sampler = VRFALDStar(1e-4, 0.05, 1.0, 1, 0.05)
    d = 4
    case = Case(Logistic(), builtin.titanic(), sampler, 1, np.zeros(d), communicator=communicator, clock=WALL)
    case.run(2_000)
    # rank 0 decides how long: on a machine with other work a message can take a thousand times longer
    taken = float(communicator.share(case.run(20_000))) / 20_000
    steps = max(2_000, min(1_000_000, int((0.1 if setting.quick else 2.0) / taken)))
    found = in_turns(
        {
            "fald": lambda: case.per_chain_step(steps),
            "message": lambda: reductions(communicator, BINS * d + FLAGS, 2000, 20),
            "work": lambda: reductions(communicator, BINS * d + FLAGS, 2000, 20, send=False),
            "normal": lambda: normals.seconds_of_one(1),
        },
        setting.repeats,
    )
    messages = 0.0 if case.messages is None else case.messages["made"] / steps
    message = difference(found["message"], found["work"])
    parts = {"messages": messages * max(message.median, 0.0), "normals": d * found["normal"].median}
    facts = {"ranks": communicator.size, "messages a step": messages, "steps": steps}
    results = [
        Result("W5", "VR-FALD*, Titanic, minibatch 1, 2 ranks", "chain-step", found["fald"], parts, "<= 600 ns",
               None, case.compile_seconds, facts)
    ]  # fmt: skip
    median = float(communicator.share(found["fald"].median))
    if not setting.quick and median * WHOLE <= 60.0:
        whole = Spread((case.per_chain_step(WHOLE),))
        results.append(Result("W5", "the same, one run of 10^7 steps", "chain-step", whole, target="<= 600 ns"))
    return results


def w6(communicator: comm.Serial, setting: Setting) -> list[Result]:
    """Measure what an averaging costs, beside raw reductions of the same bytes between equally loaded ranks."""
    d = 20
    clients, mode, gamma = problems.gaussian(communicator.size, d)
    with_events = Case(Gaussian(), clients, FALD(gamma, 0.1), 1, mode, communicator=communicator, clock=WALL)
    without = Case(Gaussian(), clients, FALD(gamma, 1e-12), 1, mode, communicator=communicator, clock=WALL)
    with_events.run(2_000)
    taken = float(communicator.share(with_events.run(20_000))) / 20_000
    steps = max(2_000, min(10_000_000, int((0.05 if setting.quick else 1.5) / taken)))
    without.run(2_000)
    per_step = without.run(steps) / steps
    # every rank does the same arithmetic between two messages, as long as the steps between two averagings take
    gap = float(communicator.maximum(np.array([10.0 * per_step]))[0])
    rate = float(communicator.maximum(np.array([min(limits.multiply_add() for _ in range(5))]))[0])
    work = max(1, int(gap / (64.0 * rate)))
    calls, doubles = steps // 10, BINS * d + FLAGS
    found = in_turns(
        {
            "with": lambda: with_events.run(steps),
            "without": lambda: without.run(steps),
            "message": lambda: reductions(communicator, doubles, calls, work),
            "plain message": lambda: reductions(communicator, d, calls, work),
            "work": lambda: reductions(communicator, doubles, calls, work, send=False),
            "back to back": lambda: reductions(communicator, doubles, calls, 0),
        },
        setting.repeats,
    )
    events = 1 if with_events.messages is None else with_events.messages["made"]
    event = difference(found["with"], found["without"], 1.0 / events)
    message = difference(found["message"], found["work"])
    plain = difference(found["plain message"], found["work"])
    facts = {
        "ranks": communicator.size, "events": events, "bytes": 8 * doubles, "work between messages in s": gap,
        "raw Allreduce after equal work": message.to_dict(), "raw Allreduce back to back": found["back to back"].to_dict(),
        "seconds a step without events": found["without"].median / steps,
    }  # fmt: skip
    return [
        Result("W6", "an averaging, 2 ranks, d = 20", "event", event, {"MPI_Allreduce": max(message.median, 1e-12)},
               "<= 1.5 x limit", None, with_events.compile_seconds, facts),
        Result("exact sums", f"message of {doubles} doubles instead of {d}", "event", message,
               {"plain MPI_Allreduce": max(plain.median, 1e-12)}, "", ratio(message, plain).median),
    ]  # fmt: skip


WORKLOADS: dict[str, Callable[[comm.Serial, Setting], list[Result]]] = {"W2": w2, "W5": w5, "W6": w6}


def main() -> None:
    """Measure one workload and print it."""
    communicator = comm.connect()
    results = WORKLOADS[sys.argv[1]](communicator, Setting.of("--quick" in sys.argv))
    mpi = communicator.describe()["mpi"]
    if communicator.rank == 0:
        found = [result.to_dict() for result in results]
        for one in found:
            one["facts"] |= {"mpi": mpi, "cores": len(os.sched_getaffinity(0))}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
