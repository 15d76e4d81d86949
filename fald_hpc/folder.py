"""The folder of a run: who may use it, what is in it, and what a new start removes. Rank 0 looks and writes.

====================  ==========================================================================================
``manifest.json``     resolved settings, versions, layout, timers; ``state``: running, finished, stopped, failed
``draws.zarr``        the draws
``summary.json``      the posterior table
``checkpoint/``       the state, two generations
``partition.npz``     which client each row of a split file went to
``alive``, ``.lock``  sign of life and lock of the running process
====================  ==========================================================================================
"""

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from fald_hpc import checkpoint, durable, json_files, lock, watch
from fald_hpc.comm import Serial
from fald_hpc.data import assignment
from fald_hpc.errors import StorageFailure, UserError
from fald_hpc.manifest import FILE as MANIFEST

SUMMARY, REPORT = "summary.json", "report.html"

# in the order in which a new start removes them: killed in between, what is left is no checkpoint of another run
CONTENT = ("checkpoint", "draws.zarr", REPORT, SUMMARY, assignment.FILE, watch.ALIVE, MANIFEST)
OURS = {*CONTENT, lock.FILE, *(f".{name}.new" for name in CONTENT)}

Saved = tuple[dict[str, np.ndarray], dict[str, Any]]


class Folder:
    """A run's folder, or none (results in memory).

    Parameters
    ----------
    path : Path or None
        Folder.
    communicator : communicator
        All ranks, which call every method.
    """

    def __init__(self, path: Path | None, communicator: Serial) -> None:
        self.path, self.communicator = path, communicator
        self._lock = lock.Lock(path) if path is not None and communicator.rank == 0 else None

    def claim(self, resume: bool, overwrite: bool) -> Saved | None:
        """Return on rank 0 the state to continue from; None on the others and for a new start.

        Nothing is written, but for the lock in a folder that holds a run.

        Raises
        ------
        UserError
            The folder is in use, holds something else, or holds a run and neither ``resume`` nor ``overwrite`` is set.
        """
        error: UserError | None = None
        saved = None
        if self._lock is not None:
            try:
                saved = self._claim(resume, overwrite)
            except UserError as found:
                error = found
            except OSError as found:
                error = UserError(f"cannot use {self.path}: {found.strerror or found}.")
        self.communicator.together(error)
        return saved

    def _claim(self, resume: bool, overwrite: bool) -> Saved | None:
        path = self.path
        assert path is not None
        assert self._lock is not None
        if path.exists() and not path.is_dir():
            raise UserError(f"{path} is a file: give another folder with --out.")
        names = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
        if not names <= OURS:
            if MANIFEST not in names and "checkpoint" not in names:
                raise UserError(f"{path} is not empty and holds no run: give another folder with --out.")
        elif not names & {*CONTENT}:
            return None  # missing, empty, or just a lock
        if not resume and not overwrite:
            if lock.held(path):
                raise UserError(
                    f"{path} is in use by another run: {lock.words(lock.holder(path))}. Give another folder with --out."
                )
            raise UserError(f"{path} holds a run: continue it with --resume or replace it with --overwrite.")
        self._lock.acquire(lock.PATIENCE if resume else 0.0)
        return checkpoint.load(path / "checkpoint") if resume else None

    def begin(self, manifest: dict[str, Any], resumed: bool, clients: Any) -> None:
        """Make the folder, take its lock, remove what a new start replaces, and write the first manifest.

        Raises
        ------
        UserError
            Another run has begun there meanwhile, or the folder cannot be written.
        """
        error: UserError | None = None
        if self._lock is not None:
            assert self.path is not None
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                ours_already = self._lock.held
                self._lock.acquire(0.0)
                if not ours_already and (self.path / MANIFEST).exists():
                    raise UserError(f"another run has begun in {self.path} meanwhile: start again with --resume.")
                if not resumed:
                    self._clear()
                self.write_manifest(manifest)
                assignment.save(self.path, clients)
            except UserError as found:
                error = found
            except OSError as found:
                error = UserError(f"cannot write to {self.path}: {found.strerror or found}.")
        self.communicator.together(error)

    def _clear(self) -> None:
        assert self.path is not None
        for name in CONTENT:
            place = self.path / name
            if place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Write the manifest, at once and for good (rank 0)."""
        assert self.path is not None
        durable.write(self.path / MANIFEST, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())

    def mark(self, state: str, **more: Any) -> None:
        """Note in the manifest how the run ended; what cannot be written is left as it is (rank 0, no collective)."""
        if self._lock is None or not self._lock.held:
            return
        assert self.path is not None
        manifest = json_files.read(self.path / MANIFEST)
        if manifest is not None:
            with contextlib.suppress(OSError):
                self.write_manifest({**manifest, "state": state, **more})

    def recorded(self) -> dict[str, Any]:
        """Return the manifest as an earlier start left it, empty where there is none that can be read (rank 0)."""
        if self._lock is None:
            return {}
        assert self.path is not None
        return json_files.read(self.path / MANIFEST) or {}

    def cannot_write(self, error: OSError) -> StorageFailure:
        """Return the failure of a last file."""
        return StorageFailure(
            f"cannot write to {self.path} (rank 0): {error.strerror or error}. The checkpoint there is good: make room "
            "or mend the permissions, then continue with --resume."
        )

    def release(self) -> None:
        """Let the folder go."""
        if self._lock is not None:
            self._lock.release()
