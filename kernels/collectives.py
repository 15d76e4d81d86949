"""``MPI_Allreduce`` as compiled code calls it.

The C function behind it lives in ``_collectives.pyx``; its address is given to LLVM as a symbol, which keeps compiled
callers cacheable on disk. A communicator is a small number: ``ALONE``, or what :mod:`fald_hpc.comm` registered.
"""

import llvmlite.binding
import numpy as np
from numba import types

from fald_hpc.kernels import _collectives
from fald_hpc.kernels.jit import DISABLED, flatten, jit

ALONE = -1
"""The communicator of a rank that shares its chains with no other."""

if DISABLED:
    python_communicators: dict[int, object] = {}

    def _allreduce(send, receive, count, communicator, maximum):
        python_communicators[communicator](send, receive, bool(maximum))
        return 0

    def pointer(array):
        """Return the array: nothing is compiled."""
        return array
else:
    llvmlite.binding.add_symbol("fald_allreduce", _collectives.address())
    _double_pointer = types.CPointer(types.float64)
    _allreduce = types.ExternalFunction(
        "fald_allreduce",
        types.int64(_double_pointer, _double_pointer, types.int64, types.int64, types.int64),
    )

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
