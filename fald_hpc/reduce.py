"""Exact means over all clients outside the loop: mode, standardisation, curvature and drift rest on the chain's own sums."""

import numpy as np

from fald_hpc.comm import Serial
from fald_hpc.kernels import exact_sum


def mean_over_clients(values: np.ndarray, n_clients: int, group: Serial) -> np.ndarray:
    """Return the correctly rounded mean of one array per client, equal on all ranks and on any layout.

    Parameters
    ----------
    values : float64[c, ...]
        Arrays of this rank's clients; finite.
    n_clients : int
        b, clients of all ranks of the group.
    group : communicator
        The ranks that together host every client once.

    Raises
    ------
    FloatingPointError
        If a value of any client is not finite.
    """
    flat = np.ascontiguousarray(values, np.float64).reshape(values.shape[0], -1)
    largest = float(group.maximum(np.array([np.abs(flat).max(initial=0.0) if np.isfinite(flat).all() else np.inf]))[0])
    if not largest <= 2.0**exact_sum.MAX_WINDOW:
        raise FloatingPointError("a client's value is not finite")
    window = exact_sum.window_for(largest)
    width = exact_sum.grid_bits(n_clients)
    bins = np.zeros(exact_sum.BINS * flat.shape[1])
    exact_sum.add_clients(flat[:, np.newaxis], 0, window, width, bins)
    out = np.empty(flat.shape[1])
    exact_sum.mean(group.total(bins), float(n_clients), out)
    return out.reshape(values.shape[1:])
