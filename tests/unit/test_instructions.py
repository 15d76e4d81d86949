"""Instructions of the C leaves, counted by callgrind: the same on every run, whatever else the machine does.

Valgrind knows no AVX-512, so the leaves take their AVX2 path there. The counts are per multiply-add of a step, per
normal, per row and per step of a client, everything that the leaf does included.
"""

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

LEAF = Path(__file__).parents[2] / "kernels"
COMPILER = shutil.which("gcc")
VALGRIND = shutil.which("valgrind")
pytestmark = [
    pytest.mark.skipif(not (LEAF / "quadratic_lanes.c").exists(), reason="needs the sources, not an installed package"),
    pytest.mark.skipif(VALGRIND is None, reason="valgrind is not installed"),
    pytest.mark.skipif(COMPILER is None, reason="gcc is not installed"),
    pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the bounds are for AVX2"),
]

LANES, D = 8, 20

DRIVER = f"""
#include <stdint.h>
#include <stdlib.h>
#include "quadratic_lanes_call.h"
#define D {D}
static double moves[D * D * LANES], mean[D * LANES], common[1000 * D * LANES], base[1000 * D * LANES], x[D * LANES];
static double scratch[15 * D * LANES + 8];
int main(int argc, char **argv)
{{
    const int64_t by_clients = atoi(argv[1]), t = atoi(argv[2]);
    const int64_t clients = by_clients ? LANES : 1, chains = by_clients ? 1 : LANES;
    for (int j = 0; j < D * D * LANES; ++j) moves[j] = -0.001;
    /* no reference; common noise only */
    fald_quadratic_steps(moves, mean, 0, 0, common, 0, 0, 0, base, x, 0, 0, 0, scratch, 0, clients, chains, D, t, chains * D, 0,
                         0, 0, 46, by_clients | STORE, 0.1, 0.1, 0.0);
    return x[0] != x[0];
}}
"""


NORMALS = f"""
#include <stdint.h>
#include <stdlib.h>
#include "normals_call.h"
static double out[20000 * {D}];
int main(int argc, char **argv)
{{
    fald_normals(1, 2, 3, 0, atoi(argv[1]), {D}, out, 0);
    return out[0] != out[0];
}}
"""

ROWS = """
#include <stdint.h>
#include <stdlib.h>
#include "short_rows_call.h"
#define N 20000
static double columns[7 * N], kept[N], y[4] = {0.1, -0.2, 0.3, 0.4}, out[4];
int main(int argc, char **argv)
{
    /* logistic regression on rows of four zeros */
    fald_short_rows(columns, N, atoi(argv[1]), 4, 1, y, kept, out, 0);
    return out[0] != out[0];
}
"""

STEPS = """
#include <stdint.h>
#include <stdlib.h>
#include "short_steps_call.h"
#define T 20000
static double packed[100 * 8], kept[100], common[T * 4], y[4], shift[4], x[8 * 4], prior[8];
static int64_t rows[T * 8], n_rows[8], batch[8];
int main(int argc, char **argv)
{
    /* logistic regression with a reference, one row of four features a step, eight clients; common noise only */
    const int64_t t = atoi(argv[1]);
    for (int64_t i = 0; i < t * 8; ++i) rows[i] = i % 100;
    for (int i = 0; i < 8; ++i) n_rows[i] = 50, batch[i] = 1;
    fald_short_steps(packed, kept, rows, common, 0, y, shift, x, prior, n_rows, batch, T, T, 4, 4, t, 8, 1, 1 | 4, .1, .1, 0.0);
    return x[0] != x[0];
}
"""


def instructions(program: Path, *arguments: str) -> int:
    """Return the instructions of a run."""
    done = subprocess.run(
        [VALGRIND, "--tool=callgrind", "--callgrind-out-file=/dev/null", str(program), *arguments],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def compiled(place, name, driver):
    """Return a leaf with a driver, compiled as setup.py does."""
    (place / f"{name}.driver.c").write_text(driver)
    options = ["-O2", "-ffp-contract=off", "-Wno-psabi", f"-I{LEAF}"]
    sources = [str(place / f"{name}.driver.c"), str(LEAF / f"{name}.c")]
    subprocess.run([COMPILER, *options, "-o", str(place / name), *sources, "-lm"], check=True)
    return place / name


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Return the leaf of dense quadratics."""
    return compiled(tmp_path_factory.mktemp("leaf"), "quadratic_lanes", DRIVER)


def per_multiply_add(program, by_clients):
    """Return instructions of a multiply-add; two lengths, so that the start of the process drops out."""
    few, many = (instructions(program, str(by_clients), str(t)) for t in (10, 110))
    return (many - few) / (100 * LANES * D * D)


@pytest.mark.parametrize("by_clients", [0, 1])
def test_instructions_of_a_multiply_add(program, by_clients):
    """Measured with gcc 12: 1.00 with chains in the lanes, 0.59 with clients; without AVX2 and its multiply-adds 13.4.

    0.25 is the least there can be, four multiply-adds an instruction and nothing else.
    """
    assert 0.25 <= per_multiply_add(program, by_clients) <= 1.4


def test_instructions_of_a_normal(tmp_path):
    """Measured with gcc 12: 26.0; without AVX2 and its multiply-adds 269."""
    program = compiled(tmp_path, "normals", NORMALS)
    few, many = (instructions(program, str(t)) for t in (100, 1100))
    assert 10 <= (many - few) / (1000 * D) <= 40


def test_instructions_of_a_short_row(tmp_path):
    """Measured with gcc 12: 18.8 for a logistic row of four features; without AVX2 and its multiply-adds 259."""
    program = compiled(tmp_path, "short_rows", ROWS)
    few, many = (instructions(program, str(n)) for n in (1600, 17600))
    assert 8 <= (many - few) / 16000 <= 30


def test_instructions_of_a_short_step(tmp_path):
    """Measured with gcc 12: 96 for a client's step on a logistic row of four features, numbering the row included.

    Without AVX2 and its multiply-adds 485.
    """
    program = compiled(tmp_path, "short_steps", STEPS)
    few, many = (instructions(program, str(t)) for t in (1000, 11000))
    assert 40 <= (many - few) / (10000 * 8) <= 140
