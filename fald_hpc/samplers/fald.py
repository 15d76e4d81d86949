"""FALD, federated averaging Langevin dynamics: Algorithm 2 of the paper, specification section 2.

Iteration k -> k+1, for every client i of b, step size γ (parameter² per nat)::

    S          a minibatch of client i, uniform without replacement
    G        = g_S(X^i)
    X̃^i      = X^i - γ G + sqrt(2γ) ( sqrt(τ/b) Z + sqrt(1-τ) Z^i )       Z common, Z^i private, all N(0, I)
    B        ~ Bernoulli(p_c), one coin for all clients
    X^i      = (1/b) Σ_j X̃^j  if B,  else X̃^i

With different clients the mean is biased by local steps between averagings; VR-FALD* removes that.
With b = 1 and p_c = 1 this is SGLD, at full batch LSD (unadjusted Langevin).
"""

from dataclasses import dataclass
from functools import cache

from fald_hpc.kernels.batches import in_pieces, message_functions, no_gradients, no_steps, no_steps_ahead
from fald_hpc.kernels.coins import AVERAGE
from fald_hpc.kernels.jit import instantiate, placeholder
from fald_hpc.kernels.langevin import local_steps
from fald_hpc.kernels.recording import record_local
from fald_hpc.kernels.schedule import next_event, stream
from fald_hpc.kernels.state import AVERAGES, AVERAGING, DONE, NOTHING
from fald_hpc.samplers.base import Sampler

gradient = placeholder("gradient")
advance = placeholder("advance")
until_message = placeholder("until_message")
settle = placeholder("settle")


def estimate(problem, state, i, s, x, rows, out):
    """Write G = g_S(x) for local client i."""
    return gradient(problem, i, x, rows, out)


def before(problem, settings, state, work, kind, k, event, stop, lo, hi, ends):
    """Advance chains lo..hi-1 from iteration k to stop: X̃ is then what a message carries."""
    advance(problem, settings, state, work, k, stop, lo, hi, ends)


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
        event = next_event(settings, work, chain, AVERAGE, k, limit)
        averages = event < limit
        kind = AVERAGING if averages else NOTHING
        status, k = until_message(problem, settings, state, work, log, kind, k, event, lo, hi)
        if status != DONE:
            return status, k
        if averages:
            state.tally[AVERAGES] += 1
            if k >= soft_stop:
                break
        elif settings.every_step:
            status = record_local(settings, state, work, k, lo, hi, log)
            if status != DONE:
                return status, k
    status, at = settle(problem, settings, state, work, log, k, lo, hi)
    return status, k if status == DONE else at


@dataclass(frozen=True)
class FALD(Sampler):
    """Federated averaging Langevin dynamics.

    Parameters
    ----------
    step_size : float or "auto"
        γ, parameter² per nat; "auto" derives it from the clients' curvature (:mod:`fald_hpc.step_size`).
    comm_prob : float
        p_c in (0, 1]: probability that an iteration ends with averaging.
    noise_sharing : float
        τ in [0, 1]: share of the noise variance that is common to all clients.
    batch_size : int or "full"
        Rows of a minibatch; a client with fewer rows uses all of them.
    """

    name = "fald"
    uses_reference = False

    @staticmethod
    @cache
    def compiled(kernels):
        """Return the compiled segment for a potential's kernels."""
        label = f"fald_{kernels.label}"
        one = instantiate(estimate, label, cache=kernels.cache, forceinline=True, internal=True, gradient=kernels.gradient)
        steps = instantiate(
            local_steps, label, cache=kernels.cache, merge=True, estimate=one, read_ahead=kernels.read_ahead
        )
        again = no_steps
        parts = kernels.fald_parts
        if kernels.steps_ahead is not None:
            bound = parts | {"plain": no_steps}
            again = instantiate(kernels.advance, f"{label}_again", cache=kernels.cache, internal=True, **bound)
        if kernels.advance is not None:
            bound = {"plain": steps} | parts
            steps = instantiate(kernels.advance, label, cache=kernels.cache, merge=True, **bound)
        pieces = instantiate(in_pieces, label, cache=kernels.cache, merge=True, steps=steps)
        work = instantiate(before, label, cache=kernels.cache, merge=True, advance=pieces)
        messages = message_functions(label, kernels.cache, work, again, no_gradients, no_steps_ahead)
        return instantiate(segment, label, cache=kernels.cache, **messages)
