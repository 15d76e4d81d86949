"""The structure of the repository, held by parsing its imports: one way, one door each, one idea per file."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "setup.py").exists(), reason="needs the sources, not an installed package")

# Imports that a run must not pay for on every rank: only inside functions.
HEAVY = {"arviz", "matplotlib", "pandas", "pyarrow", "rich", "xarray"}


def sources() -> dict[str, Path]:
    """Return all modules of the package and of the scripts by their import names."""
    found = {}
    for folder, prefix in (("fald_hpc", "fald_hpc"), ("kernels", "fald_hpc.kernels"), ("mpi_jobs", "mpi_jobs")):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = [prefix, *path.relative_to(ROOT / folder).with_suffix("").parts]
            found[".".join(part for part in parts if part != "__init__")] = path
    return found


MODULES = sources()


def imports(path: Path, *, top_level_only: bool = False) -> set[str]:
    """Return the absolute names that a file imports: modules, and what is taken from them as ``module.name``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = _at_import_time(tree) if top_level_only else ast.walk(tree)
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names if names <= set(MODULES) else {node.module, *names}
    return found


def _at_import_time(tree: ast.AST):
    """Yield the nodes that run when a module is imported: no function bodies, nothing for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from _at_import_time(node)


def ours(names: set[str]) -> set[str]:
    """Return those names that are modules of this repository."""
    return {name for name in names if name in MODULES}


def within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


@pytest.mark.parametrize("name", [name for name in MODULES if within(name, "fald_hpc.kernels")])
def test_kernels_know_only_kernels(name):
    allowed = {"numpy", "numba", "llvmlite", "fald_hpc"}
    strangers = {found for found in imports(MODULES[name]) if within(found, "fald_hpc")}
    assert all(within(found, "fald_hpc.kernels") for found in strangers), strangers
    roots = {found.split(".")[0] for found in imports(MODULES[name])}
    assert roots <= allowed | set(sys.stdlib_module_names), roots


@pytest.mark.parametrize("name", [name for name in MODULES if within(name, "fald_hpc.potentials", "fald_hpc.samplers")])
def test_potentials_and_samplers_know_nothing_of_runs(name):
    above = ("fald_hpc.cli", "fald_hpc.run", "fald_hpc.execute", "fald_hpc.comm", "fald_hpc.storage", "fald_hpc.config")
    assert not [found for found in imports(MODULES[name]) if within(found, *above, "fald_hpc.checkpoint")]


@pytest.mark.parametrize("name", list(MODULES))
def test_nothing_imports_the_command_line_or_the_scripts(name):
    if within(name, "fald_hpc.cli", "fald_hpc.__main__"):
        return
    assert not [found for found in imports(MODULES[name]) if within(found, "fald_hpc.cli", "mpi_jobs")]


def test_no_cycles():
    graph = {name: ours(imports(path, top_level_only=True)) - {name} for name, path in MODULES.items()}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail, name))
        if name not in done:
            for target in sorted(graph[name]):
                visit(target, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_one_door_for_mpi():
    users = {name for name, path in MODULES.items() if any(within(found, "mpi4py") for found in imports(path))}
    assert users == {"fald_hpc.comm"}


def test_messages_are_buffers():
    """mpi4py pickles in its methods with small letters, which are slow, and fail when large (users.md row 51)."""
    pickled = {"send", "isend", "ssend", "bsend", "recv", "irecv", "sendrecv", "bcast", "scatter", "gather", "allgather"}
    pickled |= {"alltoall", "reduce", "allreduce", "scan", "exscan"}
    calls = [
        (ast.unparse(node.func.value), node.func.attr)
        for node in ast.walk(ast.parse(MODULES["fald_hpc.comm"].read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    theirs = {attribute for value, attribute in calls if value in ("self._comm", "self._alarm", "communicator", "part", "node")}
    assert {"Allreduce", "Bcast", "Gather", "Send", "Recv"} <= theirs
    assert not theirs & pickled
    assert not imports(MODULES["fald_hpc.comm"]) & {"pickle", "mpi4py.util.pkl5", "cloudpickle", "dill"}


@pytest.mark.parametrize("name", list(MODULES))
def test_one_door_for_randomness(name):
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    doors = ("random", "numpy.random", "randomgen", "secrets", "scipy.stats")
    assert not [found for found in imports(MODULES[name]) if within(found, *doors)]
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not {text for text in used if text.startswith(("np.random", "numpy.random", "os.urandom"))}


@pytest.mark.parametrize("name", list(MODULES))
def test_one_door_for_compile_flags(name):
    if name == "fald_hpc.kernels.jit":
        return
    assert not imports(MODULES[name]) & {"numba.njit", "numba.jit", "numba.vectorize", "numba.guvectorize"}
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    words = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    assert not words & {"fastmath", "parallel", "error_model"}
    attributes = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not attributes & {"numba.njit", "numba.jit"}


@pytest.mark.parametrize("name", list(MODULES))
def test_heavy_libraries_only_inside_functions(name):
    roots = {found.split(".")[0] for found in imports(MODULES[name], top_level_only=True)}
    assert not roots & HEAVY


def test_files_are_small_and_named_after_an_idea():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES.values()}
    assert not {path for path in lengths if path.stem in ("utils", "util", "helpers", "misc", "common")}
    ordered = sorted(lengths.values())
    assert ordered[len(ordered) // 2] <= 150
    assert len([path for path, length in lengths.items() if length > 300]) <= 5
    assert ordered[-1] <= 400
