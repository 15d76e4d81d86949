"""How widely a client's minibatch estimates scatter at a point, with and without the control variate of VR-FALD*.

All minibatches of one row are gone through with the functions that a step calls, so what is measured is what is used.
For n_i rows of N_i, without replacement, both variances are (N_i - n_i) / (n_i (N_i - 1)) of those of one row.
"""

from fald_hpc.kernels.jit import placeholder
from fald_hpc.kernels.recording import square_distance

gradient = placeholder("gradient")
difference = placeholder("difference")


def scatter(problem, i, x, y, kept, at_x, moved, n, row, out):
    """Return the variances of the estimates g_{j}(x) and g_{j}(x) - g_{j}(y) over a uniform row j; a template.

    Parameters
    ----------
    problem, i
        Packed clients, and the local client.
    x, y : float64[d]
        Point and reference point.
    kept : float64[...]
        What the full gradient kept of y.
    at_x, moved : float64[d]
        Means of the two estimates: ∇U^i(x) and ∇U^i(x) - ∇U^i(y).
    n : int
        N_i; 0 gives zeros.
    row : int64[1]
        Scratch.
    out : float64[d]
        Scratch.

    Returns
    -------
    plain, reduced : float
        Traces, nats² per parameter²; -1.0 where a gradient failed.
    """
    plain = reduced = 0.0
    for j in range(n):
        row[0] = j
        if gradient(problem, i, x, row, out) < 0:
            return -1.0, -1.0
        plain += square_distance(out, at_x)
        if difference(problem, i, x, y, kept, row, out) < 0:
            return -1.0, -1.0
        reduced += square_distance(out, moved)
    return plain / max(n, 1), reduced / max(n, 1)
