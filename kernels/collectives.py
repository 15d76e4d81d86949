"""``MPI_Allreduce`` as compiled code calls it, and ``MPI_Iallreduce`` as a start and a wait.

The C functions behind them live in ``_collectives.pyx``; their addresses are given to LLVM as symbols, which keeps compiled
callers cacheable on disk. A communicator is a small number: ``ALONE``, or what :mod:`fald_hpc.comm` registered.
"""

import llvmlite.binding
import numpy as np
from numba import types

from fald_hpc.kernels import _collectives
from fald_hpc.kernels.jit import DISABLED, flatten, jit

ALONE = -1
"""The communicator of a rank that shares its chains with no other."""

PENDING_DOUBLES = _collectives.PENDING_DOUBLES
"""Room that the caller keeps for a started message."""

if DISABLED:
    python_communicators: dict[int, object] = {}

    def _allreduce(send, receive, count, communicator, maximum):
        python_communicators[communicator](send, receive, bool(maximum))
        return 0

    def _start(send, receive, count, communicator, pending):
        return _allreduce(send, receive, count, communicator, 0)

    def _progress(pending):
        pass

    def _wait(pending):
        return 0

    def pointer(array):
        """Return the array: nothing is compiled."""
        return array
else:
    for _name, _address in _collectives.addresses().items():
        llvmlite.binding.add_symbol(_name, _address)
    _double_pointer = types.CPointer(types.float64)
    _numbers = (_double_pointer, _double_pointer, types.int64, types.int64)
    _allreduce = types.ExternalFunction("fald_allreduce", types.int64(*_numbers, types.int64))
    _start = types.ExternalFunction("fald_start", types.int64(*_numbers, _double_pointer))
    _progress = types.ExternalFunction("fald_progress", types.void(_double_pointer))
    _wait = types.ExternalFunction("fald_wait", types.int64(_double_pointer))

    @jit(forceinline=True)
    def pointer(array):
        """Return an array as C takes it."""
        return array.ctypes


@jit
def allreduce(send, receive, communicator, maximum):
    """Reduce an array over all ranks of a communicator.

    Parameters
    ----------
    send, receive : float64[...]
        C-contiguous, of equal size, not overlapping.
    communicator : int
        ``ALONE`` or a registered communicator.
    maximum : int
        0 for the sum, 1 for the maximum.

    Returns
    -------
    error : int
        The MPI error code, 0 for success.
    """
    if communicator == ALONE:
        flat, target = flatten(send), flatten(receive)
        for j in range(flat.size):
            target[j] = flat[j]
        return 0
    return _allreduce(pointer(send), pointer(receive), np.int64(send.size), communicator, maximum)


@jit
def start(send, receive, communicator, pending):
    """Start to sum an array over all ranks of a communicator; neither array may be touched until :func:`wait`.

    Parameters
    ----------
    send, receive, communicator
        As in :func:`allreduce`; not ``ALONE``.
    pending : float64[PENDING_DOUBLES]
        C-contiguous; holds the message until :func:`wait`.

    Returns
    -------
    error : int
        The MPI error code, 0 for success.
    """
    return _start(pointer(send), pointer(receive), np.int64(send.size), communicator, pointer(pending))


@jit
def progress(pending):
    """Let the MPI library move a started message on: many libraries do so only inside their own calls."""
    _progress(pointer(pending))


@jit
def wait(pending):
    """Wait for a started message; return the MPI error code."""
    return _wait(pointer(pending))
