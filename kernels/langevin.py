"""The local Langevin steps of all clients across a gap between two events: step 2 of the update (specification 2)."""

from fald_hpc.kernels.jit import fma, jit, placeholder
from fald_hpc.kernels.minibatch import choose, n_words
from fald_hpc.kernels.noise import COMMON, PRIVATE, SUBSET, fill_normals, fill_words_flat
from fald_hpc.kernels.state import ROWS_TOUCHED

estimate = placeholder("estimate")


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


def local_steps(problem, settings, state, work, k, stop, lo, hi):
    """Advance X^i of all clients and of chains lo..hi-1 over iterations k..stop-1.

    X^i <- X^i - γ G + sqrt(2γτ/b) Z + sqrt(2γ(1-τ)) Z^i. A template: ``estimate(problem, state, i, s, x, rows, out)``
    writes the sampler's gradient estimate G and returns how many rows it touched (negative: it failed).

    Clients are the outer loop, so that a client's rows stay in cache for all iterations of the gap; the noise of a gap
    is drawn in blocks of iterations.
    """
    block = work.common.shape[1]
    gradient = work.estimate
    for k0 in range(k, stop, block):
        t = min(block, stop - k0)
        if settings.common_scale != 0.0:
            for s in range(lo, hi):
                fill_normals(settings.key, COMMON, settings.first_chain + s, 0, k0, work.common[s, :t])
        for i in range(state.theta.shape[0]):
            n, batch = work.n_rows[i], work.batch[i]
            rows = work.rows[:batch]
            w = n_words(n, batch)
            words = work.words[: t * w]
            if w == 0:
                choose(words, n, batch, work.mark, rows)
            for s in range(lo, hi):
                x = state.theta[i, s]
                chain, client = settings.first_chain + s, settings.first_client + i
                if settings.private_scale != 0.0:
                    fill_normals(settings.key, PRIVATE, chain, client, k0, work.private[:t])
                if w > 0:
                    fill_words_flat(settings.key, SUBSET, chain, client, k0, w // 2, words)
                for r in range(t):
                    if w > 0:
                        choose(words[r * w : (r + 1) * w], n, batch, work.mark, rows)
                    touched = estimate(problem, state, i, s, x, rows, gradient)
                    if touched < 0:
                        if work.failed[0] < 0:
                            work.failed[0], work.failed[1], work.failed[2] = i, s, k0 + r
                        break
                    state.tally[ROWS_TOUCHED] += touched
                    langevin_step(settings, work.common[s, r], work.private[r], gradient, x)
