"""The same samplers as plain Python (``NUMBA_DISABLE_JIT=1``): both samplers and three potentials, to tolerance.

Without compilation full gradients of regressions are summed in another order, so the paths agree to rounding.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from fald_hpc import FALD, VRFALDStar
from problems import cases, sampling
found = {}
for name in ("gaussian", "logistic", "row-potential"):
    case = cases.case(name)
    batch = 2 if case.potential.takes_rows else "full"
    for sampler in (FALD, VRFALDStar):
        settings = sampler(step_size=case.step_size, comm_prob=0.2, noise_sharing=0.3, batch_size=batch)
        run = sampling.run(case, settings, 120, chains=2, seed=4, burn_in=0, init=np.ones(case.d))
        found[f"{name} {sampler.name}"] = np.array(sampling.draws(run))
        found[f"{name} {sampler.name} mean"] = run.mean
np.savez(sys.argv[2], **found)
"""


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"), reason="compares with compiled code")
def test_paths_with_and_without_compilation_agree(tmp_path):
    found = []
    for disabled in ("0", "1"):
        out = tmp_path / f"jit-{disabled}.npz"
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(Path(__file__).parents[1]), str(out)],
            env={**os.environ, "NUMBA_DISABLE_JIT": disabled},
            check=True,
            timeout=300,
        )
        with np.load(out) as arrays:
            found.append({name: arrays[name] for name in arrays.files})
    compiled, plain = found
    assert compiled.keys() == plain.keys()
    for name, expected in compiled.items():
        assert len(expected) > 0
        assert plain[name] == pytest.approx(expected, rel=1e-10, abs=1e-10), name


FUSED = """
import math
import random
from fractions import Fraction
from fald_hpc.kernels.jit import fma
random.seed(1)
draw = lambda: random.choice((-1.0, 1.0)) * math.ldexp(random.random(), random.randint(-120, 120))
for _ in range(2000):
    a, b = draw(), draw()
    for c in (draw(), -a * b, -a * b * (1 + 2.0**-52), 0.0):
        assert fma(a, b, c) == float(Fraction(a) * Fraction(b) + Fraction(c)), (a, b, c)
assert fma(0.0, 5.0, 3.0) == 3.0 and fma(math.inf, 1.0, 3.0) == math.inf and math.isnan(fma(math.nan, 1.0, 1.0))
assert fma(1e200, 1e200, 0.0) == math.inf
"""


def test_a_fused_multiply_add_rounds_once_without_compilation_too():
    """Against exact fractions, with sums that cancel."""
    subprocess.run([sys.executable, "-c", FUSED], env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, check=True, timeout=300)
