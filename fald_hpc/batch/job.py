"""What a user asks of the batch system, as a record."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fald_hpc.batch.grid import Point
from fald_hpc.errors import UserError


@dataclass(frozen=True)
class Job:
    """One job, or an array of them.

    Attributes
    ----------
    name : str
        Of the job and its log.
    source : str
        Built-in example, or absolute path of a config.
    out : Path
        Absolute folder of the results; of an array the folder that holds one folder a combination.
    ranks, nodes : int
        For each job of an array.
    seconds : int
        Time limit of one start.
    memory : int
        Megabytes for each rank.
    python : str
        Absolute path of the Python that fald_hpc is installed for.
    overrides : sequence of str
        ``key=value``, for every job.
    points : sequence of Point
        Combinations of an array; empty for a single job.
    options : sequence of str
        Further lines for sbatch, as ``--partition=fast``.
    settings : sequence of (str, str)
        Variables of ``slurm/env.sh``.
    """

    name: str
    source: str
    out: Path
    ranks: int
    nodes: int
    seconds: int
    memory: int
    python: str
    overrides: Sequence[str] = ()
    points: Sequence[Point] = ()
    options: Sequence[str] = ()
    settings: Sequence[tuple[str, str]] = ()

    @property
    def ranks_per_node(self) -> int:
        """The most ranks that a node gets."""
        return math.ceil(self.ranks / self.nodes)

    @property
    def warning(self) -> int:
        """Seconds before the time limit at which Slurm warns; it looks at its clock every half minute only."""
        return max(30, min(120, self.seconds // 10))

    def folders(self) -> list[Path]:
        """Return the folder of every run."""
        return [self.out / point.name for point in self.points] or [self.out]


def option(name: str, value: str) -> str:
    """Return an option for sbatch.

    Raises
    ------
    UserError
        The value would not stay within its line.
    """
    if not re.fullmatch(r"[^\s\"'#\\]+", value):
        raise UserError(f"--{name} {value!r}: blanks, quotes, # and backslashes cannot stand in an #SBATCH line")
    return f"--{name}={value}"
