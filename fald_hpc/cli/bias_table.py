"""Biases as text: per parameter for each setting, and the largest ones over settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fald_hpc.bias import Bias, Measured

SHOWN = 12
"""Parameters in the table of a setting; of more, those with the largest bias in posterior sds."""

NOT_KNOWN = "- (too few draws for its error)"


def number(bias: float, error: float, unit: str = "") -> str:
    """Return a bias with its error to two digits, and whether it is resolved; never a bias alone."""
    from fald_hpc.bias import resolved

    if not (math.isfinite(bias) and math.isfinite(error)):
        return NOT_KNOWN
    decimals = _decimals(error)
    text = f"{bias:+.{decimals}f}{unit} ± {error:.{decimals}f}{unit}" if decimals <= 8 else f"{bias:+.2e} ± {error:.1e}"
    return text if resolved(bias, error) else f"{text} (not resolved)"


def _decimals(error: float) -> int:
    """Return the decimals that show two digits of an error."""
    return max(1 - math.floor(math.log10(error)), 0) if error > 0.0 else 6


def _estimate(value: float, error: float) -> str:
    known = math.isfinite(error) and _decimals(error) <= 8
    return f"{value:.{_decimals(error)}f}" if known else f"{value:.4g}"


def settings(found: Bias) -> str:
    """Return a setting as words."""
    order = ("comm_prob", "refresh_prob", "batch_size", "noise_sharing")
    return ", ".join(f"{key} {found.settings[key]}" for key in order if key in found.settings)


def of_setting(found: Bias) -> str:
    """Return the biases of one setting, two lines a parameter."""
    gamma = found.settings["step_size"]
    known = found.against_exact
    rows = [["", "", "estimate", "bias by Richardson", *(["bias against exact"] if known else [])]]
    for p in largest(found):
        for key in ("mean", "sd"):
            value, error = float(getattr(found.whole, key)[p]), float(getattr(found.whole, f"{key}_error")[p])
            row = [found.names[p] if key == "mean" else "", key, _estimate(value, error)]
            rows.append(row + [_cell(kind, key, p) for kind in (found.richardson, known) if kind is not None])
    lines = [
        f"{found.sampler} at step_size {gamma:g}, {settings(found)}",
        f"{found.chains} chains, {found.steps} steps at {gamma:g} (seed {found.seeds[0]}) and {2 * found.steps} at "
        f"{gamma / 2:g} (seed {found.seeds[1]})",
    ]
    if len(found.names) > SHOWN:
        lines.append(f"the {SHOWN} of {len(found.names)} parameters with the largest bias in posterior sds")
    lines += align(rows, "llr")
    return "\n".join([*lines, *(f"warning: {note}" for note in found.notes)])


def over_settings(all_found: Sequence[Bias]) -> str:
    """Return one line for each setting: the largest bias of a mean and of a standard deviation, in posterior sds."""
    exact = all_found[0].against_exact is not None
    rows = [["comm_prob", "batch_size", "step_size", "bias of a mean", "", "bias of an sd", ""]]
    for found in all_found:
        row = [str(found.settings[key]) for key in ("comm_prob", "batch_size", "step_size")]
        for key in ("mean", "sd"):
            bias, error = in_sds(found, key)
            worst = max(range(len(bias)), key=lambda p: -1.0 if math.isnan(error[p]) else abs(bias[p]))
            row += [number(100.0 * bias[worst], 100.0 * error[worst], " %"), f"({found.names[worst]})"]
        rows.append(row)
    way = "against the exact posterior" if exact else "by Richardson"
    title = f"Largest bias over the parameters, {way}, in per cent of the posterior sd"
    return "\n".join([title, *align(rows, "rrr")])


def in_sds(found: Bias, key: str) -> tuple[list[float], list[float]]:
    """Return the biases of the means or of the sds, and their errors, divided by the posterior sds."""
    best = found.against_exact or found.richardson
    sds = found.whole.sd
    return list(getattr(best, key) / sds), list(getattr(best, f"{key}_error") / sds)


def largest(found: Bias) -> list[int]:
    """Return the parameters to show: all of few, else those with the largest bias, in their own order."""
    every = range(len(found.names))
    if len(every) <= SHOWN:
        return list(every)
    columns = [in_sds(found, key)[0] for key in ("mean", "sd")]
    size = {p: max(abs(column[p]) if math.isfinite(column[p]) else 0.0 for column in columns) for p in every}
    return sorted(sorted(every, key=lambda p: -size[p])[:SHOWN])


def align(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Return rows as lines of equal columns; ``sides`` says l or r for the first columns, the rest are l."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if c < len(sides) and sides[c] == "r" else cell.ljust(width)
            for c, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _cell(kind: Measured, key: str, p: int) -> str:
    return number(float(getattr(kind, key)[p]), float(getattr(kind, f"{key}_error")[p]))
