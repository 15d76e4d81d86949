"""``fald scale model`` as a function: predictions at many numbers of ranks, and the text that shows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fald_hpc.batches import WORTH
from fald_hpc.errors import UserError
from fald_hpc.kernels import coins
from fald_hpc.scaling import overlap, predict, schedule, simulate
from fald_hpc.scaling.costs import Costs
from fald_hpc.scaling.network import Cluster
from fald_hpc.scaling.predict import Prediction
from fald_hpc.scaling.work import Point, Slow, point
from fald_hpc.study import Study

SIMULATED_RANKS = 10_000
SIMULATED_EVENTS = 4000
JITTER_SEED = 7


@dataclass(frozen=True)
class Line:
    """One number of ranks.

    Attributes
    ----------
    prediction : Prediction
        Analytic.
    efficiency : float
        Against one rank.
    simulated : float or None
        Seconds of an iteration by simulation.
    two_batches : float or None
        Seconds of an iteration, without jitter, with the chains in two batches that hide each other's messages, over
        those without; None where there is one chain or no message.
    """

    prediction: Prediction
    efficiency: float
    simulated: float | None
    two_batches: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        one = self.prediction
        names = ("ranks", "total", "steps", "refresh", "own", "waiting", "network", "messages")
        return {name: getattr(one, name) for name in names} | {
            "efficiency": self.efficiency,
            "simulated": self.simulated,
            "two_batches": self.two_batches,
        }


def forecast(
    study: Study, costs: Costs, ranks: Sequence[int], cluster: Cluster, fixed: str | None = None,
    slow: Slow | None = None, simulated: bool = True,
) -> tuple[list[Line], list[str]]:  # fmt: skip
    """Return predictions, and a sentence for each number of ranks that has no layout.

    Parameters
    ----------
    study : Study
        The configuration.
    costs : Costs
        Of one core.
    ranks : sequence of int
        Numbers of ranks.
    cluster : Cluster
        Network.
    fixed : str or None
        What a weak study keeps fixed; None for a strong one.
    slow : Slow, optional
        Slow ranks, but for the run on one rank.
    simulated : bool
        Simulate the schedule too, up to ``SIMULATED_RANKS``.
    """
    p, q = study.sampler.comm_prob, getattr(study.sampler, "refresh_prob", None)
    base = predict.predict(costs, point(study, 1, fixed), p, q, cluster).total
    events = _events(study, p, q)
    lines, missing = [], []
    for n in ranks:
        try:
            here = point(study, n, fixed, slow if n > 1 else None)
        except UserError as error:
            missing.append(f"{n} ranks: {error}")
            continue
        one = predict.predict(costs, here, p, q, cluster)
        ideal = base if fixed is not None else base / n
        seconds = None
        if simulated and here.together <= SIMULATED_RANKS:
            found = simulate.simulate(costs, here, events, cluster, _jitter_key())
            seconds = here.streams * found.total / found.steps
        lines.append(Line(one, ideal / one.total, seconds, _two_batches(costs, here, events, cluster)))
    return lines, missing


def _jitter_key() -> Any:
    from fald_hpc.kernels import noise

    return noise.key(JITTER_SEED)


def _events(study: Study, p: float, q: float | None) -> schedule.Events:
    """Return the first events of the run, from its own seed."""
    steps = int(SIMULATED_EVENTS / schedule.rates(p, q)[0])
    stream = coins.SHARED if study.request.schedule.shared else 0
    return schedule.events(study.key, p, q, min(steps, 1 << 22), [stream])


def _two_batches(costs: Costs, here: Point, events: schedule.Events, cluster: Cluster) -> float | None:
    if here.together == 1 or here.streams > 1 or here.work.chains.min() < 2:
        return None
    alone = overlap.per_step(costs, here, events, cluster, 1)
    return overlap.per_step(costs, here, events, cluster, 2) / alone


def text(lines: Sequence[Line], missing: Sequence[str]) -> str:
    """Return the predictions as a table with its conclusion."""
    header = ("ranks", "us a step", "simulated", "efficiency", "computing", "waiting", "network", "2 batches")
    cells = [list(header)]
    for line in lines:
        one = line.prediction
        cells.append(
            [
                f"{one.ranks}",
                f"{1e6 * one.total:.4g}",
                "-" if line.simulated is None else f"{1e6 * line.simulated:.4g}",
                f"{line.efficiency:.3f}",
                *(f"{part / one.total:.1%}" for part in (one.computation, one.waiting, one.network)),
                "-" if line.two_batches is None else f"{line.two_batches:.2f}",
            ]
        )
    widths = [max(len(row[c]) for row in cells) for c in range(len(header))]
    shown = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    over = predict.crossover([line.prediction for line in lines])
    verdict = (
        f"communication (network and waiting) overtakes computation at {over} ranks"
        if over is not None
        else "communication stays below computation at all these numbers of ranks"
    )
    return "\n".join([*shown, verdict, *_hiding(lines), *missing])


def _hiding(lines: Sequence[Line]) -> list[str]:
    """Return where two batches of chains pay, as a sentence; nothing where they are no choice."""
    known = [(line.prediction.ranks, line.two_batches) for line in lines if line.two_batches is not None]
    if not known:
        return []
    pays = [ranks for ranks, ratio in known if ratio < WORTH]
    if not pays:
        return [f"run.chain_batches = 2 saves less than {1.0 - WORTH:.0%} at any of these numbers of ranks"]
    best, ratio = min(known, key=lambda pair: pair[1])
    return [f"run.chain_batches = 2 pays at {', '.join(map(str, pays))} ranks; most at {best}: {ratio:.2f} of the time"]
