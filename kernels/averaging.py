"""Means over all clients: one message for some chains together, exact sums, windows widened by all ranks together."""

import numpy as np

from fald_hpc.kernels.collectives import allreduce, start, wait
from fald_hpc.kernels.exact_sum import BINS, MAX_WINDOW, add_clients, mean, power, window_for
from fald_hpc.kernels.jit import jit
from fald_hpc.kernels.state import (
    BOTH,
    DONE,
    FAILED,
    FLAGS,
    MESSAGES,
    MPI_ERROR,
    NOT_FINITE,
    NOTHING,
    OUTSIDE,
    REPEATS,
    SHIFT,
)


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


@jit(forceinline=True)
def _first(state, work, kind):
    """Return the first vector of a message: float64[c, s, d], and its windows; a second is ``work.gradient``."""
    if kind == SHIFT:
        return work.gradient, state.gradient_window
    return state.theta, state.window


@jit(forceinline=True, internal=True)
def _pack(settings, state, work, kind, lo, hi):
    """Put into the message of chains lo..hi-1 what this rank's clients add to it, unless it is there; return its rows."""
    n = hi - lo
    if work.added[lo, 0] != 0:
        work.added[lo, 0] = 0
        for row in range(2 * lo, 2 * lo + n):
            for flag in range(FLAGS):
                work.message[row, work.message.shape[1] - 1 - flag] = 0.0
        return n
    failed = 0 if work.failed[0] < 0 else 1
    first, window = _first(state, work, kind)
    # chains own the rows of their messages, two each, so that messages of other chains can be under way
    _collect(first, lo, hi, window, settings.width, failed, work.message[2 * lo : 2 * lo + n])
    if kind != BOTH:
        return n
    _collect(work.gradient, lo, hi, state.window, settings.width, failed, work.message[2 * lo + n : 2 * hi])
    return 2 * n


@jit(forceinline=True, internal=True)
def send(settings, state, work, kind, after, batch, lo, hi):
    """Send the message of a batch, chains lo..hi-1; with one batch it has arrived on return, else it is under way.

    Parameters
    ----------
    settings, state, work
        Records of :mod:`fald_hpc.kernels.state`.
    kind : int
        What it carries, not ``NOTHING``.
    after : int
        The iteration that follows.
    batch, lo, hi : int
        The batch and its local chains.

    Returns
    -------
    error : int
        The MPI error code, 0 for success.
    """
    rows = _pack(settings, state, work, kind, lo, hi)
    state.tally[MESSAGES] += 1
    work.under_way[batch, 0] = kind
    work.under_way[batch, 1] = after
    work.under_way[batch, 2] = work.added[lo, 1]
    work.added[lo, 1] = -1
    message, received = work.message[2 * lo : 2 * lo + rows], work.received[2 * lo : 2 * lo + rows]
    if settings.batches == 1:
        return allreduce(message, received, settings.communicator, 0)
    return start(message, received, settings.communicator, work.requests[batch])


@jit(forceinline=True, internal=True)
def _status(received, kind, lo, hi):
    """Return what the message of chains lo..hi-1 that has arrived says of the values in it."""
    rows = 2 * (hi - lo) if kind == BOTH else hi - lo
    flags = received.shape[1] - FLAGS
    status = DONE
    for row in range(2 * lo, 2 * lo + rows):
        if received[row, flags + 2] > 0.0:
            return FAILED
        if received[row, flags + 1] > 0.0:
            return NOT_FINITE
        if received[row, flags] > 0.0:
            status = OUTSIDE
    return status


@jit(forceinline=True, internal=True)
def receive(settings, state, work, batch, lo, hi):
    """Wait for the message of a batch, chains lo..hi-1.

    Returns
    -------
    status : int
        ``DONE``, ``OUTSIDE`` (:func:`repeat` the message), ``NOT_FINITE``, ``FAILED`` or ``MPI_ERROR``. After ``DONE``,
        ``work.received`` holds the sums, to be read by :func:`finish`.
    """
    kind = work.under_way[batch, 0]
    work.under_way[batch, 0] = NOTHING
    if settings.batches > 1 and wait(work.requests[batch]) != 0:
        return MPI_ERROR
    return _status(work.received, kind, lo, hi)


@jit(internal=True)
def repeat(settings, state, work, kind, lo, hi):
    """Widen the windows that were too narrow and send the message again, from the vectors as they are stored.

    All ranks see that it is needed, so all do it together and at once, whatever else is under way; a status as :func:`receive`.
    """
    n = hi - lo
    first, window = _first(state, work, kind)
    received = work.received[2 * lo : 2 * hi]
    largest, largest_of_all = work.maxima[0, :n], work.maxima[1, :n]
    if _widen(first, lo, hi, received[:n], window, settings.communicator, largest, largest_of_all) != 0:
        return MPI_ERROR
    if kind == BOTH:
        second = work.gradient
        if _widen(second, lo, hi, received[n:], state.window, settings.communicator, largest, largest_of_all) != 0:
            return MPI_ERROR
    rows = _pack(settings, state, work, kind, lo, hi)
    state.tally[REPEATS] += 1
    if allreduce(work.message[2 * lo : 2 * lo + rows], received[:rows], settings.communicator, 0) != 0:
        return MPI_ERROR
    return _status(work.received, kind, lo, hi)


@jit(internal=True)
def exchange(settings, state, work, kind, lo, hi):
    """Send a message of chains lo..hi-1 while no other is under way, and wait for it; the vectors are stored.

    Returns
    -------
    status : int
        ``DONE``, ``NOT_FINITE``, ``FAILED`` or ``MPI_ERROR``.
    """
    if send(settings, state, work, kind, 0, 0, lo, hi) != 0:
        return MPI_ERROR
    status = receive(settings, state, work, 0, lo, hi)
    while status == OUTSIDE:
        status = repeat(settings, state, work, kind, lo, hi)
    return status


@jit(forceinline=True, internal=True)
def finish(settings, work, vector, lo, hi, out):
    """Write the means of the last message of chains lo..hi-1, first (0) or second (1) vector, to out: float64[s, d]."""
    row = 2 * lo + vector * (hi - lo)
    for chain in range(lo, hi):
        mean(work.received[row + chain - lo], np.float64(settings.n_clients), out[chain])


@jit
def set_windows(values, window):
    """Set one window per chain from the largest magnitude on this rank (values equal on all ranks, or reduced)."""
    for chain in range(window.size):
        largest = 0.0
        for j in range(values.shape[1]):
            largest = max(largest, abs(values[chain, j]))
        window[chain] = window_for(largest)
