"""The README's example prints what the README says, serially and under mpiexec."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fald_hpc import launch

README = Path(__file__).parents[2] / "README.md"
pytestmark = pytest.mark.skipif(not README.exists(), reason="needs the sources, not an installed package")


def blocks(language):
    text = README.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def printed(*prefix, ranks=1, place):
    """Return what the example prints when it is run as a file."""
    script = place / "hospitals.py"
    script.write_text(blocks("python")[0], encoding="utf-8")
    environ = launch.clean(os.environ)
    environ |= launch.permissions(environ, ranks, len(os.sched_getaffinity(0)), os.geteuid() == 0)
    done = subprocess.run(
        [*prefix, sys.executable, str(script)], cwd=place, env=environ, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_prints_its_result(tmp_path):
    assert printed(place=tmp_path) == blocks("text")[0]


def test_the_same_under_mpiexec(tmp_path):
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.is_file() else shutil.which("mpiexec")
    if mpiexec is None:
        pytest.skip("no mpiexec beside this Python or on PATH")
    lines = printed(mpiexec, "-n", "3", ranks=3, place=tmp_path).splitlines()
    others = [line for line in lines if line == "(the results are on rank 0)"]
    assert len(others) == 2
    assert [line for line in lines if line not in others] == blocks("text")[0].splitlines()


def test_the_example_is_short():
    code = [line for line in blocks("python")[0].splitlines() if line.strip()]
    assert len(code) <= 12


def test_the_users_own_model_runs(tmp_path):
    import numpy as np

    import fald_hpc

    names = {"np": np, "row_potential": fald_hpc.row_potential}
    module = tmp_path / "model.py"
    module.write_text(blocks("python")[1], encoding="utf-8")
    exec(compile(module.read_text(), str(module), "exec"), names)
    x = np.linspace(-1.0, 1.0, 60)
    clients = fald_hpc.Clients.from_arrays([(x[:30, None], 1.0 + 2.0 * x[:30]), (x[30:, None], 1.0 + 2.0 * x[30:])])
    run = fald_hpc.sample(names["laplace_like"], clients, fald_hpc.VRFALDStar(step_size=0.01), steps=20_000)
    # the data lie on the line 1 + 2 x; the posterior is symmetric about it up to the weak prior
    assert np.all(np.abs(run.mean - [1.0, 2.0]) < 0.15)


def test_every_file_that_is_named_exists():
    text = README.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (README.parent / target).exists(), target
