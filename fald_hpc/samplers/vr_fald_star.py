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
from fald_hpc.kernels.coins import AVERAGE, REFRESH
from fald_hpc.kernels.jit import instantiate, placeholder
from fald_hpc.kernels.langevin import local_steps
from fald_hpc.kernels.recording import averaged, copy, record_local
from fald_hpc.kernels.refresh import full_gradients as plain_gradients
from fald_hpc.kernels.schedule import coins_of, next_event, stream
from fald_hpc.kernels.state import AVERAGES, DONE, REFRESHES
from fald_hpc.samplers.base import Sampler

difference = placeholder("difference")
full_gradients = placeholder("full_gradients")
advance = placeholder("advance")
move_reference = placeholder("move_reference")


def estimate(problem, state, i, s, x, rows, out):
    """Write G = g_S(x) - g_S(Y) + C for local client i and chain s."""
    touched = difference(problem, i, x, state.reference[s], state.kept[s], rows, out)
    for j in range(out.size):
        out[j] += state.shift[s, j]
    return touched


def refresh(problem, settings, state, work, k, lo, hi):
    """Take work.pending as the reference Y of chains lo..hi-1 and compute the shift C: one message."""
    copy(work.pending, lo, hi, state.reference)
    full_gradients(problem, settings, state, work, k, lo, hi)
    status = exchange(settings, state, work, work.gradient, state.gradient_window, work.nothing, state.window, lo, hi)
    if status == DONE:
        finish(settings, work, 0, lo, hi, state.shift)
    return status


def segment(problem, settings, state, work, log, k, soft_stop, stop, shared, lo, hi):
    """Run chains lo..hi-1 from iteration k to the first averaging at or after soft_stop, at most to stop.

    Returns
    -------
    status, k : int
        A result of :mod:`fald_hpc.kernels.state`, and the iteration reached.
    """
    chain = stream(shared, settings.first_chain, lo)
    while k < stop:
        limit = min(stop, k + 1) if settings.every_step else stop
        event = next_event(settings, work, chain, AVERAGE | REFRESH, k, limit)
        coins = coins_of(settings, work, chain, event) if event < limit else 0
        refreshes = (coins & REFRESH) != 0
        averages = (coins & AVERAGE) != 0
        together = False
        if refreshes:
            # the new reference is the mean of X^i before this iteration's step; after an averaging it is known
            advance(problem, settings, state, work, k, event, lo, hi)
            k = event
            if state.averaged_at[lo] == event:
                copy(state.mean, lo, hi, work.pending)
            elif averages:
                for i in range(state.theta.shape[0]):
                    copy(state.theta[i], lo, hi, work.gradient[i])
                together = True
            else:
                status = exchange(settings, state, work, state.theta, state.window, work.nothing, state.window, lo, hi)
                if status != DONE:
                    return status, k
                finish(settings, work, 0, lo, hi, work.pending)
        after = event + 1 if event < limit else event
        advance(problem, settings, state, work, k, after, lo, hi)
        k = after
        if averages:
            # X̃ and, where the reference needs it, X of before the step travel together
            second = work.gradient if together else work.nothing
            status = exchange(settings, state, work, state.theta, state.window, second, state.window, lo, hi)
            if status != DONE:
                return status, k
            if together:
                finish(settings, work, 1, lo, hi, work.pending)
            averaged(settings, state, work, 0, k, lo, hi, log)
            state.tally[AVERAGES] += 1
        elif settings.every_step:
            status = record_local(settings, state, work, k, lo, hi, log)
            if status != DONE:
                return status, k
        if refreshes:
            status = move_reference(problem, settings, state, work, k, lo, hi)
            if status != DONE:
                return status, k
            state.tally[REFRESHES] += 1
        if averages and k >= soft_stop:
            break
    return DONE, k


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
        options = {"cache": kernels.cache, "internal": True}
        gradients = instantiate(plain_gradients, label, full_gradient=kernels.full_gradient, **options)
        if kernels.full_gradients is not None:
            gradients = instantiate(kernels.full_gradients, label, plain=gradients, **options)
        return instantiate(refresh, label, cache=kernels.cache, full_gradients=gradients)

    @staticmethod
    @cache
    def compiled(kernels):
        """Return the compiled segment for a potential's kernels."""
        label = f"vr_fald_star_{kernels.label}"
        one = instantiate(estimate, label, cache=kernels.cache, forceinline=True, internal=True, difference=kernels.difference)
        steps = instantiate(local_steps, label, cache=kernels.cache, internal=True, estimate=one)
        if kernels.advance is not None:
            steps = instantiate(kernels.advance, label, cache=kernels.cache, internal=True, plain=steps, **kernels.vr_parts)
        move = VRFALDStar.compiled_refresh(kernels)
        return instantiate(segment, label, cache=kernels.cache, advance=steps, move_reference=move)
