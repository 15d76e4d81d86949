"""What the partitions of a cluster offer, as ``sinfo`` says it: nodes, processors, memory, longest job."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from fald_hpc.batch import duration

ANSWER_SECONDS = 20


@dataclass(frozen=True)
class Offer:
    """Nodes of one kind in one partition.

    Attributes
    ----------
    partition : str
        Its name.
    default : bool
        True for the partition that a job without one gets.
    nodes : int
        How many nodes of this kind, whatever their state.
    processors : int
        Processors of a node.
    megabytes : int
        Memory of a node.
    seconds : float
        Longest job.
    """

    partition: str
    default: bool
    nodes: int
    processors: int
    megabytes: int
    seconds: float


def ask() -> list[Offer] | None:
    """Return all offers; None where there is no sinfo or it does not answer."""
    if shutil.which("sinfo") is None:
        return None
    command = ["sinfo", "--noheader", "--exact", "--format=%P|%D|%c|%m|%l"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return parse(said)


def parse(said: str) -> list[Offer]:
    """Return the offers in the output of ``sinfo --noheader --exact --format=%P|%D|%c|%m|%l``."""
    found = []
    for line in said.splitlines():
        partition, nodes, processors, megabytes, limit = line.split("|")
        found.append(
            Offer(
                partition.rstrip("*"), partition.endswith("*"), int(nodes), int(processors.rstrip("+")),
                int(megabytes.rstrip("+")), duration.limit(limit),
            )
        )  # fmt: skip
    return found


def of(offers: Sequence[Offer], partition: str | None) -> list[Offer]:
    """Return the offers of a partition, or of the default one."""
    return [offer for offer in offers if (offer.default if partition is None else offer.partition == partition)]
