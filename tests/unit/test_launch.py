"""Launcher hints, the singleton trap (users.md row 14) and the thread cap, as pure functions of an environment."""

import pytest

from fald_hpc import launch, threads

# What each launcher leaves for rank 1 of 2: a literal table, copied from real launches.
OPEN_MPI = {
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_MCA_num_procs": "2",
    "OMPI_UNIVERSE_SIZE": "2",
    "PMIX_RANK": "1",
    "PMIX_SERVER_TMPDIR": "/scratch/ompi.1",
    "PRTE_LAUNCHED": "1",
}
HYDRA = {"PMI_SIZE": "2", "PMI_RANK": "1", "PMI_FD": "9", "MPI_LOCALRANKID": "1", "HYDI_CONTROL_FD": "7"}
STEP = {"SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3", "SLURM_LOCALID": "1"}
BATCH = {"SLURM_NTASKS": "4", "SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NPROCS": "4"}


@pytest.mark.parametrize(
    ("environ", "tasks", "rank", "local_rank", "variable"),
    [
        ({}, 1, 0, 0, ""),
        (OPEN_MPI, 2, 1, 1, "OMPI_COMM_WORLD_SIZE"),
        (HYDRA, 2, 1, 1, "PMI_SIZE"),
        (STEP, 4, 3, 1, "SLURM_STEP_NUM_TASKS"),
        (BATCH, 1, 0, 0, ""),
        ({"PMI_SIZE": "1", "PMI_RANK": "0"}, 1, 0, 0, "PMI_SIZE"),
        ({"PMI_SIZE": "two"}, 1, 0, 0, ""),
        ({**OPEN_MPI, "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}, 2, 1, 1, "OMPI_COMM_WORLD_SIZE"),
        ({"PMI_SIZE": "1", "PMI_RANK": "0", **STEP}, 4, 3, 1, "SLURM_STEP_NUM_TASKS"),
    ],
)
def test_read(environ, tasks, rank, local_rank, variable):
    found = launch.read(environ)
    assert (found.tasks, found.rank, found.local_rank, found.variable) == (tasks, rank, local_rank, variable)


@pytest.mark.parametrize("environ", [OPEN_MPI, HYDRA, STEP])
def test_trap_is_seen_for_each_launcher(environ):
    sentence = launch.singleton_trap(environ, 1)
    assert sentence is not None
    assert launch.read(environ).variable in sentence
    assert "--allow-singleton" in sentence
    assert "fald doctor" in sentence


@pytest.mark.parametrize("environ", [{}, BATCH, {"SLURM_STEP_NUM_TASKS": "1"}, {"OMPI_COMM_WORLD_SIZE": "1"}])
def test_no_false_alarm_for_a_serial_run(environ):
    assert launch.singleton_trap(environ, 1) is None


@pytest.mark.parametrize("environ", [OPEN_MPI, HYDRA, STEP])
def test_no_alarm_where_mpi_works(environ):
    assert launch.singleton_trap(environ, launch.read(environ).tasks) is None


@pytest.mark.parametrize("environ", [OPEN_MPI, HYDRA, STEP])
def test_clean_removes_the_rank_and_keeps_the_user(environ):
    user = {"PATH": "/bin", "OMPI_MCA_btl": "self,sm", "OMPI_ALLOW_RUN_AS_ROOT": "1", "PMIX_MCA_gds": "hash"}
    cleaned = launch.clean({**environ, **user, "SLURM_JOB_ID": "7"})
    assert launch.read(cleaned).tasks == 1
    assert user.items() <= cleaned.items()
    assert cleaned["SLURM_JOB_ID"] == "7"
    assert not any(name.startswith(("PMI_", "PMIX_SERVER", "OMPI_COMM")) for name in cleaned)


def test_permissions_only_where_needed():
    assert launch.permissions({}, ranks=2, cores=2, root=False) == {}
    assert set(launch.permissions({}, ranks=2, cores=2, root=True)) == {
        "OMPI_ALLOW_RUN_AS_ROOT",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
    }
    crowded = launch.permissions({"OMPI_MCA_mpi_yield_when_idle": "0"}, ranks=3, cores=2, root=False)
    assert crowded["PRTE_MCA_rmaps_default_mapping_policy"] == ":oversubscribe"
    assert "OMPI_MCA_mpi_yield_when_idle" not in crowded


def test_threads_are_capped_where_unset():
    environ: dict[str, str] = {}
    assert set(threads.cap(environ)) == set(threads.VARIABLES)
    assert set(environ.values()) == {"1"}
    assert threads.cap(environ) == ()
    assert threads.recorded(environ)["OMP_NUM_THREADS"] == "1 (capped)"


def test_explicit_threads_are_respected():
    environ = {"OMP_NUM_THREADS": "4", "NUMBA_NUM_THREADS": "3"}
    threads.cap(environ)
    assert environ["OMP_NUM_THREADS"] == "4"
    assert environ["NUMBA_NUM_THREADS"] == "3"
    # OpenBLAS and MKL read their own variable first: setting it would overrule the user's OMP_NUM_THREADS.
    assert "OPENBLAS_NUM_THREADS" not in environ
    assert "MKL_NUM_THREADS" not in environ
    assert environ["NUMEXPR_NUM_THREADS"] == "1"
