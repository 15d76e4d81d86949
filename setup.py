"""Packages, the folder that becomes ``fald_hpc.kernels`` and the compiled leaves; metadata lives in pyproject.toml."""

from Cython.Build import cythonize
from setuptools import Extension, setup

# no flag for a processor: the variants choose themselves; nothing may be fused but what says so
LEAF = {
    "include_dirs": ["kernels"],
    "extra_compile_args": ["-O2", "-ffp-contract=off", "-Wno-psabi"],
    "libraries": ["m"],
}

EXTENSIONS = [
    Extension("fald_hpc.kernels._collectives", ["kernels/_collectives.pyx"]),
    Extension("fald_hpc.kernels._yardsticks", ["kernels/_yardsticks.pyx"]),
    Extension(
        "fald_hpc.kernels._exact_sum",
        ["kernels/_exact_sum.pyx", "kernels/exact_add.c"],
        depends=["kernels/exact_add.h", "kernels/exact_add_call.h", "kernels/vector_width.h"],
        **LEAF,
    ),
    Extension(
        "fald_hpc.kernels._quadratic",
        ["kernels/_quadratic.pyx", "kernels/quadratic_lanes.c"],
        depends=[
            f"kernels/{name}.h" for name in ("quadratic_lanes", "quadratic_lanes_call", "lanes_transpose", "vector_width")
        ],
        **LEAF,
    ),
]

setup(
    packages=[
        "fald_hpc",
        "fald_hpc.batch",
        "fald_hpc.batch.shell",
        "fald_hpc.bench",
        "fald_hpc.cli",
        "fald_hpc.config",
        "fald_hpc.data",
        "fald_hpc.drift",
        "fald_hpc.examples",
        "fald_hpc.experiments",
        "fald_hpc.kernels",
        "fald_hpc.metrics",
        "fald_hpc.potentials",
        "fald_hpc.report",
        "fald_hpc.samplers",
        "fald_hpc.scaling",
    ],
    package_dir={"fald_hpc.batch.shell": "slurm", "fald_hpc.kernels": "kernels"},
    package_data={"fald_hpc": ["py.typed"], "fald_hpc.batch.shell": ["*.sh"], "fald_hpc.examples": ["*.toml"]},
    ext_modules=cythonize(EXTENSIONS, language_level=3, build_dir="build"),
)
