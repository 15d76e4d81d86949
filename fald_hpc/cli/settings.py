"""Options of the command line that override keys of a config, as ``key=value`` texts."""

from __future__ import annotations


def overrides(pairs: list[str], seed: int | None, steps: int | None, chains: int | None) -> list[str]:
    """Return the overrides in order; the named options come last and win."""
    named = {"run.seed": seed, "run.steps": steps, "run.chains": chains}
    return [*pairs, *(f"{key}={value}" for key, value in named.items() if value is not None)]
