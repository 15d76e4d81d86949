"""Packages, the folder that becomes ``fald_hpc.kernels`` and the compiled leaves; metadata lives in pyproject.toml."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

# no flag for a processor: the variants choose themselves; nothing may be fused but what says so
LEAF = {
    "include_dirs": ["kernels"],
    "extra_compile_args": ["-O2", "-ffp-contract=off", "-Wno-psabi"],
    "libraries": ["m"],
}

HEADERS = sorted(str(path) for path in Path("kernels").glob("*.h"))


def leaf(name: str, *sources: str) -> Extension:
    """Return an extension that hands out the addresses of some C files' functions."""
    files = [f"kernels/{name}.pyx", *(f"kernels/{source}.c" for source in sources)]
    return Extension(f"fald_hpc.kernels.{name}", files, depends=HEADERS, **LEAF)


EXTENSIONS = [
    Extension("fald_hpc.kernels._collectives", ["kernels/_collectives.pyx"]),
    Extension("fald_hpc.kernels._yardsticks", ["kernels/_yardsticks.pyx"]),
    leaf("_exact_sum", "exact_add", "exact_mean"),
    leaf("_normals", "normals"),
    leaf("_quadratic", "quadratic_lanes"),
    leaf("_short_rows", "short_rows"),
    leaf("_short_steps", "short_steps"),
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
