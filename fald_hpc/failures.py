"""Failures of a chain, and how all ranks come to tell the same story: the rank that knows says it, rank 0 words it."""

from typing import Any

from fald_hpc.comm import Serial, everywhere
from fald_hpc.errors import sentence as sentence_of


class ChainFailure(RuntimeError):
    """A chain cannot go on.

    Attributes
    ----------
    step : int
        Iteration at which it failed, or by which it was noticed.
    client, chain : int or None
        Global indices where this rank hosts the culprit, else None.
    said : str or None
        What the user's own function raised.
    """

    kind = "failure"

    def __init__(
        self, message: str, step: int = 0, client: int | None = None, chain: int | None = None, said: str | None = None
    ) -> None:
        super().__init__(sentence_of(message))
        self.step, self.client, self.chain, self.said = step, client, chain, said


class Divergence(ChainFailure):
    """A parameter or gradient is no longer a finite number."""

    kind = "divergence"


class GradientFailure(ChainFailure):
    """A user's gradient raised."""

    kind = "gradient"


KINDS: dict[str, type[ChainFailure]] = {kind.kind: kind for kind in (Divergence, GradientFailure)}


def agreed(error: ChainFailure | None, communicator: Serial, client_ids: Any, step_size: float) -> ChainFailure:
    """Return the one failure that all ranks raise; every rank calls it, at least one of them with a failure.

    Parameters
    ----------
    error : ChainFailure or None
        What this rank knows.
    communicator : communicator
        All ranks.
    client_ids : sequence of str
        Names of all clients.
    step_size : float
        γ, for the advice.
    """
    mine = None if error is None else [error.kind, error.step, error.client, error.chain, error.said, str(error)]
    told = communicator.collect(mine)
    word = None
    if told is not None:
        known = [(record, rank) for rank, record in enumerate(told) if record is not None]
        # a rank that hosts a culprit knows more than one that only heard of it; then the first in time
        record, rank = min(known, key=lambda pair: (pair[0][2] is None, pair[0][1], pair[0][3] or 0, pair[0][2] or 0))
        word = [record[0], sentence(record, rank, client_ids, step_size), *record[1:5]]
    kind, text, step, client, chain, said = communicator.share(word)
    return everywhere(KINDS[kind](text, step, client, chain, said))


def sentence(record: list[Any], rank: int, client_ids: Any, step_size: float) -> str:
    """Return the message of a failure: rank, client, chain, step, and what to try."""
    kind, step, client, chain, said, message = record
    if client is None:
        return f"rank {rank}: {message}"
    where = f"client {client} ({client_ids[client]}), chain {chain}, step {step}, on rank {rank}"
    if kind == GradientFailure.kind:
        raised = f"raised {' '.join(said.split())}" if said is not None else "raised an exception"
        return (
            f"the row gradient {raised}: {where}. Mend the function, or take a smaller step size "
            f"(now {step_size:g}) if it fails only for extreme parameters."
        )
    return (
        f"a value was not finite: {where} (step_size = {step_size:g}). Take a smaller step size, fewer steps between "
        "averagings (a larger comm_prob) or a start nearer to the mode; very large features need standardise = true."
    )
