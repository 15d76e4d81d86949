"""A prepared case that can be run again and again; noise, coins, averaging, records and statistics are all included."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fald_hpc.bench.spread import PROCESSOR, Clock, timed
from fald_hpc.chains import Schedule
from fald_hpc.comm import Serial
from fald_hpc.data.clients import Clients
from fald_hpc.engine import Engine
from fald_hpc.kernels.recording import ALL
from fald_hpc.options import Options
from fald_hpc.potentials.base import Potential
from fald_hpc.samplers.base import Sampler
from fald_hpc.study import Request, prepare
from fald_hpc.timers import Timers


@dataclass(frozen=True)
class Setting:
    """How a benchmark is to be taken.

    Attributes
    ----------
    quick : bool
        Small and short: for a look, or for a test.
    repeats : int
        Recorded rounds.
    seconds : float
        Least duration of one measurement.
    """

    quick: bool = False
    repeats: int = 11
    seconds: float = 0.15

    @classmethod
    def of(cls, quick: bool) -> "Setting":
        """Return the usual setting."""
        return cls(True, 3, 0.01) if quick else cls()


class Case:
    """A model, its clients and a sampler with a number as step size.

    Parameters
    ----------
    potential, clients, sampler
        As for :func:`fald_hpc.sample`.
    chains : int
        Chains.
    start : float64[d]
        Where all chains start.
    shared, every_step : bool
        Coins and records.
    settled : bool
        Leave out the beginning, in which every averaging is watched for drift and not one in ``EACH``: where measurements
        are short beside a run of 10^7 steps and averagings cost much.
    communicator : communicator
        Ranks that run it together.
    clock : callable
        Gives seconds: of the processor, or of the wall where other threads or ranks take part.
    """

    def __init__(
        self, potential: Potential, clients: Clients, sampler: Sampler, chains: int, start: np.ndarray, *,
        shared: bool = True, every_step: bool = False, settled: bool = False, communicator: Serial | None = None,
        clock: Clock = PROCESSOR,
    ) -> None:  # fmt: skip
        self.chains, self.clock = chains, clock
        request = Request(
            potential, clients, sampler, 1, chains, 1, Schedule(shared, every_step, 0), np.asarray(start, np.float64)
        )
        self._request = request
        self._study = prepare(request, communicator or Serial(), need_mode=False)
        self._left_out = math.ceil(1.5 * ALL / sampler.comm_prob) if settled else 0
        self.compile_seconds = 0.0
        self.messages: dict[str, int] | None = None
        self.phases: dict[str, float] = {}

    def run(self, steps: int) -> float:
        """Run so many iterations and return the seconds of sampling and keeping."""
        study = replace(self._study, request=replace(self._request, steps=self._left_out))
        timers = Timers()
        engine = Engine(study, Options(), None, timers)
        engine.compile()
        self.compile_seconds = max(self.compile_seconds, timers.phases["compile"])
        engine.begin()
        engine.run(None)
        before = dict(timers.phases), engine.messages()
        engine.study = replace(study, request=replace(self._request, steps=self._left_out + steps))
        seconds = timed(lambda: engine.run(None), self.clock)
        self.phases = {name: taken - before[0].get(name, 0.0) for name, taken in timers.phases.items()}
        made, earlier = engine.messages(), before[1]
        self.messages = None if made is None or earlier is None else {name: n - earlier[name] for name, n in made.items()}
        return seconds

    def steps_for(self, seconds: float, most: int = 1 << 26) -> int:
        """Return a number of iterations that takes about so long."""
        steps = 64
        self.run(steps)
        while steps < most:
            taken = self.run(steps)
            if taken >= 0.25 * seconds:
                return max(1, min(most, int(steps * seconds / taken)))
            steps *= 4
        return most

    def per_chain_step(self, steps: int) -> float:
        """Run and return seconds per iteration of one chain over all clients."""
        return self.run(steps) / (steps * self.chains)


def repeated(case: Case, setting: Setting, **others: Any) -> dict[str, Any]:
    """Return measurements for :func:`fald_hpc.bench.spread.in_turns`: the case as "fald", and others."""
    steps = case.steps_for(setting.seconds)
    return {"fald": lambda: case.per_chain_step(steps), **others}
