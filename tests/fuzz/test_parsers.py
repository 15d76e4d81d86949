"""No bytes show a user a traceback, and none hang: a short run with a fixed seed here, atheris in ``make test-long``.

A finding is any exception but the program's own for a user's mistake, a warning of a library, or no answer in time. Inputs
that were findings once are in :mod:`fuzz.test_found`.
"""

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import mutate, targets

INPUTS = {"rows.csv": 500, "study.toml": 500}
"""Mutated files of each kind, where not a thousand: about two seconds each."""

SECONDS = float(os.environ.get("FALD_FUZZ_SECONDS", "60"))


@pytest.mark.parametrize("name", targets.NAMES)
def test_valid_files_are_accepted(name):
    target = targets.targets()[name]
    assert all(targets.one(target, seed) for seed in target.seeds)


@pytest.mark.parametrize("name", targets.NAMES)
def test_mutated_files(name):
    target, chance = targets.targets()[name], random.Random(f"fald {name}")
    accepted = 0
    number = INPUTS.get(name, 1000)
    for _ in range(number):
        content = mutate.mutated(chance.choice(target.seeds), target.words, chance)
        try:
            accepted += targets.one(target, content)
        except (Exception, targets.Hang) as error:
            pytest.fail(f"{type(error).__name__}: {error}\nfrom {content!r}")
    # a target that refuses everything would test nothing behind its first check
    assert accepted > number / 100
    # a sign of life that cannot be read is none: nothing is refused
    assert accepted < number or name == "alive"


@pytest.mark.long
@pytest.mark.parametrize("name", targets.NAMES)
def test_atheris(name, tmp_path, capsys):
    """Guided by coverage of the parsers, FALD_FUZZ_SECONDS each (60)."""
    pytest.importorskip("atheris", reason="atheris has wheels for Linux on x86-64 only; the mutated files above run everywhere")
    runner = Path(__file__).with_name("run.py")
    done = subprocess.run(
        [sys.executable, runner, name, str(SECONDS), tmp_path], capture_output=True, text=True, timeout=SECONDS + 120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (runs,) = re.findall(r"^Done (\d+) runs in", done.stdout + done.stderr, flags=re.MULTILINE)
    with capsys.disabled():
        print(f"\n{name}: {runs} inputs in {SECONDS:.0f} s, no finding")
