"""The local Langevin steps of dense quadratics, one chain and client at a time: step 2 of the update (specification 2).

U^i(x) = (x - μ_i)ᵀ H_i (x - μ_i)/2 has ∇U^i(x) = H_i (x - μ_i), and ∇U^i(x) - ∇U^i(Y) = H_i (x - Y). What moves all clients of a
chain alike, the common noise and -γ C, is where the product begins::

    X^i <- X^i + ( sqrt(2γτ/b) Z - γ C + sqrt(2γ(1-τ)) Z^i + (-γ H_i) (X^i - Y) )

with 0 for C and μ_i for Y without a reference. :mod:`fald_hpc.kernels.quadratic` does the same in lanes, with the same bits.
"""

from fald_hpc.kernels.jit import fma, jit, placeholder
from fald_hpc.kernels.langevin import common_rows
from fald_hpc.kernels.noise import PRIVATE
from fald_hpc.kernels.normals import fill_normals
from fald_hpc.kernels.recording import catch_up

uses_reference = placeholder("uses_reference")


@jit(forceinline=True, internal=True)
def _move(settings, matrix, origin, base, private, move, x):
    """Move x: float64[d] by one step; ``matrix`` is -γ H, of which columns are added in ascending order."""
    d = x.size
    for j in range(d):
        move[j] = fma(settings.private_scale, private[j], base[j]) if settings.private_scale != 0.0 else base[j]
    for k in range(d):
        v = x[k] - origin[k]
        for j in range(d):
            move[j] = fma(matrix[k, j], v, move[j])
    for j in range(d):
        x[j] += move[j]


def steps(problem, settings, state, work, k, stop, lo, hi, ends):
    """Advance all clients of chains lo..hi-1 over iterations k..stop-1; a template.

    The positions are stored, whatever ``ends`` asks for (:mod:`fald_hpc.kernels.batches`).
    """
    c, _, d = state.theta.shape
    block = work.common.shape[1]
    base, move = work.base, work.estimate
    catch_up(state, k, lo, hi)
    k0 = k
    while k0 < stop:
        row = common_rows(settings, work, k0, 1, lo, hi) if settings.common_scale != 0.0 else 0
        t = min(block - row, stop - k0)
        for s in range(lo, hi):
            for r in range(t):
                for j in range(d):
                    base[r, j] = settings.common_scale * work.common[s, row + r, j] if settings.common_scale != 0.0 else 0.0
                    if uses_reference():
                        base[r, j] = fma(-settings.step_size, state.shift[s, j], base[r, j])
            for i in range(c):
                if settings.private_scale != 0.0:
                    chain, client = settings.first_chain + s, settings.first_client + i
                    fill_normals(settings.key, PRIVATE, chain, client, k0, work.private[0, :t])
                origin = state.reference[s] if uses_reference() else problem.mean[i]
                for r in range(t):
                    _move(settings, problem.moves[i], origin, base[r], work.private[0, r], move, state.theta[i, s])
        k0 += t
