"""VR-FALD*, variance-reduced FALD with drift correction: Algorithm 3 of the paper, specification section 2.

Iteration k -> k+1, for every client i of b; all clients share the reference Y and the shift C::

    S          a minibatch of client i, uniform without replacement
    G        = g_S(X^i) - g_S(Y) + C                                       the same S twice, Y and C from before
    X̃^i      = X^i - γ G + sqrt(2γ) ( sqrt(τ/b) Z + sqrt(1-τ) Z^i )       Z common, Z^i private, all N(0, I)
    B        ~ Bernoulli(p_c), B' ~ Bernoulli(q_c), independent, common to all clients
    X^i      = (1/b) Σ_j X̃^j  if B,  else X̃^i
    Y, C     = (1/b) Σ_j X^j of before the step, (1/b) Σ_j ∇U^j(Y)  if B'

Start: Y = X_0 and C = (1/b) Σ_j ∇U^j(Y). With b = 1 and p_c = 1 this is SVRG-LD.
"""

from dataclasses import dataclass
from functools import cache

from fald_hpc.kernels.averaging import exchange, finish
from fald_hpc.kernels.batches import in_pieces, message_functions, no_gradients, no_steps, no_steps_ahead
from fald_hpc.kernels.coins import AVERAGE, REFRESH
from fald_hpc.kernels.jit import instantiate, placeholder
from fald_hpc.kernels.langevin import local_steps
from fald_hpc.kernels.recording import copy, record_local
from fald_hpc.kernels.refresh import full_gradients as plain_gradients
from fald_hpc.kernels.schedule import coins_of, next_event, stream
from fald_hpc.kernels.state import (
    AHEAD,
    AVERAGES,
    AVERAGING,
    BOTH,
    DONE,
    GOES_ON,
    KEEP,
    NOTHING,
    REFERENCE,
    REFRESHES,
    SHIFT,
    STORE,
)
from fald_hpc.samplers.base import Sampler

difference = placeholder("difference")
full_gradients = placeholder("full_gradients")
advance = placeholder("advance")
gradients = placeholder("gradients")
until_message = placeholder("until_message")
settle = placeholder("settle")


def estimate(problem, state, i, s, x, rows, out):
    """Write G = g_S(x) - g_S(Y) + C for local client i and chain s."""
    touched = difference(problem, i, x, state.reference[s], state.kept[s], rows, out)
    for j in range(out.size):
        out[j] += state.shift[s, j]
    return touched


def gradients_at_reference(problem, settings, state, work, k, lo, hi, ends):
    """Take work.pending as the reference Y of chains lo..hi-1; compute the ∇U^i(Y) of this rank."""
    copy(work.pending, lo, hi, state.reference)
    full_gradients(problem, settings, state, work, k, lo, hi, ends)


def refresh(problem, settings, state, work, k, lo, hi):
    """Take work.pending as the reference Y of chains lo..hi-1 and compute the shift C: one message (the start)."""
    gradients(problem, settings, state, work, k, lo, hi, STORE)
    status = exchange(settings, state, work, SHIFT, lo, hi)
    if status == DONE:
        finish(settings, work, 0, lo, hi, state.shift)
    return status


def before(problem, settings, state, work, kind, k, event, stop, lo, hi, ends):
    """Advance chains lo..hi-1 from iteration k to stop and prepare what a message of iteration ``event`` carries.

    A new reference is the mean of X^i before that iteration's step: a message of its own (``REFERENCE``), or together
    with X̃ (``BOTH``); after an averaging it is known. The step itself does not depend on it.
    """
    until = stop
    if kind == BOTH:
        # two vectors in one message, rarely: both are stored
        until = event
        ends = STORE
    elif state.averaged_at[lo] == event:
        copy(state.mean, lo, hi, work.pending)
    if kind == REFERENCE:
        # the steps go on from there, or have taken the one that still has the last reference
        ends |= KEEP | GOES_ON if stop == event else KEEP | AHEAD
    # one call in a loop, as in segment
    while True:
        wanted = KEEP if kind == SHIFT else ends
        advance(problem, settings, state, work, k, until, lo, hi, wanted if until == stop else wanted | GOES_ON)
        if until == stop:
            break
        for i in range(state.theta.shape[0]):
            copy(state.theta[i], lo, hi, work.gradient[i])
        k, until = until, stop
    if kind == SHIFT:
        gradients(problem, settings, state, work, stop, lo, hi, ends)


