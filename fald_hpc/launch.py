"""What the environment says about how this process was started: launcher, number of tasks, rank.

Pure functions of the environment variables; nothing here imports MPI. The variables are hints left by launchers, read
to decide whether MPI is wanted at all and to notice the *singleton trap*: a launcher starts N copies of a program whose
MPI library does not understand it, and each copy believes to be rank 0 of 1. N runs would then do the same work and
write the same files. ``SLURM_NTASKS`` is not a hint: it is set in every batch script, also for a serial step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# (launcher, variable with the number of tasks, variable with the rank, variable with the rank on the node), most
# specific first: mpiexec inside a Slurm step leaves both kinds.
HINTS = (
    ("Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("MPICH or another PMI launcher", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID"),
    ("Slurm step (srun)", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID"),
)

# Left by a launcher for its own ranks; a child that starts a launcher of its own must not inherit them. Settings that a
# user makes (MCA parameters, permission to run as root) stay.
RANK_PREFIXES = ("OMPI_", "PMI_", "PMI2_", "PMIX_", "HYDI_", "MPI_LOCAL")
USER_PREFIXES = ("OMPI_ALLOW_", "OMPI_MCA_", "PMIX_MCA_")
RANK_VARIABLES = (
    "OMPI_MCA_PREFIXES",
    "OMPI_MCA_cpu_type",
    "OMPI_MCA_ess",
    "OMPI_MCA_initial_wdir",
    "OMPI_MCA_num_procs",
    "PRTE_LAUNCHED",
    "PRTE_SHARED_FS",
    "SLURM_STEP_NUM_TASKS",
)


@dataclass(frozen=True)
class Launch:
    """How this process was started, as far as the environment tells.

    Attributes
    ----------
    launcher : str
        Name of the launcher, ``"none"`` where no variable of a launcher is set.
    tasks : int
        Number of processes that the launcher started, 1 without one.
    rank, local_rank : int
        Rank of this process among all tasks and among those of its node, 0 where unknown.
    variable : str
        The variable that gave ``tasks``, empty without a launcher.
    """

    launcher: str = "none"
    tasks: int = 1
    rank: int = 0
    local_rank: int = 0
    variable: str = ""


def _integer(environ: Mapping[str, str], name: str) -> int | None:
    """Return a variable as a non-negative integer, None where it is unset or something else."""
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None


def read(environ: Mapping[str, str]) -> Launch:
    """Return what the variables of the known launchers say; the largest number of tasks decides."""
    found = Launch()
    for launcher, size_name, rank_name, local_name in HINTS:
        tasks = _integer(environ, size_name)
        if tasks is not None and (tasks > found.tasks or not found.variable):
            rank = _integer(environ, rank_name) or 0
            local = _integer(environ, local_name)
            found = Launch(launcher, tasks, rank, rank if local is None else local, size_name)
    return found


def singleton_trap(environ: Mapping[str, str], world_size: int) -> str | None:
    """Return a sentence where a launcher started several tasks but MPI knows of one, else None.

    Parameters
    ----------
    environ : Mapping
        Environment variables.
    world_size : int
        Size of MPI's world communicator, 1 where MPI is not in use.
    """
    launch = read(environ)
    if world_size > 1 or launch.tasks <= 1:
        return None
    return (
        f"{launch.launcher} started {launch.tasks} copies of this program ({launch.variable}={launch.tasks}), but MPI "
        "sees a world of one process: every copy would do the whole run and write the same files. The MPI library that "
        "mpi4py uses does not understand this launcher: start with the mpiexec of that library, or under Slurm try "
        "srun --mpi=pmix (Open MPI) or srun --mpi=pmi2 (MPICH); `fald doctor` shows the library. If independent copies "
        "are what you want, give each its own --out and add --allow-singleton"
    )


def _of_one_rank(name: str) -> bool:
    """Return True for a variable that a launcher sets for one rank."""
    return name in RANK_VARIABLES or (name.startswith(RANK_PREFIXES) and not name.startswith(USER_PREFIXES))


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what a launcher left for its ranks, for a child that starts a launcher itself."""
    return {name: value for name, value in environ.items() if not _of_one_rank(name)}


def permissions(environ: Mapping[str, str], ranks: int, cores: int, root: bool) -> dict[str, str]:
    """Return the variables that Open MPI and MPICH need on this machine and that are not set yet.

    Open MPI refuses to start as root, and to start more ranks than cores; both libraries then busy-wait unless told to
    yield. Only what the case at hand needs is returned, and no variable that the user has set.

    Parameters
    ----------
    environ : Mapping
        Environment variables.
    ranks, cores : int
        Ranks to be started and cores that this process may use.
    root : bool
        True where the process runs as root.
    """
    wanted: dict[str, str] = {}
    if root:
        wanted |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if ranks > cores:
        wanted |= {
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
            "OMPI_MCA_mpi_yield_when_idle": "1",
            "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "true",
            "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
        }
    return {name: value for name, value in wanted.items() if name not in environ}
