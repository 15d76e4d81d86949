"""The chains of a rank in batches: one batch computes while the messages of the others are under way.

All batches make the same iterations. A *stage* lies between two messages: each batch in turn waits for its last message
and takes what it brought, computes up to its next one and sends that. So a message has the time that the other batches
need for a stage, and all ranks send the same messages in the same order. With one batch a message is a plain
``MPI_Allreduce`` and nothing is ever under way.

The results do not depend on the number of batches: chains do not touch one another, and sums over clients are exact.
"""

from fald_hpc.kernels.averaging import finish, receive, repeat, send
from fald_hpc.kernels.collectives import progress, wait
from fald_hpc.kernels.jit import instantiate, jit, placeholder
from fald_hpc.kernels.recording import averaged, catch_up, measures_distance
from fald_hpc.kernels.state import (
    ADD,
    AVERAGING,
    BOTH,
    DONE,
    GOES_ON,
    KEEP,
    MPI_ERROR,
    NEVER,
    NOTHING,
    OUTSIDE,
    REFERENCE,
    SHIFT,
    STORE,
)

PIECES = 8
"""Parts of a stage's steps between which the MPI library is called: messages have log2(ranks) parts that may wait for it."""

steps = placeholder("steps")
before = placeholder("before")
gradients = placeholder("gradients")
again = placeholder("again")
take = placeholder("take")
ahead = placeholder("ahead")


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


