"""Products of four rows at once: the bits of each row alone, whatever lies beside it."""

import numpy as np
import pytest

from fald_hpc.kernels import glm
from fald_hpc.kernels.jit import jit


@jit(cache=False)
def four(rows, a, b, c, d, x, out):
    """Write four predictors to out: float64[4]."""
    out[0], out[1], out[2], out[3] = glm.four_predictors(rows, a, b, c, d, x)


@jit(cache=False)
def one(rows, a, x, out):
    """Write one predictor to out: float64[1]."""
    out[0] = glm.predictor(rows, a, x)


@pytest.mark.parametrize("p", [1, 2, 15, 16, 17, 23, 24, 50, 784, 785])
def test_four_rows_at_once_equal_each_row_alone(p):
    rng = np.random.default_rng(p)
    rows, x = rng.normal(size=(20, p)), rng.normal(size=p)
    together, alone = np.empty(4), np.empty(1)
    for members in ((3, 0, 19, 7), (5, 5, 5, 5), (19, 18, 17, 16)):
        four(rows, *members, x, together)
        for m, row in enumerate(members):
            one(rows, row, x, alone)
            assert together[m] == alone[0]
            # the error of p fused multiply-adds
            assert abs(alone[0] - rows[row] @ x) <= 2 * p * 2.0**-53 * np.abs(rows[row] * x).sum()


@pytest.mark.parametrize("p", [1, 16, 23, 785])
def test_four_rows_are_added_one_after_the_other(p):
    rng = np.random.default_rng(p)
    rows, out = rng.normal(size=(9, p)), rng.normal(size=p)
    expected = out.copy()
    glm.add_four_rows(rows, 2, 8, 0, 2, 0.3, -1.7, 2.0, 1e-9, out)
    for row, factor in ((2, 0.3), (8, -1.7), (0, 2.0), (2, 1e-9)):
        expected += factor * rows[row]
    np.testing.assert_allclose(out, expected, rtol=0, atol=4e-15)
