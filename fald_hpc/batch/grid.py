"""A grid of parameters for an array job: all combinations of ``key=a,b,c`` texts, the last key running fastest."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from fald_hpc.errors import UserError

MOST_POINTS = 1000
"""Slurm's own default limit of an array's size (MaxArraySize)."""


@dataclass(frozen=True)
class Point:
    """One combination.

    Attributes
    ----------
    name : str
        For folders and logs: ``comm_prob=0.1,name=fald``.
    overrides : tuple of str
        As ``fald run --set`` takes them.
    """

    name: str
    overrides: tuple[str, ...]


def points(texts: Sequence[str]) -> list[Point]:
    """Return the combinations of a grid; without texts there is none.

    Parameters
    ----------
    texts : sequence of str
        ``"sampler.comm_prob=0.05,0.1,0.2"``, one a key.

    Raises
    ------
    UserError
        A text is no key with values, a key or value occurs twice, or there are too many combinations.
    """
    axes: dict[str, list[str]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        found = [value.strip() for value in values.split(",")]
        if not equals or not re.fullmatch(r"[\w.]+", key) or not all(re.fullmatch(r"[\w.+-]+", v) for v in found):
            raise UserError(f"--array {text}: give a key and its values as sampler.comm_prob=0.05,0.1,0.2")
        if key in axes:
            raise UserError(f"--array {text}: {key} is given twice; put all its values into one --array")
        if len(set(found)) < len(found):
            raise UserError(f"--array {text}: a value occurs twice, and two jobs would share a folder")
        axes[key] = found
    if not axes:
        return []
    total = 1
    for values_of_key in axes.values():
        total *= len(values_of_key)
    if total > MOST_POINTS:
        raise UserError(f"--array: {total} combinations, but an array job takes {MOST_POINTS}; give fewer values")
    short = _short(list(axes))
    return [
        Point(
            ",".join(f"{short[key]}={value}" for key, value in zip(axes, values, strict=True)),
            tuple(f"{key}={value}" for key, value in zip(axes, values, strict=True)),
        )
        for values in itertools.product(*axes.values())
    ]


def _short(keys: Sequence[str]) -> dict[str, str]:
    """Return the last part of every key, or the whole key where two end alike."""
    last = {key: key.rpartition(".")[2] for key in keys}
    return {key: name if list(last.values()).count(name) == 1 else key for key, name in last.items()}
