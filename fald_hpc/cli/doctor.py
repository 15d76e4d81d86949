"""``fald doctor``: what this installation is made of, and what to try where something is wrong."""

from __future__ import annotations


def doctor() -> None:
    """Show MPI, launcher, ranks, hosts, threads, CPU features and cache, and do a one-element reduction."""
