"""The sums of the drift watch: part of a run's state, so that a resumed run goes on with them, bit by bit.

Distances are summed in the compiled loop, for every client and chain on its rank. Looks are taken by the ranks of one
chain after the other and summed on rank 0 in the order in which they come. Neither depends on the layout.
"""

from typing import Any

import numpy as np

from fald_hpc.chains import Chains, batch_sizes
from fald_hpc.drift import grid, look, waiting
from fald_hpc.study import Study

ARRAYS = ("drift_apart", "drift_averagings", "drift_sums", "drift_taken")
"""Names in a checkpoint: float64[b, s], int64[s], float64[b, N_NUMBERS] and int64[1]."""


class DriftWatch:
    """The watch of one run on one rank; all ranks call every method alike.

    Parameters
    ----------
    study : Study
        The prepared study.
    chains : Chains
        This rank's.

    Attributes
    ----------
    grid : Grid
        When looks are due.
    looks, looked_at : int
        Looks so far, whether they gave numbers or not, and the iteration of the last one.
    sums : float64[b, N_NUMBERS]
        Of all looks that gave numbers, ``taken`` of them; on rank 0.
    waited : list of dict
        What the ranks waited in earlier parts of the run (:mod:`fald_hpc.drift.waiting`); on rank 0.
    """

    def __init__(self, study: Study, chains: Chains) -> None:
        self.study, self.chains, self.communicator = study, chains, study.communicator
        federation, schedule = study.federation, study.request.schedule
        rows, batch = federation.n_rows, batch_sizes(federation.n_rows, study.sampler.batch_size)
        self.observer = look.Observer(federation, batch, study.sampler.uses_reference)
        total, per_step, scattered = study.group.total(
            np.array([rows.sum(), batch.sum(), rows[batch < rows].sum()], np.float64)
        )
        # two full gradients and, of clients with minibatches, two estimates of every row
        of_look = 2.0 * total + 2.0 * scattered if study.sampler.uses_reference else total
        refreshed = getattr(study.sampler, "refresh_prob", 0.0) * total
        self.grid = grid.grid(schedule.burn_in, of_look, study.request.chains * (per_step + refreshed))
        self.looks, self.looked_at, self.taken = 0, schedule.burn_in, 0
        self.sums = np.zeros((federation.n_clients, look.N_NUMBERS))
        self.waited: list[dict[str, Any]] = []
        self._begun = 0

    def target(self, k: int, wanted: int) -> int:
        """Return where a segment from iteration k should end that was to end at ``wanted``: not beyond the next look."""
        return min(wanted, max(self.grid.after(self.looked_at), k + 1))

    def look(self, k: int) -> bool:
        """Look if it is time, before iteration k; return whether it was.

        The point is the chain's last average over clients. Chains take turns.
        """
        schedule = self.study.request.schedule
        if k < self.grid.after(self.looked_at):
            return False
        if schedule.shared and not schedule.every_step and not self.chains.averaged(k):
            return False
        state, chain = self.chains.state, self.looks % self.study.request.chains
        found = None
        if chain in self.chains.indices:
            s = chain - self.chains.indices.start
            found = self.observer.look(state.mean[s], state.reference[s], state.shift[s], state.kept[s])
        parts = self.communicator.gather(np.zeros((0, look.N_NUMBERS)) if found is None else found)
        if parts is not None:
            everyone = np.concatenate(parts)
            if everyone.shape == self.sums.shape and np.isfinite(everyone).all():
                self.sums += everyone
                self.taken += 1
        self.looks += 1
        self.looked_at = k
        return True

    def gathered(self) -> dict[str, np.ndarray]:
        """Return the sums of all clients and chains for a checkpoint, on rank 0 (an empty dict elsewhere)."""
        layout, log = self.study.layout, self.chains.log
        parts, counts = self.communicator.gather(log.apart), self.communicator.gather(log.averagings)
        if parts is None or counts is None:
            return {}
        apart = np.zeros((layout.n_clients, layout.n_chains))
        averagings = np.zeros(layout.n_chains, np.int64)
        for rank, part in enumerate(parts):
            clients, chains = layout.clients(rank), layout.chains(rank)
            apart[clients.start : clients.stop, chains.start : chains.stop] = part
            averagings[chains.start : chains.stop] = counts[rank]
        return dict(zip(ARRAYS, (apart, averagings, self.sums, np.array([self.taken])), strict=True))

    def start_clock(self, k: int) -> None:
        """Measure from here on, before iteration k, what the ranks wait."""
        self._begun = k
        waiting.start()

    def waiting(self, k: int) -> list[dict[str, Any]]:
        """Return what the ranks waited in every part of the run, this one to iteration k included, on rank 0."""
        part = waiting.measure(self.communicator, self._begun, k)
        return self.waited if part is None else [*self.waited, part]

    def position(self) -> list[int]:
        """Return the number of looks and the iteration of the last one, for a checkpoint."""
        return [self.looks, self.looked_at]

    def restore(self, arrays: dict[str, np.ndarray] | None, position: list[int]) -> None:
        """Go on from a checkpoint; rank 0 has its arrays, all ranks its position."""
        apart, averagings, sums, taken = (
            self.communicator.share_array(None if arrays is None else arrays[name]) for name in ARRAYS
        )
        clients, chains = self.chains.clients, self.chains.indices
        self.chains.log.apart[:] = apart[clients.start : clients.stop, chains.start : chains.stop]
        self.chains.log.averagings[:] = averagings[chains.start : chains.stop]
        self.sums[:], self.taken = sums, int(taken[0])
        self.looks, self.looked_at = (int(value) for value in position)