def segment(problem, settings, state, work, log, k, soft_stop, stop, shared, lo, hi):
    """Run chains lo..hi-1 from iteration k to the first averaging at or after soft_stop, at most to stop.

    Returns
    -------
    status, k : int
        A result of :mod:`fald_hpc.kernels.state`, and the iteration reached.
    """
    chain = stream(shared, settings.first_chain, lo)
    equal_at = state.averaged_at[lo]
    while k < stop:
        limit = min(stop, k + 1) if settings.every_step else stop
        event = next_event(settings, work, chain, AVERAGE | REFRESH, k, limit)
        coins = coins_of(settings, work, chain, event) if event < limit else 0
        refreshes = (coins & REFRESH) != 0
        averages = (coins & AVERAGE) != 0
        kind = NOTHING
        if refreshes and equal_at != event:
            kind = BOTH if averages else REFERENCE
        elif averages:
            kind = AVERAGING
        # one call in a loop: the compiler makes a copy of all that it contains for each call
        for part in range(2 if refreshes else 1):
            if part == 1:
                kind = SHIFT
            if kind == NOTHING and refreshes:
                continue
            status, k = until_message(problem, settings, state, work, log, kind, k, event, lo, hi)
            if status != DONE:
                return status, k
        if averages:
            equal_at = event + 1
            state.tally[AVERAGES] += 1
        if refreshes:
            state.tally[REFRESHES] += 1
        if averages and k >= soft_stop:
            break
        if settings.every_step and not averages:
            # the buffers are needed: what they hold is taken first
            status, at = settle(problem, settings, state, work, log, k, lo, hi)
            if status != DONE:
                return status, at
            status = record_local(settings, state, work, k, lo, hi, log)
            if status != DONE:
                return status, k
    status, at = settle(problem, settings, state, work, log, k, lo, hi)
    return status, k if status == DONE else at


@dataclass(frozen=True)
class VRFALDStar(Sampler):
    """Variance-reduced FALD with drift correction.

    Parameters
    ----------
    step_size : float or "auto"
        γ, parameter² per nat; "auto" derives it from the clients' curvature (:mod:`fald_hpc.step_size`).
    comm_prob : float
        p_c in (0, 1]: probability that an iteration ends with averaging.
    refresh_prob : float
        q_c in (0, 1]: probability that an iteration refreshes the reference; the theory wants q_c <= p_c.
    noise_sharing : float
        τ in [0, 1]: share of the noise variance that is common to all clients.
    batch_size : int or "full"
        Rows of a minibatch; a client with fewer rows uses all of them.
    """

    refresh_prob: float = 0.1

    name = "vr_fald_star"
    uses_reference = True

    @staticmethod
    @cache
    def compiled_refresh(kernels):
        """Return the compiled refresh for a potential's kernels."""
        label = f"vr_fald_star_{kernels.label}"
        at = VRFALDStar._gradients_at_reference(kernels)
        return instantiate(refresh, label, cache=kernels.cache, gradients=at)

    @staticmethod
    @cache
    def _gradients_at_reference(kernels):
        label = f"vr_fald_star_{kernels.label}"
        options = {"cache": kernels.cache, "internal": True}
        gradients = instantiate(plain_gradients, label, full_gradient=kernels.full_gradient, **options)
        if kernels.full_gradients is not None:
            gradients = instantiate(kernels.full_gradients, label, plain=gradients, **options)
        return instantiate(gradients_at_reference, label, full_gradients=gradients, **options)

    @staticmethod
    @cache
    def compiled(kernels):
        """Return the compiled segment for a potential's kernels."""
        label = f"vr_fald_star_{kernels.label}"
        at = VRFALDStar._gradients_at_reference(kernels)
        one = instantiate(estimate, label, cache=kernels.cache, forceinline=True, internal=True, difference=kernels.difference)
        steps = instantiate(
            local_steps, label, cache=kernels.cache, merge=True, estimate=one, read_ahead=kernels.read_ahead
        )
        again, gradients_again = no_steps, no_gradients
        parts = kernels.vr_parts
        ahead = no_steps_ahead
        if kernels.steps_ahead is not None:
            bound = parts | {"plain": no_steps}
            again = instantiate(kernels.advance, f"{label}_again", cache=kernels.cache, internal=True, **bound)
            gradients_again, ahead = at, kernels.steps_ahead
        if kernels.advance is not None:
            bound = {"plain": steps} | parts
            steps = instantiate(kernels.advance, label, cache=kernels.cache, merge=True, **bound)
        pieces = instantiate(in_pieces, label, cache=kernels.cache, merge=True, steps=steps)
        work = instantiate(
            before, label, cache=kernels.cache, merge=True, advance=pieces, gradients=at
        )
        messages = message_functions(label, kernels.cache, work, again, gradients_again, ahead)
        return instantiate(segment, label, cache=kernels.cache, **messages)
