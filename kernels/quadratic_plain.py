"""The local Langevin steps of dense quadratics, one chain and client at a time: step 2 of the update (specification 2).

U^i(x) = (x - μ_i)ᵀ H_i (x - μ_i)/2 has ∇U^i(x) = H_i (x - μ_i), and ∇U^i(x) - ∇U^i(Y) = H_i (x - Y). What moves all clients of a
chain alike, the common noise and -γ C, is where the product begins::

    X^i <- X^i + ( sqrt(2γτ/b) Z - γ C + sqrt(2γ(1-τ)) Z^i + (-γ H_i) (X^i - Y) )

with 0 for C and μ_i for Y without a reference. Through a gap it is X^i - Y that moves, ``state.offset``; theta is its sum with Y
where iterations end. :mod:`fald_hpc.kernels.quadratic` does the same in lanes, with the same bits.
"""

from fald_hpc.kernels.jit import fma, jit, placeholder
from fald_hpc.kernels.langevin import common_rows
from fald_hpc.kernels.noise import PRIVATE
from fald_hpc.kernels.normals import fill_normals
from fald_hpc.kernels.recording import catch_up
from fald_hpc.kernels.state import GOES_ON

uses_reference = placeholder("uses_reference")


@jit(forceinline=True, internal=True)
def _move(settings, matrix, base, private, move, offset):
    """Move x - Y: float64[d] by one step; ``matrix`` is -γ H, of which columns are added in ascending order."""
    d = offset.size
    for j in range(d):
        move[j] = fma(settings.private_scale, private[j], base[j]) if settings.private_scale != 0.0 else base[j]
    for k in range(d):
        for j in range(d):
            move[j] = fma(matrix[k, j], offset[k], move[j])
    for j in range(d):
        offset[j] += move[j]


@jit(forceinline=True, internal=True)
def _translate(problem, state, i, s, has_reference, back):
    """Write the offset of a client and chain from its position, or ``back``."""
    for j in range(state.theta.shape[2]):
        origin = state.reference[s, j] if has_reference else problem.mean[i, j]
        if back:
            state.theta[i, s, j] = state.offset[i, s, j] + origin
        else:
            state.offset[i, s, j] = state.theta[i, s, j] - origin


def steps(problem, settings, state, work, k, stop, lo, hi, ends):
    """Advance all clients of chains lo..hi-1 over iterations k..stop-1; a template.

    The positions are stored, whatever ``ends`` asks for, but for ``GOES_ON`` (:mod:`fald_hpc.kernels.batches`).
    """
    c, _, d = state.theta.shape
    block = work.common.shape[1]
    base, move = work.base, work.estimate
    catch_up(state, k, lo, hi)
    for s in range(lo, hi):
        if k < stop and state.offset_at[s] != k:
            for i in range(c):
                _translate(problem, state, i, s, uses_reference(), False)
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
                for r in range(t):
                    _move(settings, problem.moves[i], base[r], work.private[0, r], move, state.offset[i, s])
        k0 += t
    if k == stop:
        return
    for s in range(lo, hi):
        for i in range(c):
            _translate(problem, state, i, s, uses_reference(), True)
        if ends & GOES_ON:
            state.offset_at[s] = stop