def in_pieces(problem, settings, state, work, k, stop, lo, hi, ends):
    """Advance chains lo..hi-1 over iterations k..stop-1, in pieces if messages may be under way; a template.

    ``ends``: where the positions go then, of ``STORE``, ``ADD``, ``KEEP``, ``AHEAD`` and ``GOES_ON``; see :func:`stage`.
    """
    if k == stop and ends == KEEP:
        return
    pieces = 1 if settings.batches == 1 else PIECES
    size = max(1, (stop - k + pieces - 1) // pieces)
    while True:
        last = k + size >= stop
        steps(problem, settings, state, work, k, min(stop, k + size), lo, hi, ends if last else KEEP | GOES_ON)
        move_messages(settings, work)
        if last:
            break
        k += size


def compute_again(problem, settings, state, work, kind, first, after, lo, hi):
    """Compute and store the vectors of a message that had only their sums, from iteration ``first`` on; a template."""
    if kind == SHIFT:
        gradients(problem, settings, state, work, after, lo, hi, STORE)
        return
    if kind == REFERENCE and ahead(settings, state.theta.shape[2]):
        after -= 1
    steps(problem, settings, state, work, first, after, lo, hi, STORE)


@jit(internal=True)
def no_steps(problem, settings, state, work, k, stop, lo, hi, ends):
    """Bound to ``steps`` where nothing is added to messages but by :func:`send`."""


@jit(forceinline=True)
def no_steps_ahead(settings, d):
    """Bound to ``ahead`` where steps end at what a message carries."""
    return False


@jit(internal=True)
def no_gradients(problem, settings, state, work, k, lo, hi, ends):
    """Bound to ``gradients`` likewise."""


def arrive(problem, settings, state, work, log, batch, lo, hi):
    """Wait for a batch's last message, if it is under way, and take what it brought; return the status. A template."""
    kind, after, first = work.under_way[batch, 0], work.under_way[batch, 1], work.under_way[batch, 2]
    if kind == NOTHING:
        return DONE
    status = receive(settings, state, work, batch, lo, hi)
    if status == OUTSIDE:
        if first >= 0:
            again(problem, settings, state, work, kind, first, after, lo, hi)
        while status == OUTSIDE:
            status = repeat(settings, state, work, kind, lo, hi)
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


def settle(problem, settings, state, work, log, k, lo, hi):
    """Let all batches of chains lo..hi-1 take what their last messages brought; theta then holds the positions. A template.

    ``k`` is the iteration that all have reached.

    Returns
    -------
    status, k : int
        ``DONE`` and -1, or a failure and the iteration after the message that told of it.
    """
    for batch in range(settings.batches):
        first, last = share(lo, hi, settings.batches, batch)
        status = take(problem, settings, state, work, log, batch, first, last)
        if status != DONE:
            abandon(settings, work)
            return status, work.under_way[batch, 1]
    catch_up(state, k, lo, hi)
    if state.averaged_at[lo] != k and (work.lanes_x_at[0, lo] == k or work.lanes_x_at[1, lo] == k):
        again(problem, settings, state, work, AVERAGING, k, k, lo, hi)
    # from here on theta has the word
    for chain in range(lo, hi):
        work.lanes_x_at[0, chain] = work.lanes_x_at[1, chain] = NEVER
    return DONE, -1


def stage(problem, settings, state, work, log, kind, k, event, lo, hi):
    """Take chains lo..hi-1 from iteration k to the message that iteration ``event`` needs, and send it; a template.

    ``before(problem, settings, state, work, kind, k, event, stop, lo, hi, ends)`` advances some chains to ``stop`` and
    puts what the message carries into ``state.theta`` or ``work.gradient``, or adds it to the message, or both
    (``ends``: ``STORE``, ``ADD``; ``AHEAD`` if that is of before the last step; ``GOES_ON`` if more steps of the gap follow).
    Where it only adds, it says in ``work.added`` from which iteration on the vectors can be computed again, in case that a
    value lies outside its window.

    The positions of a chain right after an averaging are its mean; theta need not say so before the end of a segment. Nor
    where they were to be kept (``KEEP``): then ``work.lanes_x`` may have them.

    Parameters
    ----------
    kind : int
        What the message carries; ``NOTHING``: none is sent.
    k, event : int
        Iterations; ``stop`` is ``event`` for ``NOTHING``, and for ``REFERENCE`` where steps do not go ahead of what they add;
        the iteration after it for others.

    Returns
    -------
    status, k : int
        ``DONE`` and ``stop``, or a failure and the iteration after the message that told of it.
    """
    waits = kind == NOTHING or (kind == REFERENCE and not ahead(settings, state.theta.shape[2]))
    stop = event if waits else event + 1
    for batch in range(settings.batches):
        first, last = share(lo, hi, settings.batches, batch)
        status = take(problem, settings, state, work, log, batch, first, last)
        if status != DONE:
            abandon(settings, work)
            return status, work.under_way[batch, 1]
        # theta is wanted where clients' distances from their mean are measured
        ends = STORE | GOES_ON if kind == NOTHING else ADD
        if kind in (AVERAGING, BOTH) and measures_distance(settings, log, stop, first):
            ends |= STORE
        before(problem, settings, state, work, kind, k, event, stop, first, last, ends)
        if kind != NOTHING and send(settings, state, work, kind, stop, batch, first, last) != 0:
            work.under_way[batch, 0] = NOTHING
            abandon(settings, work)
            return MPI_ERROR, stop
    return DONE, stop


def message_functions(label, cache, prepare, fused_steps, fused_gradients, steps_ahead):
    """Return the instances of :func:`stage` and :func:`settle` for a sampler, by the names that its segment calls them.

    Parameters
    ----------
    label : str
        Of the sampler and the potential.
    cache : bool
        Whether they may be cached on disk.
    prepare, fused_steps, fused_gradients : callable
        The sampler's ``before``; ``steps`` and ``gradients`` where they add to messages, else :func:`no_steps` and
        :func:`no_gradients`.
    steps_ahead : callable
        Whether those steps go ahead of what they add, else :func:`no_steps_ahead`.
    """
    recompute = instantiate(
        compute_again, label, cache=cache, internal=True, gradients=fused_gradients, steps=fused_steps, ahead=steps_ahead
    )
    one = instantiate(arrive, label, cache=cache, forceinline=True, internal=True, again=recompute)
    return {
        "until_message": instantiate(stage, label, cache=cache, merge=True, before=prepare, take=one, ahead=steps_ahead),
        "settle": instantiate(settle, label, cache=cache, internal=True, take=one, again=recompute),
    }
