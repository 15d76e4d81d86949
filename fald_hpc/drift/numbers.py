"""The watch's sums as numbers by client for the manifest, and their digest for the summary: functions of the sums alone.

Every number is a root mean square over what was seen: averagings and chains, or looks. None stands for a number that does
not apply or was not seen; ``missing`` says why.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fald_hpc.drift.look import CORRECTED, HETEROGENEITY, PLAIN, REDUCED
from fald_hpc.kernels.recording import measured

COLUMNS = ("distance", "heterogeneity", "corrected", "variance_ratio")
"""Numbers of a client: parameter units, nats per parameter, nats per parameter, a ratio."""

MOST = 5
"""Clients in a digest: those with the largest distances."""


def numbers(
    arrays: Mapping[str, np.ndarray], uses_reference: bool, minibatches: bool, variances: np.ndarray | None
) -> dict[str, Any]:
    """Return the numbers of a run.

    Parameters
    ----------
    arrays : dict
        What :meth:`fald_hpc.drift.watch.DriftWatch.gathered` gave.
    uses_reference, minibatches : bool
        Whether the sampler has a reference point, and whether it draws minibatches.
    variances : float64[d] or None
        The posterior's, in the units of the sampled parameters, where they are known.

    Returns
    -------
    dict
        ``averagings`` (over all chains), ``distances`` (averagings that were measured), ``looks``, one list by client for
        each of :data:`COLUMNS` (None where it is missing for all), ``all_clients`` (the same over clients, and
        ``distance_in_sd``), ``missing`` (reasons).
    """
    averagings, looks = int(arrays["drift_averagings"].sum()), int(arrays["drift_taken"][0])
    distances = sum(measured(int(n)) for n in arrays["drift_averagings"])
    sums = arrays["drift_sums"]
    missing: dict[str, str] = {}
    if averagings == 0:
        missing["distance"] = "no averaging after burn-in"
    if looks == 0:
        missing |= dict.fromkeys(COLUMNS[1:], "too few iterations for a look")
    if not uses_reference:
        missing |= {"corrected": "the sampler has no reference point", "variance_ratio": "the sampler has no reference point"}
    elif not minibatches:
        missing["variance_ratio"] = "full gradients have no variance"
    by_chain = arrays["drift_apart"]
    squares = {
        "distance": [math.fsum(row) / distances for row in by_chain] if averagings else [],
        "heterogeneity": [float(v) / looks for v in sums[:, HETEROGENEITY]] if looks else [],
        "corrected": [float(v) / looks for v in sums[:, CORRECTED]] if looks else [],
    }
    result: dict[str, Any] = {"averagings": averagings, "distances": distances, "looks": looks}
    overall: dict[str, Any] = {}
    for name, values in squares.items():
        known = name not in missing
        result[name] = [math.sqrt(v) for v in values] if known else None
        overall[name] = math.sqrt(math.fsum(values) / len(values)) if known else None
    plain, reduced = sums[:, PLAIN], sums[:, REDUCED]
    known = "variance_ratio" not in missing
    result["variance_ratio"] = [_ratio(r, p) for r, p in zip(reduced, plain, strict=True)] if known else None
    overall["variance_ratio"] = _ratio(math.fsum(reduced), math.fsum(plain)) if known else None
    spread = None if variances is None else math.sqrt(math.fsum(variances))
    in_sd = overall["distance"] / spread if overall["distance"] is not None and spread else None
    overall["distance_in_sd"] = in_sd if in_sd is not None and math.isfinite(in_sd) else None
    return {**result, "all_clients": overall, "missing": missing}


def _ratio(above: float, below: float) -> float | None:
    return float(above) / float(below) if below > 0.0 else None


def digest(found: Mapping[str, Any], clients: Sequence[str]) -> dict[str, Any]:
    """Return the numbers over all clients and those of the clients with the largest distances, largest first."""
    distance = found["distance"] or [0.0] * len(clients)
    worst = sorted(range(len(clients)), key=lambda i: (-distance[i], i))[:MOST]
    rows = [
        {"client": clients[i], **{name: None if found[name] is None else found[name][i] for name in COLUMNS}} for i in worst
    ]
    kept = {name: found[name] for name in ("averagings", "distances", "looks", "all_clients", "missing")}
    return {"clients": len(clients), **kept, "worst": rows}
