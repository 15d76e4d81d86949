"""W2 and W3: dense quadratics, 100 clients, p_c = q_c = 1/10, one rank, everything included."""

from dataclasses import replace

from fald_hpc.bench import limits, problems
from fald_hpc.bench.result import Result
from fald_hpc.bench.spread import in_turns
from fald_hpc.bench.workbench import Case, Setting, repeated
from fald_hpc.potentials.gaussian import Gaussian
from fald_hpc.samplers.base import Sampler
from fald_hpc.samplers.fald import FALD
from fald_hpc.samplers.vr_fald_star import VRFALDStar

CLIENTS = 100
COINS = 0.1
LEAST_SECONDS = 1.0


def sampler(name: str, step_size: float, noise_sharing: float) -> Sampler:
    """Return FALD or VR-FALD* as the workloads use them."""
    if name == "fald":
        return FALD(step_size, COINS, noise_sharing)
    return VRFALDStar(step_size, COINS, noise_sharing=noise_sharing, refresh_prob=COINS)


def case(name: str, d: int, chains: int, noise_sharing: float, **more: object) -> Case:
    """Return the prepared case."""
    clients, mode, gamma = problems.gaussian(CLIENTS, d)
    return Case(Gaussian(), clients, sampler(name, gamma, noise_sharing), chains, mode, settled=True, **more)  # type: ignore[arg-type]


def longer(setting: Setting) -> Setting:
    """Return the setting for runs of a second, in which fresh memory counts as little as in 10^7 steps."""
    return setting if setting.quick else replace(setting, seconds=LEAST_SECONDS)


def limit(name: str, d: int, multiply_add: float) -> dict[str, float]:
    """Return the seconds of a chain-step's products: of each client with its d by d matrix, and one more at a refresh.

    The rest of an update is not counted. ``multiply_add``: seconds of one.
    """
    step = CLIENTS * d * d * multiply_add
    return {"multiply-adds": step} | ({"refreshes": COINS * step} if name == "vr_fald_star" else {})


def _measure(workload: str, name: str, d: int, chains: int, tau: float, target: str, setting: Setting) -> Result:
    prepared = case(name, d, chains, tau)
    found = in_turns(repeated(prepared, longer(setting), limit=limits.multiply_add), setting.repeats)
    parts = limit(name, d, found["limit"].median)
    products = sum(parts.values()) / parts["multiply-adds"]
    words = {"fald": "FALD", "vr_fald_star": "VR-FALD*"}[name]
    label = f"{words}, d = {d}, {chains} chain{'s' if chains > 1 else ''}, τ = {tau:g}"
    # a matrix is read once for eight chains side by side; with one chain, once a step
    operations = {"multiply_adds": products * CLIENTS * d * d, "bytes": products * CLIENTS * d * d * 8.0 / min(chains, 8)}
    facts = {"sampler": name, "dimension": d, "chains": chains, "noise_sharing": tau, "clients": CLIENTS, **operations}
    return Result(
        workload, label, "chain-step", found["fald"], parts, target, None, prepared.compile_seconds, facts
    )


def measure_w2(setting: Setting) -> list[Result]:
    """Measure d = 20 with 16 and 100 chains, both samplers, shared and private noise."""
    return [
        _measure("W2", name, 20, chains, tau, "<= 1.8 x limit" if tau == 1.0 else "", setting)
        for tau in (1.0, 0.0)
        for chains in ((16,) if setting.quick else (16, 100))
        for name in ("fald", "vr_fald_star")
    ]


def measure_w3(setting: Setting) -> list[Result]:
    """Measure d = 2 with one chain."""
    return [_measure("W3", name, 2, 1, 1.0, "", setting) for name in ("fald", "vr_fald_star")]
