"""The posterior table: built from the accumulators of all chains, kept as ``summary.json``, shown as text.

All of ``summary.json`` but its member ``seconds`` is a function of seed, config and data. A number that the draws
cannot support is null, and ``warnings`` says why.
"""

import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fald_hpc import durable, json_files
from fald_hpc.errors import UserError
from fald_hpc.kernels.moments import Accumulators
from fald_hpc.metrics import diagnostics

FEW_EFFECTIVE = 100
"""Effective sample size below which a warning is given: the error of the mean is then a tenth of the sd."""

COLUMNS = ("mean", "sd", "mcse", "ess", "r_hat")


def _number(value: float) -> float | None:
    """Return a float for JSON, which knows neither NaN nor infinity."""
    return float(value) if math.isfinite(value) else None


def _names(names: Sequence[str]) -> str:
    """Return up to three names as prose."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _warnings(names: Sequence[str], sd: np.ndarray, ess: np.ndarray, r_hat: np.ndarray, records: int) -> list[str]:
    """Return what a reader of the table must know, one sentence an entry."""
    if records == 0:
        return ["no draw was recorded after burn-in: run more steps"]
    still = [n for n, s in zip(names, sd, strict=True) if s == 0.0]
    apart = [(r, n) for n, r in zip(names, r_hat, strict=True) if r > diagnostics.LARGEST_R_HAT]
    short = [n for n, e, s in zip(names, ess, sd, strict=True) if np.isnan(e) and s != 0.0]
    few = [n for n, e in zip(names, ess, strict=True) if e < FEW_EFFECTIVE]
    found = []
    if apart:
        worst = max(apart)
        found.append(
            f"the chains disagree (R-hat above {diagnostics.LARGEST_R_HAT}) on {_names([n for _, n in apart])}; "
            f"largest R-hat {worst[0]:.3g}, of {worst[1]}: run longer, with a longer burn-in, or check the model; "
            "ESS and MCSE of these are from the spread between half chains"
        )
    if short:
        found.append(
            f"too few draws for MCSE and ESS of {_names(short)}: they need a chain of at least "
            f"{diagnostics.AUTOCORRELATION_TIMES} autocorrelation times; run longer"
        )
    if np.isnan(r_hat).all() and not still:
        found.append(f"too few draws for R-hat: it needs {diagnostics.FEWEST_FOR_R_HAT} records a chain; run longer")
    if few:
        found.append(f"effective sample size below {FEW_EFFECTIVE} for {_names(few)}: run longer")
    if still:
        found.append(f"{_names(still)} did not move: no ESS")
    return found


def build(
    acc: Accumulators,
    names: Sequence[str],
    *,
    steps: int,
    communications: int,
    refreshes: int,
    seconds: Mapping[str, float],
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the summary of a run.

    Parameters
    ----------
    acc : Accumulators
        Of all chains, in chain order.
    names : sequence of str
        The d parameters.
    steps, communications, refreshes : int
        Iterations, and the averagings and refreshes among them (with independent schedules: over all chains).
    seconds : dict of float
        Wall time by phase; ESS per second is of ``sample``, else of ``total``.
    extra : dict, optional
        More members, JSON-able, that do not depend on time or layout.
    """
    sd, r_hat = diagnostics.sd(acc), diagnostics.r_hat(acc)
    mcse, ess = diagnostics.mcse_and_ess(acc)
    columns = zip(diagnostics.mean(acc), sd, mcse, ess, r_hat, strict=True)
    parameters: list[dict[str, Any]] = []
    for name, values in zip(names, columns, strict=True):
        row: dict[str, Any] = {"name": name} | {c: _number(v) for c, v in zip(COLUMNS, values, strict=True)}
        per = row["ess"] / communications if row["ess"] is not None and communications else None
        parameters.append(row | {"ess_per_communication": per})
    time = seconds.get("sample", seconds.get("total", 0.0))
    rates = {
        row["name"]: row["ess"] / time if row["ess"] is not None and time > 0.0 else None for row in parameters
    }
    return {
        "parameters": parameters,
        "chains": len(acc.count),
        "records": int(acc.count.min()),
        "steps": int(steps),
        "communications": int(communications),
        "refreshes": int(refreshes),
        **(extra or {}),
        "warnings": _warnings(names, sd, ess, r_hat, int(acc.count.min())),
        "seconds": {**{k: float(v) for k, v in seconds.items()}, "ess_per_second": rates},
    }


def dumps(summary: Mapping[str, Any]) -> str:
    """Return a summary as JSON text, the same bytes for the same content."""
    return json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write(folder: str | os.PathLike[str], summary: Mapping[str, Any]) -> None:
    """Write ``summary.json`` into a run's folder, whole or not at all."""
    durable.write(Path(folder) / "summary.json", dumps(summary).encode())


def read(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the summary in a run's folder.

    Raises
    ------
    UserError
        There is none, or it is not a summary.
    """
    path = Path(folder) / "summary.json"
    if not path.is_file():
        raise UserError(
            f"no summary in {folder}: give the folder of a run that has ended (its --out), or finish it with --resume."
        )
    found = json_files.read(path)
    if found is None or not _sound(found):
        raise UserError(f"{path} is not a summary of fald_hpc: finish or repeat the run.")
    return found


def _sound(found: Mapping[str, Any]) -> bool:
    """Return whether a JSON object has the members of :func:`build`, of their kinds."""
    rows, notes = found.get("parameters"), found.get("warnings")
    counts = (found.get(name) for name in ("chains", "records", "steps", "communications", "refreshes"))
    return (
        isinstance(rows, list)
        and all(isinstance(row, dict) and isinstance(row.get("name"), str) for row in rows)
        and all(column in row and _is_number(row[column]) for row in rows for column in COLUMNS)
        and all(isinstance(count, int) and abs(count) < 2**63 for count in counts)
        and isinstance(notes, list)
        and all(isinstance(note, str) for note in notes)
        and isinstance(found.get("seconds"), dict)
    )


def _is_number(value: Any) -> bool:
    """Return whether a value is null or a finite number as :func:`_number` writes it."""
    return value is None or (isinstance(value, (int, float)) and abs(value) <= sys.float_info.max)


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return a parameter's row as strings: name, mean, sd, mcse, ess, r_hat; a dash for a number not given.

    Mean and sd have as many decimals as the MCSE supports: its first two digits.
    """
    mcse = row["mcse"] or 0.0
    scale = mcse if mcse > 0.0 else (row["sd"] or 1.0) / 100.0
    decimals = min(max(1 - math.floor(math.log10(scale)), 0), 12)

    def show(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    # Numbers too large or too small for a column of fixed decimals.
    plain = decimals <= 8 and abs(row["mean"] or 0.0) < 1e8
    form = f".{decimals}f" if plain else ".6g"
    return [
        row["name"],
        show(row["mean"], form),
        show(row["sd"], form),
        show(row["mcse"], ".2g"),
        show(row["ess"], ".0f"),
        show(row["r_hat"], ".3f"),
    ]


def text(summary: Mapping[str, Any]) -> str:
    """Return the posterior table as plain text, with counts before and warnings after."""
    rows = [["parameter", "mean", "sd", "MCSE", "ESS", "R-hat"], *(cells(row) for row in summary["parameters"])]
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    lines = [
        f"{summary['chains']} chains, {summary['steps']} steps, {summary['communications']} communications, "
        f"{summary['refreshes']} refreshes"
    ]
    for row in rows:
        numbers = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *numbers]))
    lines += [f"warning: {warning}" for warning in summary["warnings"]]
    return "\n".join(lines)
