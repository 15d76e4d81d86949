"""docs/reliability.md names tests that exist, and every fault test is named there."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "reliability.md"
pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="needs the sources, not an installed package")


def rows():
    """Return (symptom, tests) of the table of known traps."""
    text = PAGE.read_text(encoding="utf-8").split("## Known traps\n")[1].split("\n## ")[0]
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("| ")]
    assert all(len(row) == 3 for row in cells)
    return [(row[0].strip(), re.findall(r"`([^`]+)`", row[2])) for row in cells[1:]]


def functions(file):
    """Return the names of the test functions of a file."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


ROWS = rows() if PAGE.exists() else []


@pytest.mark.parametrize(("symptom", "named"), ROWS, ids=[symptom[:40] for symptom, _ in ROWS])
def test_every_trap_names_tests_that_exist(symptom, named):
    assert named, "a trap without a test"
    for name in named:
        file, _, function = name.partition("::")
        assert (TESTS / file).is_file(), name
        assert function in functions(file), name


def test_every_fault_test_is_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    for file in sorted((TESTS / "faults").glob("test_*.py")):
        assert f"faults/{file.name}::" in text, file.name


def test_the_exit_codes_are_those_of_the_program():
    from fald_hpc import watch
    from fald_hpc.cli import main, run

    text = PAGE.read_text(encoding="utf-8").split("## Exit codes\n")[1].split("\n## ")[0]
    found = [int(code) for code in re.findall(r"^\| (\d+) \|", text, flags=re.MULTILINE)]
    assert found == [0, run.FAILED, main.USER_MISTAKE, run.TRY_AGAIN, watch.INTERRUPTED]
    assert main.FAILED == run.FAILED
    assert main.INTERRUPTED == watch.INTERRUPTED
