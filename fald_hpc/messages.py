"""Messages made, and those that the schedule predicts: known from the seed before the first step."""

import numpy as np

from fald_hpc.chains import Chains
from fald_hpc.events import expected_events
from fald_hpc.kernels.state import MESSAGES, REPEATS, ROWS_TOUCHED
from fald_hpc.study import Study


def made(chains: Chains, study: Study) -> dict[str, int] | None:
    """Return what was sent and touched since the first step of this process, on rank 0; all ranks call it."""
    tally = chains.state.tally
    parts = study.communicator.gather(np.array([tally[MESSAGES], tally[REPEATS], tally[ROWS_TOUCHED]], np.int64))
    if parts is None:
        return None
    keepers = parts[:: study.layout.client_groups]
    counts = keepers[0] if study.request.schedule.shared else np.sum(keepers, axis=0)
    return {"made": int(counts[0]), "repeated": int(counts[1]), "rows_touched": int(np.sum(parts, axis=0)[2])}


def events(study: Study, first: int, last: int, equal: bool = True) -> np.ndarray:
    """Return (averagings, refreshes, messages) of iterations first..last-1 with one batch; see ``expected_events``."""
    request = study.request
    return expected_events(study.sampler, request.schedule, study.key, range(request.chains), first, last, equal)


def predicted(study: Study, spans: list[tuple[int, int]], equal_at_first: bool) -> int:
    """Return the messages of a process.

    Parameters
    ----------
    study : Study
        The study.
    spans : list of (int, int)
        First iterations, and in how many batches chains were taken from there on. A change is at the end of a segment,
        where all clients of a chain are equal.
    equal_at_first : bool
        Whether they were before the first iteration.
    """
    first = spans[0][0]
    total = 0
    if first == 0 and study.sampler.uses_reference:
        # the start is one message for all chains of a group of ranks
        total += 1 if study.request.schedule.shared else study.layout.chain_groups
    ends = [k for k, _ in spans[1:]] + [study.request.steps]
    for (begin, number), end in zip(spans, ends, strict=True):
        total += number * int(events(study, begin, end, equal_at_first or begin > first)[2])
    return total
