"""The local Langevin steps of all clients across a gap between two events: step 2 of the update (specification 2)."""

from fald_hpc.kernels.jit import fma, jit, placeholder
from fald_hpc.kernels.minibatch import choose, n_words
from fald_hpc.kernels.noise import COMMON, PRIVATE, SUBSET
from fald_hpc.kernels.normals import fill_normals, fill_words_flat
from fald_hpc.kernels.recording import catch_up
from fald_hpc.kernels.state import ROWS_TOUCHED, SHORT_BATCH

estimate = placeholder("estimate")
read_ahead = placeholder("read_ahead")


@jit(forceinline=True)
def nothing_ahead(problem, i, rows):
    """Bound to ``read_ahead`` where it is not known how rows lie in memory."""


@jit(forceinline=True, internal=True)
def langevin_step(settings, common, private, gradient, x):
    """Move x: float64[d] by one Langevin step, in place."""
    for j in range(x.size):
        moved = fma(-settings.step_size, gradient[j], x[j])
        if settings.common_scale != 0.0:
            moved = fma(settings.common_scale, common[j], moved)
        if settings.private_scale != 0.0:
            moved = fma(settings.private_scale, private[j], moved)
        x[j] = moved


@jit(forceinline=True, internal=True)
def n_together(work, i):
    """Return how many clients from i on take their steps in turns: more than one where steps are short.

    A short step is a chain of operations that wait for each other; those of other clients fill the gaps. Where rows or
    parameters are many, one client at a time keeps them in cache.
    """
    left = work.batch.size - i
    turns = (left + work.private.shape[0] - 1) // work.private.shape[0]
    # equal numbers: one client alone would be as slow as several
    most = (left + turns - 1) // turns
    m = 0
    while m < most:
        if n_words(work.n_rows[i + m], work.batch[i + m]) == 0 or work.batch[i + m] > SHORT_BATCH:
            break
        m += 1
    return max(1, m)


@jit(forceinline=True, internal=True)
def common_rows(settings, work, k, t, lo, hi):
    """Have the common noise of iterations k..k+t-1 of chains lo..hi-1 in work.common; return the row of iteration k.

    It is drawn in blocks ahead, since a gap of few iterations would pay for the beginning of each draw.
    """
    row = k - work.common_at[lo]
    there = row >= 0 and row + t <= work.common.shape[1]
    for s in range(lo, hi):
        if work.common_at[s] != k - row:
            there = False
    if there:
        return row
    for s in range(lo, hi):
        fill_normals(settings.key, COMMON, settings.first_chain + s, 0, k, work.common[s])
        work.common_at[s] = k
    return 0


def local_steps(problem, settings, state, work, k, stop, lo, hi, ends):
    """Advance X^i of all clients and of chains lo..hi-1 over iterations k..stop-1.

    X^i <- X^i - γ G + sqrt(2γτ/b) Z + sqrt(2γ(1-τ)) Z^i. A template: ``estimate(problem, state, i, s, x, rows, out)``
    writes the sampler's gradient estimate G and returns how many rows it touched (negative: it failed). The positions are
    stored, whatever ``ends`` asks for (:mod:`fald_hpc.kernels.batches`).

    Clients are the outer loop, so that a client's rows stay in cache for all iterations of the gap; the noise of a gap
    is drawn in blocks of iterations. A step's minibatch is chosen, and its rows are asked for, during the step before.
    """
    block = work.common.shape[1]
    c = state.theta.shape[0]
    gradient = work.estimate
    catch_up(state, k, lo, hi)
    k0 = k
    while k0 < stop:
        row = common_rows(settings, work, k0, 1, lo, hi) if settings.common_scale != 0.0 else 0
        t = min(block - row, stop - k0)
        first = 0
        while first < c:
            together = n_together(work, first)
            for s in range(lo, hi):
                chain = settings.first_chain + s
                for m in range(together):
                    n, batch = work.n_rows[first + m], work.batch[first + m]
                    client = settings.first_client + first + m
                    w = n_words(n, batch)
                    if settings.private_scale != 0.0:
                        fill_normals(settings.key, PRIVATE, chain, client, k0, work.private[m, :t])
                    if w > 0:
                        fill_words_flat(settings.key, SUBSET, chain, client, k0, w // 2, work.words[m, : t * w])
                    choose(work.words[m, :w], n, batch, work.mark, work.rows[0, m, :batch])
                for r in range(t):
                    for m in range(together):
                        i = first + m
                        n, batch = work.n_rows[i], work.batch[i]
                        w = n_words(n, batch)
                        rows = work.rows[r & 1 if w > 0 else 0, m, :batch]
                        ahead, goes_on = work.rows[(r + 1) & 1, m, :batch], w > 0 and r + 1 < t
                        if goes_on:
                            choose(work.words[m, (r + 1) * w : (r + 2) * w], n, batch, work.mark, ahead)
                            # in two halves: the processor waits if all are asked for at once
                            read_ahead(problem, i, ahead[: (batch + 1) // 2])
                        x = state.theta[i, s]
                        touched = estimate(problem, state, i, s, x, rows, gradient)
                        if touched < 0:
                            if work.failed[0] < 0:
                                work.failed[0], work.failed[1], work.failed[2] = i, s, k0 + r
                        else:
                            state.tally[ROWS_TOUCHED] += touched
                            if goes_on:
                                read_ahead(problem, i, ahead[(batch + 1) // 2 :])
                            langevin_step(settings, work.common[s, row + r], work.private[m, r], gradient, x)
                    if work.failed[0] >= 0:
                        break
            first += together
        k0 += t
