"""Runs of the package in one line, and their draws chain by chain."""

import warnings

import numpy as np

import fald_hpc
from problems.cases import Case


def run(case: Case, sampler, steps: int, **options):
    """Sample a problem; a refresh more frequent than the averaging, which warns, is as good as any here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fald_hpc.sample(case.potential, case.clients, sampler, steps=steps, **options)


def draws(result) -> list[np.ndarray]:
    """Return the draws of each chain, float64[r, d]; those of chains with own coins are cut to the shortest chain."""
    values = np.asarray(result.draws)
    assert np.all(np.isfinite(values))
    return list(values)
