"""What ends a run before its last step: a user's mistake, a request to stop, a disk that takes no more."""

from collections.abc import Sequence
from typing import Any


def sentence(words: object) -> str:
    """Return words with the full stop that ends a sentence, where they have none."""
    text = str(words).rstrip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


class UserError(Exception):
    """A mistake in the input: one clear sentence that says what is wrong, where, and what to do; it ends in a full stop.

    The command line prints the sentence once, on rank 0, without a traceback, and exits with code 2. Everything else
    that is raised, but for the exceptions below and those of a chain (:mod:`fald_hpc.failures`), is a fault of the
    program.
    """

    def __init__(self, words: object = "") -> None:
        super().__init__(sentence(words))


class StorageFailure(RuntimeError):
    """Results could not be written (disk full, folder read-only); the last checkpoint is untouched."""

    def __init__(self, words: object = "") -> None:
        super().__init__(sentence(words))


class Stopped(Exception):
    """A run was asked to stop (signal, time limit); its state is saved, and ``resume`` continues it.

    Attributes
    ----------
    step : int
        Iterations done.
    waiting : list of dict
        What the ranks waited in this part of the run and in earlier ones (:mod:`fald_hpc.drift.waiting`), on rank 0.
    """

    def __init__(self, message: str, step: int = 0, waiting: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(sentence(message))
        self.step, self.waiting = step, list(waiting)
