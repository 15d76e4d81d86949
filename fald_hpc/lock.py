"""One run in one folder: an advisory lock on ``DIR/.lock`` that the system releases when its holder ends, however."""

import contextlib
import errno
import fcntl
import json
import os
import platform
import time
import warnings
from pathlib import Path
from typing import Any

from fald_hpc import json_files
from fald_hpc.errors import UserError

FILE = ".lock"
PATIENCE = 15.0
"""Seconds that a resume waits for a dying holder: ranks outlive a killed launcher by some seconds."""

_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}
_TAKEN = {errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES}


class LockWarning(UserWarning):
    """The filesystem has no locks."""


def holder(folder: Path) -> dict[str, Any]:
    """Return what the last holder wrote about itself: host, pid, job, since; an empty dict where it wrote nothing."""
    return json_files.read(folder / FILE) or {}


def words(found: dict[str, Any]) -> str:
    """Return a holder in words."""
    if not found:
        return "another process"
    job = f", job {found['job']}" if found.get("job") else ""
    return f"process {found.get('pid')} on {found.get('host')}{job}, since {found.get('since')}"


def held(folder: Path) -> bool | None:
    """Return whether a living run holds the folder; None where that cannot be known."""
    try:
        descriptor = os.open(folder / FILE, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return True if error.errno in _TAKEN else None
    finally:
        os.close(descriptor)
    return False


class Lock:
    """The lock of a folder, which exists.

    Parameters
    ----------
    folder : Path
        Folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether this process has taken the lock."""
        return self._descriptor is not None

    def acquire(self, patience: float) -> None:
        """Take the lock; wait some seconds for its holder.

        Raises
        ------
        UserError
            It is held by another run, which is named.
        OSError
            The file cannot be written or locked.

        Warns
        -----
        LockWarning
            The filesystem has no locks: nothing guards the folder then.
        """
        if self._descriptor is not None:
            return
        descriptor = os.open(self.folder / FILE, os.O_RDWR | os.O_CREAT, 0o644)
        # `fald status` holds it for a moment: one more try costs nothing
        end = time.monotonic() + max(patience, 0.3)
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno in _UNSUPPORTED:
                    warnings.warn(
                        f"{self.folder} lies on a filesystem without locks ({error.strerror}): see to it that no two "
                        "runs write there",
                        LockWarning,
                        stacklevel=2,
                    )
                    break
                if error.errno not in _TAKEN:
                    os.close(descriptor)
                    raise
                if time.monotonic() > end:
                    os.close(descriptor)
                    waited = f" after waiting {patience:.0f} s" if patience else ""
                    raise UserError(
                        f"{self.folder} is in use by another run{waited}: {words(holder(self.folder))}. Wait for it to "
                        "end, end it, or give another folder with --out."
                    ) from None
                time.sleep(0.1)
        self._descriptor = descriptor
        self._sign()

    def _sign(self) -> None:
        assert self._descriptor is not None
        me = {
            "host": platform.node(),
            "pid": os.getpid(),
            "job": os.environ.get("SLURM_JOB_ID", ""),
            "since": time.strftime("%Y-%m-%d %H:%M:%S"),
        }
        with contextlib.suppress(OSError):  # a full disk: the lock itself holds
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, (json.dumps(me) + "\n").encode(), 0)

    def release(self) -> None:
        """Let the folder go; the file stays."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
