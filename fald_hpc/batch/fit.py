"""Whether a job fits: ranks, memory and time against its plan and what the cluster offers; refusals say what would."""

import math
from collections.abc import Sequence

from fald_hpc.batch import duration
from fald_hpc.batch.job import Job
from fald_hpc.batch.offers import Offer, of
from fald_hpc.errors import UserError

START_SECONDS = 15.0
"""Seconds of a start that sample nothing: launch, imports, compiled code read from the disk."""

MOST_STARTS = 100
"""Starts that one job may take (FALD_MAX_RESTARTS in the script)."""


def memory(bytes_of_a_rank: float) -> int:
    """Return the megabytes to ask for each rank: the estimate with room for the compiler and for its errors."""
    return 100 * math.ceil((1.5 * bytes_of_a_rank / 1e6 + 200.0) / 100.0)


def starts(job: Job, seconds: float) -> int:
    """Return how many starts of a job a run of so many seconds takes.

    Raises
    ------
    UserError
        The time limit leaves nothing, or too little, for sampling.
    """
    usable = job.seconds - job.warning - START_SECONDS
    if usable <= 0:
        raise UserError(
            f"--time {duration.slurm(job.seconds)} leaves no time to sample: starting takes some "
            f"{START_SECONDS:.0f} s, and the last {job.warning} s are kept for saving; give at least a minute"
        )
    needed = max(1, math.ceil(seconds / usable))
    if needed > MOST_STARTS:
        enough = math.ceil((1.2 * seconds / MOST_STARTS + 120 + START_SECONDS) / 60) * 60
        raise UserError(
            f"the run takes about {duration.slurm(math.ceil(seconds))}, which is {needed} starts of "
            f"{duration.slurm(job.seconds)}, and a job is started {MOST_STARTS} times at most: give --time "
            f"{duration.slurm(enough)} or more, or more ranks"
        )
    return needed


def layout(job: Job) -> None:
    """Refuse nodes that would get no rank.

    Raises
    ------
    UserError
        There are more nodes than ranks.
    """
    if job.ranks < job.nodes:
        raise UserError(f"--nodes {job.nodes} for {job.ranks} ranks: a node would stand idle; give at most {job.ranks}")


def cluster(job: Job, offers: Sequence[Offer], partition: str | None) -> None:
    """Refuse what no nodes of the partition can hold.

    Raises
    ------
    UserError
        The partition does not exist, or has too few nodes, processors or memory, or a shorter time limit.
    """
    there = of(offers, partition)
    if not there:
        names = ", ".join(sorted({offer.partition for offer in offers})) or "none"
        raise UserError(
            f"--partition {partition}: this cluster has {names}"
            if partition
            else f"this cluster has no default partition: give --partition, one of {names}"
        )
    name = f"partition {there[0].partition}"
    longest = max(offer.seconds for offer in there)
    if job.seconds > longest:
        raise UserError(
            f"--time {duration.slurm(job.seconds)} is more than {name} allows ({duration.slurm(int(longest))}): "
            "give that; the script continues the run in as many starts as it takes"
        )
    total = sum(offer.nodes for offer in there)
    if job.nodes > total:
        raise UserError(f"--nodes {job.nodes}: {name} has {total}; give fewer nodes")
    per_node = job.ranks_per_node
    wide = [offer for offer in there if offer.processors >= per_node]
    if sum(offer.nodes for offer in wide) < job.nodes:
        enough = math.ceil(job.ranks / max(offer.processors for offer in there))
        room = max(job.nodes * offer.processors for offer in there)
        advice = f"give --nodes {enough} or more, or fewer ranks" if enough <= total else f"{room} ranks fit on these"
        raise UserError(
            f"{per_node} ranks a node: {name} has {_at_most(there, 'processors', job.nodes)} processors a node on "
            f"{job.nodes} of its nodes; {advice}"
        )
    needed = per_node * job.memory
    if sum(offer.nodes for offer in wide if offer.megabytes >= needed) < job.nodes:
        room = max(offer.megabytes for offer in wide) // job.memory
        advice = f"give --nodes {math.ceil(job.ranks / room)} or more" if room else "give more ranks, or fewer chains"
        raise UserError(
            f"{per_node} ranks of {job.memory} MB a node need {needed} MB: {name} has "
            f"{_at_most(wide, 'megabytes', job.nodes)} MB a node on {job.nodes} of its nodes; {advice}"
        )


def _at_most(offers: Sequence[Offer], what: str, nodes: int) -> int:
    """Return what so many nodes have at least, the best ones taken."""
    best, counted = 0, 0
    for offer in sorted(offers, key=lambda offer: -int(getattr(offer, what))):
        best, counted = int(getattr(offer, what)), counted + offer.nodes
        if counted >= nodes:
            break
    return best
