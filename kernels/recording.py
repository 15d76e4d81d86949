"""Recording of the average over clients: at communication times, or at every iteration where all clients are here."""

from fald_hpc.kernels.averaging import exchange, finish
from fald_hpc.kernels.jit import fma, jit
from fald_hpc.kernels.memory import copy_row
from fald_hpc.kernels.state import AVERAGING, DONE, MESSAGES

ALL, EACH = 64, 16
"""Averagings of a chain whose distances are measured: the first so many, then one in so many."""


@jit(forceinline=True, internal=True)
def copy(values, lo, hi, out):
    """Copy rows lo..hi-1: float64[s, d] (a slice assignment compiles slowly, for its checks of shapes)."""
    for s in range(lo, hi):
        for j in range(values.shape[1]):
            out[s, j] = values[s, j]


@jit(forceinline=True, internal=True)
def record(settings, values, after, lo, hi, log):
    """Append values[lo:hi]: float64[s, d] to the log's records unless iteration ``after`` is in burn-in."""
    if after > settings.burn_in:
        for s in range(lo, hi):
            r = log.counts[s]
            for j in range(values.shape[1]):
                log.records[s, r, j] = values[s, j]
            log.counts[s] = r + 1


@jit(internal=True)
def record_local(settings, state, work, after, lo, hi, log):
    """Record the average between events; the communicator is ``ALONE``, so no message is sent."""
    if after <= settings.burn_in:
        return DONE
    messages = state.tally[MESSAGES]
    status = exchange(settings, state, work, AVERAGING, lo, hi)
    state.tally[MESSAGES] = messages
    if status == DONE:
        finish(settings, work, 0, lo, hi, work.average)
        record(settings, work.average, after, lo, hi, log)
    return status


@jit(forceinline=True, internal=True)
def square_distance(x, y):
    """Return |x - y|² of two vectors: float64[d], always summed in the same order.

    Four partial sums, coordinates j, j + 4, ... each: long vectors then fill the processor's.
    """
    d = x.size
    s0 = s1 = s2 = s3 = 0.0
    for j in range(0, d - 3, 4):
        d0, d1, d2, d3 = x[j] - y[j], x[j + 1] - y[j + 1], x[j + 2] - y[j + 2], x[j + 3] - y[j + 3]
        s0, s1, s2, s3 = fma(d0, d0, s0), fma(d1, d1, s1), fma(d2, d2, s2), fma(d3, d3, s3)
    for j in range(d - d % 4, d):
        d0 = x[j] - y[j]
        s0 = fma(d0, d0, s0)
    return (s0 + s2) + (s1 + s3)


def measured(averagings):
    """Return how many of a chain's averagings had their distances measured."""
    return min(averagings, ALL) + max(0, -(-averagings // EACH) - ALL // EACH)


@jit(forceinline=True)
def watched(n):
    """Return whether distances are measured at a chain's n-th averaging, counted from 0."""
    return n < ALL or n % EACH == 0


@jit(forceinline=True, internal=True)
def measures_distance(settings, log, after, chain):
    """Return whether distances are measured at the averaging before iteration ``after``; all chains of a batch are alike."""
    return after > settings.burn_in and watched(log.averagings[chain])


@jit(forceinline=True, internal=True)
def stand_apart(state, lo, hi, log):
    """Add the clients' square distances from the new mean to their sums: drift, just before averaging removes it.

    Of the first ``ALL`` averagings, then of one in ``EACH``: on fast problems it costs as much as the averaging. One sum for
    each client and chain, in the order of the averagings, so the bits depend neither on how clients and chains lie on
    ranks nor on segments.
    """
    for s in range(lo, hi):
        n = log.averagings[s]
        log.averagings[s] = n + 1
        if watched(n):
            for i in range(state.theta.shape[0]):
                log.apart[i, s] += square_distance(state.theta[i, s], state.mean[s])


@jit(internal=True)
def catch_up(state, k, lo, hi):
    """Write the mean to theta for those of chains lo..hi-1 that averaged right before iteration k."""
    for s in range(lo, hi):
        if state.averaged_at[s] == k:
            for i in range(state.theta.shape[0]):
                copy_row(state.mean[s], state.theta[i, s])


@jit(forceinline=True, internal=True)
def averaged(settings, state, work, after, lo, hi, log):
    """Take the means of the last message as every client's parameter and record them; ``after`` = k + 1.

    What says so is ``averaged_at``: theta follows when somebody wants it (:func:`catch_up`).
    """
    finish(settings, work, 0, lo, hi, state.mean)
    if after > settings.burn_in:
        stand_apart(state, lo, hi, log)
    for s in range(lo, hi):
        state.averaged_at[s] = after
    record(settings, state.mean, after, lo, hi, log)
