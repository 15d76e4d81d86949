"""What choices cost: independent coins, recording modes, exact sums, the number of chains."""

import numpy as np

from fald_hpc.bench import limits, quadratics
from fald_hpc.bench.result import Result
from fald_hpc.bench.spread import in_turns, ratio, timed
from fald_hpc.bench.workbench import Setting, repeated
from fald_hpc.kernels import _yardsticks, exact_sum
from fald_hpc.kernels.jit import jit

CHAINS = (1, 2, 4, 8, 16, 32, 64, 100)


def schedules(setting: Setting) -> list[Result]:
    """Measure W2 with one sequence of coins for all chains and with one for each."""
    return _compared("schedule", {"shared": {}, "independent": {"shared": False}}, setting)


def recordings(setting: Setting) -> list[Result]:
    """Measure W2 with records at communication times and at every step."""
    return _compared("recording", {"communication": {}, "every-step": {"every_step": True}}, setting)


def _compared(question: str, choices: dict[str, dict[str, bool]], setting: Setting) -> list[Result]:
    results = []
    for name in ("fald", "vr_fald_star"):
        prepared = {choice: quadratics.case(name, 20, 16, 1.0, **more) for choice, more in choices.items()}
        measurements = {choice: repeated(case, setting)["fald"] for choice, case in prepared.items()}
        found = in_turns(measurements, setting.repeats)
        first = next(iter(choices))
        for choice in choices:
            value = None if choice == first else ratio(found[choice], found[first]).median
            words = {"fald": "FALD", "vr_fald_star": "VR-FALD*"}[name]
            label = f"{words}, d = 20, 16 chains, τ = 1, {choice}"
            results.append(
                Result(question, label, "chain-step", found[choice], value=value,
                       compile_seconds=prepared[choice].compile_seconds)
            )  # fmt: skip
    return results


@jit
def _exact(values, window, width, n, bins, out, repeats):
    for _ in range(repeats):
        for j in range(bins.size):
            bins[j] = 0.0
        exact_sum.add_clients(values, 0, window, width, bins)
        exact_sum.mean(bins, n, out)


def exact_sums(setting: Setting) -> list[Result]:
    """Measure the arithmetic of an exact mean over a rank's clients beside a plain sum: per value."""
    results = []
    for clients, d in ((1, 20), (50, 20), (10, 7850)):
        values = np.linspace(-1.0, 1.0, clients * d).reshape(clients, 1, d)
        bins, out = np.empty(3 * d), np.empty(d)
        window, width = int(exact_sum.window_for(1.0)), exact_sum.grid_bits(2 * clients)
        repeats = max(1, (20_000 if setting.quick else 200_000) // values.size)
        _exact(values, window, width, 2.0 * clients, bins, out, 1)
        measurements = {
            "exact": lambda v=values, w=window, g=width, c=clients, b=bins, o=out, r=repeats: (
                timed(lambda: _exact(v, w, g, 2.0 * c, b, o, r)) / (r * v.size)
            ),
            "plain": lambda v=values, o=out, r=repeats: (
                timed(lambda: _yardsticks.plain_sums(v[:, 0], o, r)) / (r * v.size)
            ),
        }
        found = in_turns(measurements, setting.repeats)  # type: ignore[arg-type]
        label = f"mean over {clients} client{'s' if clients > 1 else ''} of a rank, d = {d}"
        results.append(
            Result("exact sums", label, "value", found["exact"], {"plain sum": found["plain"].median},
                   value=ratio(found["exact"], found["plain"]).median)
        )  # fmt: skip
    return results


def chains(setting: Setting) -> list[Result]:
    """Measure the time per chain-step of W2 against the number of chains of a rank."""
    results = []
    for n in CHAINS[:: 4 if setting.quick else 1]:
        case = quadratics.case("vr_fald_star", 20, n, 1.0)
        found = in_turns(repeated(case, quadratics.longer(setting), limit=limits.multiply_add), setting.repeats)
        parts = quadratics.limit("vr_fald_star", 20, found["limit"].median)
        label = f"VR-FALD*, d = 20, τ = 1, {n} chain{'s' if n > 1 else ''}"
        results.append(
            Result("chains", label, "chain-step", found["fald"], parts, compile_seconds=case.compile_seconds,
                   facts={"chains": n})
        )  # fmt: skip
    return results
