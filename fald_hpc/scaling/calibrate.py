"""Costs of this machine for a configuration: short pieces of runs on one core, without MPI."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fald_hpc.chains import Chains, batch_sizes
from fald_hpc.comm import Serial
from fald_hpc.config import Config
from fald_hpc.execute import arguments
from fald_hpc.federation import Federation
from fald_hpc.kernels.state import AVERAGES, MESSAGES, REFRESHES
from fald_hpc.layout import Layout
from fald_hpc.sampling import request
from fald_hpc.scaling.costs import Piece
from fald_hpc.study import Study, prepare

NEVER = 1e-12
_PIECE_SECONDS = 0.02


def study_of(config: Config) -> Study:
    """Return the prepared study of a configuration, as one process sees it."""
    given = arguments(config)
    names = ("potential", "clients", "sampler", "steps", "chains", "seed", "burn_in", "init", "schedule", "record")
    return prepare(request(**{name: given[name] for name in (*names, "standardise")}), Serial())


def pieces(study: Study, repeats: int = 7) -> list[Piece]:
    """Return measured pieces: different numbers of clients and chains, with and without averaging and refresh.

    Each piece is the best of ``repeats``, taken in turn with the others.
    """
    made = [_Runner(study, *setting) for setting in _settings(study)]
    for _ in range(repeats):
        for runner in made:
            runner.run()
    return [runner.piece() for runner in made]


def largest(study: Study) -> "_Runner":
    """Return the piece with all clients and chains, at the configuration's own probabilities."""
    s = study.request.chains if study.request.schedule.shared else 1
    p, q = study.sampler.comm_prob, getattr(study.sampler, "refresh_prob", NEVER)
    return _Runner(study, study.federation.n_clients, s, p, q)


def _settings(study: Study) -> Iterator[tuple[int, int, float, float]]:
    """Yield clients, chains, comm_prob, refresh_prob."""
    b = study.federation.n_clients
    s = study.request.chains if study.request.schedule.shared else 1
    p, q = study.sampler.comm_prob, getattr(study.sampler, "refresh_prob", NEVER)
    for c in sorted({1, max(1, b // 4), max(1, b // 2), b}):
        for chains in sorted({1, s}):
            yield c, chains, p, NEVER
            yield c, chains, p, q
            yield c, chains, 1.0, min(1.0, 4.0 * q)
            yield c, chains, p / 8.0, NEVER


class _Runner:
    """One setting: the same iterations again and again, with the same coins."""

    def __init__(self, study: Study, n_clients: int, n_chains: int, p: float, q: float) -> None:
        whole, asked = study.federation, study.request
        data: list[Any] = asked.clients.load(range(n_clients))
        if study.scale is not None:
            from fald_hpc.data import standardise

            data = [replace(one, features=standardise.apply(one.features, *study.scale)) for one in data]
        shares = np.full(n_clients, 1.0 / n_clients)
        part = Federation(
            whole.potential, whole.potential.pack(data, shares), whole.n_rows[:n_clients], n_clients, 0, whole.names, Serial()
        )
        # a tenth of the step keeps a part of the clients stable and costs the same
        changes: dict[str, Any] = {"step_size": 0.1 * float(study.sampler.step_size), "comm_prob": p}
        if study.sampler.uses_reference:
            changes["refresh_prob"] = q
        sampler = replace(study.sampler, **changes)
        schedule = replace(asked.schedule, burn_in=0)
        self.chains = Chains(part, sampler, schedule, Layout(n_clients, n_chains, 1, 1), 0, study.key)
        self.chains.compile()
        x = np.zeros(whole.dimension) if study.mode is None else study.mode
        self.chains.start(np.tile(x, (n_chains, 1)))
        self.rows = int(whole.n_rows[:n_clients].sum())
        self.batch = int(batch_sizes(whole.n_rows[:n_clients], sampler.batch_size).sum())
        self.sizes = n_clients, n_chains
        self.length = 16
        begun = 0.0
        while begun < _PIECE_SECONDS and self.length < self.chains.most_steps // 2:
            self.length *= 2
            begun = self._once()
        self.best = np.inf

    def _once(self) -> float:
        # the state of an averaging counts as that of iteration 0, so that the same events follow
        self.chains.begin_at(0)
        before = self.chains.state.tally.copy()
        begun = time.perf_counter()
        self.steps = self.chains.run(0, self.length, self.length)
        elapsed = time.perf_counter() - begun
        self.tally = self.chains.state.tally - before
        return elapsed

    def run(self) -> None:
        """Run the piece once more."""
        self.best = min(self.best, self._once())

    def piece(self) -> Piece:
        """Return the best run."""
        clients, chains = self.sizes
        messages = max(int(self.tally[MESSAGES]), int(self.tally[AVERAGES]))
        return Piece(clients, self.rows, self.batch, chains, self.steps, int(self.tally[REFRESHES]), messages, float(self.best))
