"""A guard against losing speed that cannot be flaky: ratios within one process, taken in turns, with wide margins.

No absolute time is looked at. Best of many short turns: load on the machine makes some turns slow, never all of them.
What can be counted is counted: messages and rows here, instructions of the C leaf in test_instructions.py.
"""

import os
import platform

import numpy as np
import pytest

from fald_hpc.bench import logistics, quadratics
from fald_hpc.bench.spread import in_turns, timed
from fald_hpc.kernels import noise, normals
from fald_hpc.kernels.jit import jit

pytestmark = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="speed needs compiled kernels")
on_x86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the margin was measured on x86-64")

TURNS = 40


def best(measurements):
    """Return the best of many turns of each."""
    return {name: spread.best for name, spread in in_turns(measurements, TURNS).items()}


@on_x86
def test_normals_are_faster_than_numpys():
    """Measured: 4 times as fast (W1), 1.9 times before its loops were vectorised; AVX2 alone is enough for 2."""
    out, key, random = np.empty((128, 20)), noise.key(1), np.random.default_rng(1)
    found = best(
        {
            "ours": lambda: timed(lambda: normals.fill_normals(key, noise.COMMON, 0, 0, 0, out)),
            "numpy": lambda: timed(lambda: random.standard_normal(out=out)),
        }
    )
    assert found["numpy"] / found["ours"] >= 1.5


def test_a_message_carries_all_chains():
    """One message an averaging whatever the number of chains: counted, not timed."""
    made = []
    for chains in (1, 16):
        case = quadratics.case("fald", 2, chains, 1.0)
        case.run(2000)
        made.append(case.messages["made"])
        assert case.messages["made"] == case.messages["predicted"]
        assert case.messages["repeated"] <= 2
    assert made[0] == made[1]
    # averagings are Binomial(2000, 0.1): 200 with a standard deviation of 13.4
    assert abs(made[0] - 200) <= 5 * 13.5


def test_a_step_of_vr_fald_star_touches_the_rows_of_fald():
    """Kept residuals: the reference costs no second pass over a minibatch (counted, not timed)."""
    cases = logistics.cases()
    touched = {}
    for name in ("fald", "vr_fald_star without refreshes"):
        cases[name].run(200)
        touched[name] = cases[name].messages["rows_touched"]
    assert touched["fald"] == 200 * logistics.CLIENTS * logistics.BATCH
    at_start = logistics.CLIENTS * logistics.ROWS  # the first shift is a full gradient
    assert touched["vr_fald_star without refreshes"] - touched["fald"] in (0, at_start)


def test_many_chains_cost_no_more_each_than_one():
    """Measured: 16 chains take less than 1.1 times the time of one chain, per chain; a margin of two and a half."""
    cases = {n: quadratics.case("fald", 20, n, 1.0) for n in (1, 16)}
    found = best(
        {str(n): lambda case=case, n=n: case.per_chain_step(max(1, 320 // n)) for n, case in cases.items()}
    )
    assert found["16"] / found["1"] <= 2.5


def test_a_constant_argument_compiles_nothing_anew():
    @jit(cache=False, internal=True)
    def inner(x, n):
        return x + n

    @jit(cache=False)
    def outer(x):
        return inner(x, 1) + inner(x, 2) + inner(x, n=3)

    assert outer(1.0) == 9.0
    assert len(inner.signatures) == 1
