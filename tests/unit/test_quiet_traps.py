"""Traps that show nothing while they spoil a run: generators, caches, timers, memory, output (users.md rows 22, 23, 45, 49, 53).

Steps beyond 2^31 and 2^32 are in ``statistical/test_late_steps.py``, ranks in ``faults/test_ranks.py``.
"""

import contextlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fald_hpc
from fald_hpc import config, execute, invariance
from fald_hpc.cli import progress

ENVIRON = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI_COMM", "SLURM"))}


def child(code, *arguments, **environ):
    """Run Python code in a process of its own; return what it prints."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    # not from the repository's folder, where Python would look first
    done = subprocess.run(command, env={**ENVIRON, **environ}, cwd="/", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_same_seed_twice_in_one_process(tmp_path):
    """Whatever other generators do in between, before and during the run."""
    import numba

    @numba.njit
    def consume():
        return np.random.random()

    def disturb(*_):
        np.random.seed(1)
        np.random.random(3)
        random.random()
        consume()

    cfg = config.load("titanic", ["run.steps=2000", "run.segment_steps=100"])
    execute.execute(cfg, tmp_path / "a")
    disturb()
    execute.execute(cfg, tmp_path / "b", progress=disturb)
    assert invariance.first_difference(tmp_path / "a", tmp_path / "b") is None


def test_neighbouring_seeds_and_chains_share_nothing():
    """A stream is keyed by (seed, purpose, chain, client): seed 1, chain 2 is not seed 2, chain 1."""
    clients = fald_hpc.Clients.from_gaussians([[0.0]], covariances=[[1.0]])
    sampler = fald_hpc.FALD(step_size=0.1, comm_prob=1.0)
    runs = [
        fald_hpc.sample(fald_hpc.Gaussian(), clients, sampler, steps=200, chains=4, seed=seed, init="mode").draws.values
        for seed in (1, 2, 3)
    ]
    paths = np.concatenate(runs)[:, :, 0]
    assert len({path.tobytes() for path in paths}) == 12
    # equal noise would show as a correlation near 1; 180 draws with lag-one correlation 0.9 have an ESS near 9
    assert np.abs(np.corrcoef(np.diff(paths, axis=1)) - np.eye(12)).max() < 0.5


def test_phases_add_up_to_the_wall_time(tmp_path):
    execute.execute(config.load("titanic", ["run.steps=20000"]), tmp_path / "run")
    seconds = json.loads((tmp_path / "run" / "manifest.json").read_text())["seconds"]
    total = seconds.pop("total")
    assert set(seconds) == {"setup", "compile", "start", "sample", "drift", "write"}
    # what lies between the last lap and the end takes microseconds; a tenth of a second allows for a busy machine
    assert sum(seconds.values()) == pytest.approx(total, abs=0.1)


MEMORY = """
import resource, sys
from fald_hpc import config, execute
execute.execute(config.load("gaussian", [f"run.steps={sys.argv[1]}", "run.chains=1", "output.draws_megabytes=0.1"]), sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_is_flat(tmp_path):
    """Ten times the steps, the same memory: moments are streamed and draws thinned under their cap."""
    few, many = (1024 * int(child(MEMORY, steps, tmp_path / str(steps))) for steps in (200_000, 2_000_000))
    # 360 000 more records of 4 numbers, kept, would be 11.5 MB; allocators and the compiler's own memory vary by about 2 MB
    assert many - few < 6_000_000


STALE = """
import sys
import numpy as np
from fald_hpc.kernels import coins, jit, noise
out = np.empty(8, np.uint8)
coins.fill(noise.key(1), coins.SHARED, 0, coins.threshold(0.5), coins.threshold(0.5), out)
print(jit.cache_folder().name, out.tolist(), sum(coins.fill.stats.cache_hits.values()))
"""


@pytest.fixture
def package(tmp_path):
    """Return the folder of a copy of the package, whose sources may be changed."""
    place = tmp_path / "site" / "fald_hpc"
    shutil.copytree(Path(fald_hpc.__file__).parent, place, ignore=shutil.ignore_patterns("__pycache__", "kernels"))
    from fald_hpc import kernels

    shutil.copytree(Path(kernels.__file__).parent, place / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    return place


def test_a_changed_source_is_never_served_stale(tmp_path, package):
    """A function of one file is compiled into another's: a change of it must reach what was cached before."""
    # Python's own bytecode goes by time and size alone: it would hide the change from everything that is tested here
    environ = {
        "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    first, second = (child(STALE, **environ).split(maxsplit=1) for _ in range(2))
    assert first[1].endswith("] 0\n")
    assert second[1].endswith("] 1\n"), "an unchanged source is served from the cache"
    assert first[0] == second[0]
    noise = package / "kernels" / "noise.py"
    text = noise.read_text()
    constant = "(np.uint64(purpose) << np.uint64(4))"
    assert constant in text, "where the purpose lies in the counter"
    # the same length, and the time of the file as it was: what a copy or a checkout may leave
    before = noise.stat()
    noise.write_text(text.replace(constant, "(np.uint64(purpose) << np.uint64(5))"))
    os.utime(noise, ns=(before.st_atime_ns, before.st_mtime_ns))
    third = child(STALE, **environ).split(maxsplit=1)
    assert third[0] != first[0]
    assert third[1] != first[1].replace("] 1", "] 0")
    assert third[1].endswith("] 0\n")


COLD = """
import numpy as np
from fald_hpc.kernels import coins
print(coins.tally(np.array([1, 2, 3, 0], np.uint8), True, True), sum(coins.tally.stats.cache_hits.values()))
"""


def test_sixteen_processes_share_one_cold_cache(tmp_path):
    """An array of serial jobs starts at once, and no rank of another compiles first for them; what they leave can be used."""
    environ = {**ENVIRON, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    processes = [
        subprocess.Popen([sys.executable, "-c", COLD], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(16)
    ]
    said = []
    for process in processes:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        assert err == ""
        said.append(out.rsplit(maxsplit=1))
    assert {counts for counts, _ in said} == {"(2, 2, 4, False)"}
    assert "0" in {hits for _, hits in said}, "the cache was cold"
    assert child(COLD, NUMBA_CACHE_DIR=environ["NUMBA_CACHE_DIR"]).split() == ["(2,", "2,", "4,", "False)", "1"]


class Full(io.StringIO):
    """A log on a disk that is full."""

    def write(self, text):
        raise OSError(28, "No space left on device")


def test_a_log_that_takes_no_more_does_not_end_a_run(tmp_path):
    report = progress.Lines(Full(), ["1 rank"], interval=0.0)
    run = execute.execute(config.load("gaussian", ["run.steps=500"]), tmp_path / "run", progress=report)
    assert run.manifest["state"] == "finished"


def fald(*arguments, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "fald_hpc", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more
    )


def test_a_reader_that_has_seen_enough_is_no_traceback():
    """``fald examples | head -1``: the pipe is closed before anything is written."""
    process = fald("examples", env=ENVIRON)
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(60) == 1
    assert err == b""
    with contextlib.suppress(OSError):
        process.stderr.close()


def test_a_terminal_without_greek_letters_is_no_traceback():
    process = fald("doctor", env={**ENVIRON, "PYTHONIOENCODING": "ascii"})
    out, err = process.communicate(timeout=120)
    assert process.returncode in (0, 1)
    assert b"Traceback" not in err
    assert b"\\xb5s each" in out
