"""The chains of a rank in batches: one batch computes while the messages of the others are under way.

All batches make the same iterations. A *stage* lies between two messages: each batch in turn waits for its last message
and takes what it brought, computes up to its next one and sends that. So a message has the time that the other batches
need for a stage, and all ranks send the same messages in the same order. With one batch a message is a plain
``MPI_Allreduce`` and nothing is ever under way.

The results do not depend on the number of batches: chains do not touch one another, and sums over clients are exact.
"""

from fald_hpc.kernels.averaging import finish, receive, send
from fald_hpc.kernels.collectives import progress, wait
from fald_hpc.kernels.jit import jit, placeholder
from fald_hpc.kernels.recording import averaged
from fald_hpc.kernels.state import BOTH, DONE, MPI_ERROR, NOTHING, REFERENCE, SHIFT

PIECES = 8
"""Parts of a stage's steps between which the MPI library is called: messages have log2(ranks) parts that may wait for it."""

steps = placeholder("steps")
before = placeholder("before")


@jit(forceinline=True)
def share(lo, hi, parts, part):
    """Return the first and one past the last of a batch's chains, of lo..hi-1: sizes differ by at most one."""
    size = (hi - lo) // parts
    larger = (hi - lo) % parts
    first = lo + part * size + min(part, larger)
    return first, first + size + (1 if part < larger else 0)


@jit(forceinline=True, internal=True)
def move_messages(settings, work):
    """Call the MPI library, so that it moves the messages under way."""
    if settings.batches > 1:
        for batch in range(settings.batches):
            if work.under_way[batch, 0] != NOTHING:
                progress(work.requests[batch])


def in_pieces(problem, settings, state, work, k, stop, lo, hi):
    """Advance chains lo..hi-1 over iterations k..stop-1, in pieces if messages may be under way; a template."""
    if settings.batches == 1:
        steps(problem, settings, state, work, k, stop, lo, hi)
        return
    size = max(1, (stop - k + PIECES - 1) // PIECES)
    for first in range(k, stop, size):
        steps(problem, settings, state, work, first, min(stop, first + size), lo, hi)
        move_messages(settings, work)


@jit(forceinline=True, internal=True)
def arrive(settings, state, work, log, batch, lo, hi):
    """Wait for a batch's last message, if it is under way, and take what it brought; return the status."""
    kind, after = work.under_way[batch, 0], work.under_way[batch, 1]
    if kind == NOTHING:
        return DONE
    status = receive(settings, state, work, batch, lo, hi)
    if status != DONE:
        return status
    if kind == REFERENCE:
        finish(settings, work, 0, lo, hi, work.pending)
    elif kind == SHIFT:
        finish(settings, work, 0, lo, hi, state.shift)
    else:
        if kind == BOTH:
            finish(settings, work, 1, lo, hi, work.pending)
        averaged(settings, state, work, after, lo, hi, log)
    return DONE


@jit(internal=True)
def abandon(settings, work):
    """Wait for all messages under way and forget them, so that none outlives a failure; all ranks do this together."""
    for batch in range(settings.batches):
        if settings.batches > 1 and work.under_way[batch, 0] != NOTHING:
            wait(work.requests[batch])
        work.under_way[batch, 0] = NOTHING


@jit(internal=True)
def settle(settings, state, work, log, lo, hi):
    """Let all batches of chains lo..hi-1 take what their last messages brought.

    Returns
    -------
    status, k : int
        ``DONE`` and -1, or a failure and the iteration after the message that told of it.
    """
    for batch in range(settings.batches):
        first, last = share(lo, hi, settings.batches, batch)
        status = arrive(settings, state, work, log, batch, first, last)
        if status != DONE:
            abandon(settings, work)
            return status, work.under_way[batch, 1]
    return DONE, -1


def stage(problem, settings, state, work, log, kind, k, event, lo, hi):
    """Take chains lo..hi-1 from iteration k to the message that iteration ``event`` needs, and send it; a template.

    ``before(problem, settings, state, work, kind, k, event, stop, lo, hi)`` advances some chains to ``stop`` and puts
    what the message carries into ``state.theta`` or ``work.gradient``.

    Parameters
    ----------
    kind : int
        What the message carries; ``NOTHING``: none is sent.
    k, event : int
        Iterations; ``stop`` is ``event`` for ``NOTHING`` and ``REFERENCE``, the iteration after it for others.

    Returns
    -------
    status, k : int
        ``DONE`` and ``stop``, or a failure and the iteration after the message that told of it.
    """
    stop = event if kind in (NOTHING, REFERENCE) else event + 1
    for batch in range(settings.batches):
        first, last = share(lo, hi, settings.batches, batch)
        status = arrive(settings, state, work, log, batch, first, last)
        if status != DONE:
            abandon(settings, work)
            return status, work.under_way[batch, 1]
        before(problem, settings, state, work, kind, k, event, stop, first, last)
        if kind != NOTHING and send(settings, state, work, kind, stop, batch, first, last) != 0:
            work.under_way[batch, 0] = NOTHING
            abandon(settings, work)
            return MPI_ERROR, stop
    return DONE, stop
