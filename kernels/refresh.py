"""The full gradients at the reference of all clients: what a refresh of VR-FALD* averages (specification 2)."""

from fald_hpc.kernels.jit import placeholder
from fald_hpc.kernels.state import ROWS_TOUCHED

full_gradient = placeholder("full_gradient")


def full_gradients(problem, settings, state, work, k, lo, hi, ends):
    """Write ∇U^i(Y) of all clients and of chains lo..hi-1 to work.gradient; ``k`` is what a failure reports.

    They are stored, whatever ``ends`` asks for (:mod:`fald_hpc.kernels.batches`).

    A template: ``full_gradient(problem, i, y, kept, out)`` is the potential's and returns rows touched (negative: failed).
    """
    for s in range(lo, hi):
        for i in range(state.theta.shape[0]):
            touched = full_gradient(problem, i, state.reference[s], state.kept[s], work.gradient[i, s])
            if touched < 0:
                if work.failed[0] < 0:
                    work.failed[0], work.failed[1], work.failed[2] = i, s, k
            else:
                state.tally[ROWS_TOUCHED] += touched
