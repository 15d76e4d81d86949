"""Signals, the sign of life and the launcher's death, watched by one thread per rank that makes no MPI call.

Python runs signal handlers between two bytecodes of the main thread, which compiled segments and blocked collectives
keep away for long. The C part of a handler runs at once and writes the signal's number to a socket that
the thread reads.

- The first SIGTERM, SIGINT or SIGUSR1 is a request: the run stops at its next common step.
- A second SIGINT ends this process at once, and with it the job.
- A launcher that dies leaves its ranks without anybody to end them: they end themselves.
- Rank 0 writes ``DIR/alive`` every few seconds, for ``fald status``.
"""

import contextlib
import json
import os
import platform
import select
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

from fald_hpc import launch

REQUESTS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
INTERRUPTED, ORPHANED = 130, 1
TICK = 1.0
"""Seconds between two looks at the launcher."""

LIFE = 5.0
"""Seconds between two signs of life."""

ALIVE = "alive"

_active: "Watch | None" = None


def active() -> "Watch | None":
    """Return the watch of this process."""
    return _active


class Watch:
    """The watching thread, as a context; it takes over the signals of the process from ``with`` on.

    Attributes
    ----------
    received : str or None
        Name of the first signal that asked for a stop.
    """

    def __init__(self) -> None:
        self.received: str | None = None
        self._interrupts = 0
        self._folder: Path | None = None
        self._state: dict[str, Any] = {}
        started = launch.read(os.environ)
        self._rank = started.rank
        # a serial run outlives its shell (nohup); a rank does not outlive its launcher
        self._parent = os.getppid() if started.tasks > 1 and os.getppid() > 1 else None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Watch":
        """Take over the signals and start the thread; in another than the main thread signals stay as they are."""
        global _active
        self._outer, _active = _active, self
        self._ours, theirs = socket.socketpair()
        self._theirs = theirs
        for end in (self._ours, theirs):
            end.setblocking(False)
        self._main = threading.current_thread() is threading.main_thread()
        if self._main:
            self._wakeup = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
            for number in REQUESTS:
                # what was ignored on purpose (a background job's SIGINT) stays ignored
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, _nothing)
                    # a library's read or wait must go on after it, not end half-way (MPI's start talks to its launcher)
                    signal.siginterrupt(number, False)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="fald-watch", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Give the signals back and end the thread."""
        global _active
        _active = self._outer
        if self._main:
            for number, handler in self._before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(self._wakeup)
        self._ended.set()
        with contextlib.suppress(OSError):
            self._theirs.send(b"\0")
        self._thread.join(timeout=2 * TICK)
        self._ours.close()
        self._theirs.close()

    def sign(self, folder: Path | None, **state: Any) -> None:
        """Say what the next sign of life in a folder tells (rank 0 only); None: no more signs."""
        self._state = {**state, "at": time.time()}
        self._folder = folder

    def _watch(self) -> None:
        written = -LIFE
        while not self._ended.is_set():
            ready, _, _ = select.select([self._ours], [], [], TICK)
            if ready:
                with contextlib.suppress(OSError):
                    for number in self._ours.recv(64):
                        self._take(number)
            if self._parent is not None and os.getppid() != self._parent:
                self._end(ORPHANED, "the launcher of this rank is gone: it ends too")
            now = time.monotonic()
            if self._folder is not None and now - written >= LIFE:
                written = now
                write_life(self._folder, self._state)

    def _take(self, number: int) -> None:
        if number not in REQUESTS:
            return
        if self.received is None:
            self.received = signal.Signals(number).name
        if number == signal.SIGINT:
            self._interrupts += 1
            if self._interrupts == 2:
                self._end(INTERRUPTED, "interrupted a second time: ended at once, without saving")

    def _end(self, code: int, sentence: str) -> None:
        """End this process now, whatever the main thread does."""
        if self._rank == 0:
            with contextlib.suppress(OSError, ValueError):
                print(f"fald: {sentence}", file=sys.stderr, flush=True)
        os._exit(code)


def write_life(folder: Path, state: dict[str, Any]) -> None:
    """Write the sign of life: when, by whom, what the main thread last reported. A full disk is no reason to end."""
    sign = {"time": time.time(), "host": platform.node(), "pid": os.getpid(), **state}
    temporary = folder / f".{ALIVE}.new"
    with contextlib.suppress(OSError):
        temporary.write_text(json.dumps(sign) + "\n", encoding="utf-8")
        os.replace(temporary, folder / ALIVE)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Do nothing: the thread has read the signal already."""
