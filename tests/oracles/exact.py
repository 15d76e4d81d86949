"""Correctly rounded sums and means, by rational arithmetic."""

from collections.abc import Iterable
from fractions import Fraction

import numpy as np


def total(values: Iterable[float]) -> Fraction:
    """Return the exact sum of finite doubles."""
    return sum((Fraction(float(v)) for v in values), Fraction(0))


def rounded(value: Fraction) -> float:
    """Return the double nearest to a rational (ties to even: Python's own division is correctly rounded)."""
    return value.numerator / value.denominator


def mean(values: Iterable[float]) -> float:
    """Return the correctly rounded quotient of the exact sum by the number of values."""
    listed = [float(v) for v in values]
    return rounded(total(listed) / len(listed))


def mean_rows(stack: np.ndarray) -> np.ndarray:
    """Return the correctly rounded average over the first axis of float64[b, ...]."""
    flat = stack.reshape(len(stack), -1)
    return np.array([mean(column) for column in flat.T]).reshape(stack.shape[1:])
