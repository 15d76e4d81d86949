"""The C leaves give the same bits with other compilers and on another processor (emulated), for every width of vectors."""

import shutil
import subprocess
from pathlib import Path

import pytest

LEAVES = Path(__file__).parents[2] / "kernels"
COMPILERS = {
    "gcc": ("gcc", []),
    "clang": ("clang", []),
    "gcc for aarch64": ("aarch64-linux-gnu-gcc", ["qemu-aarch64-static"]),
}
OPTIONS = ["-O2", "-ffp-contract=off", "-Wno-psabi", "-Wall", "-Wextra", "-Werror"]
"""As in setup.py, and no warning."""

SOURCES = ["normals.c", "short_rows.c", "short_steps.c", "exact_add.c", "exact_mean.c", "quadratic_lanes.c"]

pytestmark = pytest.mark.skipif(not (LEAVES / "normals.c").exists(), reason="needs the sources, not an installed package")

DRIVER = """
#include <stdio.h>
#include <string.h>
#include "exact_add_call.h"
#include "exact_mean_call.h"
#include "normals_call.h"
#include "quadratic_lanes_call.h"
#include "short_rows_call.h"
#include "short_steps_call.h"
#define N 60000
static uint64_t hash;
static double x[N], out[N], kept[128], bins[128], sums[1024], scratch[4096], base[1024], keep[2048];
static double offsets[1024];
static int64_t rows[2 * 3 * 4 * 8], n_rows[13], batch[13];

static void mix(const void *from, size_t n)
{
    for (const unsigned char *byte = from; n > 0; --n) hash = (hash ^ *byte++) * 1099511628211u;
}

int main(void)
{
    const int widths[] = {0, 2, 4, 8};
    uint64_t c2[8], c3[8];
    for (int i = 0; i < 8; ++i) {
        c2[i] = 77 * i;
        c3[i] = 4096 + i;
    }
    fald_normals(3, 1, 1, 0, N / 50, 50, x, 2);
    for (int w = 0; w < 4; ++w) {
        const int width = widths[w];
        hash = 14695981039346656037u;
        for (int d = 1; d < 30; d += 3) {
            fald_normals(99, 5, 6, 4294967290u, 37, d, out, width);
            mix(out, 37 * d * sizeof *out);
            fald_normals_lanes(99, c2, c3, 7, 11, d, out, width);
            mix(out, 11 * 8 * d * sizeof *out);
        }
        for (int d = 1; d < 16; ++d)
            for (int family = 0; family < 3; ++family) {
                memset(out, 0, sizeof out);
                fald_short_rows(x, 104, 101, d, family, x + 5000, kept, out, width);
                mix(kept, 101 * sizeof *kept);
                mix(out, d * sizeof *out);
            }
        for (int i = 0; i < 2 * 3 * 4 * 8; ++i) rows[i] = i * 37 % 100;
        for (int d = 1; d < 16; ++d)
            for (int kind = 0; kind < 12; ++kind) {
                /* families, with a reference and without, one row and several; every third client has a row less */
                const int places = kind < 6 ? 1 : 4, family = kind % 3, reference = kind / 3 % 2;
                for (int i = 0; i < 13; ++i) {
                    n_rows[i] = 20 + i;
                    batch[i] = places - i % 3 / 2;
                }
                memcpy(out, x + 30000, 13 * d * sizeof *out);
                fald_short_steps(x, x + 7000, rows, x + 8000, x + 9000, x + 12000, x + 12100, out, x + 12200, n_rows, batch,
                                 3 * places, 3, d, d, 3, 13, places, family | reference << 2 | width << 8, .001, .2, .3);
                mix(out, 13 * d * sizeof *out);
            }
        for (int d = 1; d < 24; ++d) {
            /* values of order one, two grids below 2 and three below 2^60 */
            for (int window = 1; window <= 60; window += 59) {
                memset(bins, 0, sizeof bins);
                const int64_t outside = fald_exact_add(x, 33, d, d, window, 46, bins, width);
                mix(bins, 3 * d * sizeof *bins);
                mix(&outside, sizeof outside);
            }
            fald_exact_mean(bins, d, 33, out, width);
            mix(out, d * sizeof *out);
        }
        for (int d = 1; d < 12; ++d)
            for (int by_clients = 0; by_clients < 2; ++by_clients) {
                const int64_t clients = by_clients ? 7 : 3, chains = by_clients ? 1 : 13;
                const int64_t window[] = {4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 60, 60, 60, 60};
                const int64_t flags = by_clients | STORE | ADD | width << 10;
                memcpy(out, x + 20000, 40 * d * sizeof *out);
                memset(sums, 0, sizeof sums);
                fald_quadratic_steps(x, x + 3000, x + 4000, x + 4200, x + 5000, x + 9000, x + 4400, 0, base, out, 0, keep, sums,
                                     scratch, window, clients, chains, d, 3, chains * d, 2 * d * LANES, 3 * d * LANES,
                                     3 * d * LANES, 46, flags | HAS_REFERENCE | KEEP | AHEAD, .1, .2, .3);
                mix(out, clients * chains * d * sizeof *out);
                /* the same gap goes on from there, stored and kept */
                fald_quadratic_steps(x, x + 3000, x + 4000, x + 4200, x + 5000, x + 9000, 0, keep, base, out, offsets,
                                     keep + 1024, sums, scratch, window, clients, chains, d, 2, chains * d, 2 * d * LANES,
                                     3 * d * LANES, 3 * d * LANES, 46,
                                     flags | HAS_REFERENCE | FROM_KEPT | KEEP | GOES_ON, .1, .2, .3);
                mix(out, clients * chains * d * sizeof *out);
                mix(offsets, clients * chains * d * sizeof *offsets);
                fald_quadratic_gradients(x, x + 3000, x + 4000, out, sums, scratch, window, clients, chains, d, chains * d, 46,
                                         flags);
                mix(out, clients * chains * d * sizeof *out);
                for (int g = 0; g < (by_clients ? 1 : 2); ++g) {
                    const int64_t outside = fald_quadratic_sums(
                        sums + g * (3 * d + 1) * LANES, window, by_clients ? 1 : g ? 5 : 8, d, 3 * d, flags, out);
                    mix(&outside, sizeof outside);
                    mix(out, 3 * d * (by_clients ? 1 : g ? 5 : 8) * sizeof *out);
                }
            }
        printf("%016llx\\n", (unsigned long long)hash);
    }
    return 0;
}
"""

# of the driver's output, the same for every width; a change of it is a change of results (CHANGELOG)
BITS = "756e22e448572c93"


@pytest.mark.parametrize("name", COMPILERS)
def test_every_compiler_and_processor_gives_these_bits(name, tmp_path):
    compiler, emulator = COMPILERS[name]
    for program in (compiler, *emulator):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    static = ["-static"] if emulator else []
    (tmp_path / "empty.c").write_text("int main(void) { return 0; }\n")
    empty = [compiler, *static, "-o", str(tmp_path / "empty"), str(tmp_path / "empty.c"), "-lm"]
    if subprocess.run(empty, capture_output=True).returncode != 0:
        pytest.skip(f"{compiler} builds no programs: its C library is missing")
    (tmp_path / "driver.c").write_text(DRIVER)
    sources = [str(tmp_path / "driver.c"), *(str(LEAVES / source) for source in SOURCES)]
    subprocess.run([compiler, *OPTIONS, *static, f"-I{LEAVES}", "-o", str(tmp_path / "bits"), *sources, "-lm"], check=True)
    done = subprocess.run([*emulator, str(tmp_path / "bits")], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.split() == [BITS] * 4
