"""What the tests under MPI share: the communicator, a folder that all ranks know, and an end for all when one fails."""

import sys
import tempfile
from pathlib import Path

import pytest

from fald_hpc import comm


@pytest.fixture(scope="module")
def world():
    """Return the communicator of all ranks of the job."""
    communicator = comm.connect()
    yield communicator
    communicator.free()


@pytest.fixture
def place(world):
    """Return one temporary folder that all ranks know; rank 0 makes and removes it."""
    made = tempfile.TemporaryDirectory() if world.rank == 0 else None
    yield Path(world.share(made.name if made is not None else None))
    world.together(None)
    if made is not None:
        made.cleanup()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """End the job when a test fails on any rank: the others may be waiting for it in a collective, for good."""
    report = (yield).get_result()
    world = item.funcargs.get("world") if hasattr(item, "funcargs") else None
    if report.failed and world is not None and world.size > 1:
        print(f"\n{item.nodeid} failed on rank {world.rank} ({report.when}):\n{report.longreprtext}", file=sys.stderr)
        world.abort(1)
