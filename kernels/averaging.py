"""Means over all clients: one message that carries every chain, exact sums, windows widened by all ranks together."""

import numpy as np

from fald_hpc.kernels.collectives import allreduce
from fald_hpc.kernels.exact_sum import BINS, MAX_WINDOW, add_clients, mean, power, window_for
from fald_hpc.kernels.jit import jit
from fald_hpc.kernels.state import DONE, FAILED, MESSAGES, MPI_ERROR, NOT_FINITE, REPEATS


@jit(internal=True)
def _collect(values, lo, hi, window, width, failed, message):
    """Add the values of this rank's clients and chains lo..hi-1, float64[c, s, d], to a message of hi - lo rows."""
    # the range of chains is no slice of the array: its type would no longer say that coordinates are neighbours
    c, _, d = values.shape
    for chain in range(lo, hi):
        row = message[chain - lo]
        for j in range(row.size):
            row[j] = 0.0
        outside = add_clients(values, chain, window[chain], width, row[: BINS * d])
        row[BINS * d] = outside
        not_finite = 0
        if outside > 0:
            for i in range(c):
                for j in range(d):
                    if not abs(values[i, chain, j]) <= power(MAX_WINDOW):
                        not_finite += 1
        row[BINS * d + 1] = not_finite
        row[BINS * d + 2] = failed


@jit(internal=True)
def _widen(values, lo, hi, received, window, communicator, send, receive):
    """Widen the windows of the chains whose values did not fit, by an exact maximum over all clients."""
    c, _, d = values.shape
    for chain in range(lo, hi):
        largest = 0.0
        if received[chain - lo, BINS * d] > 0.0:
            for i in range(c):
                for j in range(d):
                    largest = max(largest, abs(values[i, chain, j]))
        send[chain - lo] = largest
    error = allreduce(send, receive, communicator, 1)
    for chain in range(lo, hi):
        if received[chain - lo, BINS * d] > 0.0:
            window[chain] = min(max(window_for(receive[chain - lo]), window[chain] + 1), MAX_WINDOW)
    return error


@jit(internal=True)
def exchange(settings, state, work, first, first_window, second, second_window, lo, hi):
    """Average one or two vectors of every chain lo..hi-1 over all clients, in one message.

    Parameters
    ----------
    settings, state, work
        Records of :mod:`fald_hpc.kernels.state`.
    first, second : float64[c, s, d]
        Values of this rank's clients; ``second`` is ``work.nothing`` where the message carries one vector.
    first_window, second_window : int64[s]
        Exponents of the windows that hold them; widened in place if need be.
    lo, hi : int
        Local chains.

    Returns
    -------
    status : int
        ``DONE``, ``NOT_FINITE``, ``FAILED`` or ``MPI_ERROR``. After ``DONE``, ``work.received`` holds the sums, to be
        read by :func:`finish`.
    """
    d = first.shape[2]
    n = hi - lo
    rows = 2 * n if second.shape[0] > 0 else n
    failed = 0 if work.failed[0] < 0 else 1
    message = work.message[:rows]
    received = work.received[:rows]
    made = MESSAGES
    while True:
        _collect(first, lo, hi, first_window, settings.width, failed, message[:n])
        if rows > n:
            _collect(second, lo, hi, second_window, settings.width, failed, message[n:])
        state.tally[made] += 1
        made = REPEATS
        if allreduce(message, received, settings.communicator, 0) != 0:
            return MPI_ERROR
        outside = False
        for row in range(rows):
            if received[row, BINS * d + 2] > 0.0:
                return FAILED
            if received[row, BINS * d + 1] > 0.0:
                return NOT_FINITE
            if received[row, BINS * d] > 0.0:
                outside = True
        if not outside:
            return DONE
        send, receive = work.maxima[0, :n], work.maxima[1, :n]
        if _widen(first, lo, hi, received[:n], first_window, settings.communicator, send, receive) != 0:
            return MPI_ERROR
        if rows == n:
            continue
        if _widen(second, lo, hi, received[n:], second_window, settings.communicator, send, receive) != 0:
            return MPI_ERROR


@jit(internal=True)
def finish(settings, work, vector, lo, hi, out):
    """Write the means of the last exchange, its first (0) or second (1) vector, to out[lo:hi]: float64[s, d]."""
    n = hi - lo
    for chain in range(n):
        mean(work.received[vector * n + chain], np.float64(settings.n_clients), out[lo + chain])


@jit
def set_windows(values, window):
    """Set one window per chain from the largest magnitude on this rank (values equal on all ranks, or reduced)."""
    for chain in range(window.size):
        largest = 0.0
        for j in range(values.shape[1]):
            largest = max(largest, abs(values[chain, j]))
        window[chain] = window_for(largest)
