"""What a message between ranks costs: latency and bandwidth, with the logarithm of the number of ranks.

An allreduce of n bytes over P ranks takes ``h (latency + ...)`` with h = ceil(log2 P) stages (recursive doubling), and
moves n bytes in each stage, or 2 (P - 1)/P n in all if the library halves the message for large ones (Rabenseifner;
Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl. 19 (2005) 49-66, section 4): the smaller is taken.
Ranks of one node reduce in shared memory first, then one rank a node over the network.
"""

import math
from dataclasses import dataclass

from fald_hpc.errors import UserError


@dataclass(frozen=True)
class Network:
    """A network.

    Attributes
    ----------
    name, source : str
        What it is, and where the numbers are from.
    latency : float
        Seconds of a stage.
    bandwidth : float
        Bytes a second.
    """

    name: str
    latency: float
    bandwidth: float
    source: str

    def seconds(self, ranks: int, size: float) -> float:
        """Return seconds of an allreduce of ``size`` bytes."""
        if ranks <= 1:
            return 0.0
        stages = math.ceil(math.log2(ranks))
        return stages * self.latency + min(stages, 2.0 * (ranks - 1) / ranks) * size / self.bandwidth


PRESETS = {
    "shared-memory": Network(
        "shared-memory", 0.4e-6, 5e9,
        "measured with this package: 0.26 to 0.6 us for 8 doubles on 2 ranks of one AMD EPYC node",
    ),
    "infiniband": Network(
        "infiniband", 1.3e-6, 10e9,
        "osu_allreduce on 4 nodes of Lassen, InfiniBand EDR: 2.6 us for 8 bytes, two stages "
        "(github.com/converged-computing/metrics-operator-experiments, google/kubecon/hpc/lassen-run1); "
        "osu_latency 0.9 us and osu_bw 10 GB/s at 32 kB (gist.github.com/jfgrimm/3af692a5475bdd4ed836b5a18197a209)",
    ),
    "ethernet": Network(
        "ethernet", 25e-6, 0.117e9,
        "osu_latency 25 us and osu_bw 117 MB/s over TCP, MPICH, gigabit Ethernet "
        "(gist.github.com/jfgrimm/3af692a5475bdd4ed836b5a18197a209)",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Cluster:
    """Nodes with shared memory inside and a network between.

    Attributes
    ----------
    network : Network
        Between nodes.
    ranks_per_node : int
        1: every rank pays the network.
    inside : Network
        Inside a node.
    """

    network: Network
    ranks_per_node: int = 1
    inside: Network = PRESETS["shared-memory"]

    def seconds(self, ranks: int, size: float) -> float:
        """Return seconds of an allreduce of ``size`` bytes over so many ranks."""
        local = min(ranks, self.ranks_per_node)
        return self.inside.seconds(local, size) + self.network.seconds(math.ceil(ranks / self.ranks_per_node), size)


def parse(text: str) -> Network:
    """Return a preset by name, or the network of ``LATENCY_US,GB_PER_S``.

    Raises
    ------
    UserError
        If it is neither.
    """
    if text in PRESETS:
        return PRESETS[text]
    parts = text.split(",")
    try:
        latency, bandwidth = (float(part) for part in parts)
        good = latency >= 0.0 and bandwidth > 0.0 and math.isfinite(latency) and math.isfinite(bandwidth)
    except ValueError:
        good = False
    if not good:
        raise UserError(f"--network {text}: give {', '.join(PRESETS)}, or LATENCY,BANDWIDTH in microseconds and GB/s, as 1.5,12")
    return Network(text, 1e-6 * latency, 1e9 * bandwidth, "as given")
