"""A stop request on chosen ranks after a chosen number of looks: what a signal does, at a place that a test decides."""

from contextlib import contextmanager

from fald_hpc import watch


class Request:
    """Stands for the watch of a process."""

    def __init__(self, after: int) -> None:
        self.left = after

    @property
    def received(self) -> str | None:
        """Return the name of a signal from the ``after``-th look on."""
        self.left -= 1
        return "SIGTERM" if self.left < 0 else None

    def sign(self, folder, **state) -> None:
        """Do nothing."""


@contextmanager
def asked_to_stop(after: int | None):
    """Let runs in this process find a request to stop after so many segments; None: never."""
    before = watch._active
    watch._active = Request(10**9 if after is None else after)
    try:
        yield
    finally:
        watch._active = before
