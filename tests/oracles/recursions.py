"""FALD and VR-FALD* on quadratics, as affine recursions with random coefficients (specification, sections 2 and 3).

A state is everything the next iteration needs, centred at the mode x* of the product: the b client parameters,
and for VR-FALD* the reference Y behind them (its shift is the function ``C = mean_j H_j (Y - x*)`` of it).
An iteration is ``s' = M s + c + noise`` where (M, c, covariance of the noise) depends on the coins and the
minibatches alone, which are drawn afresh each iteration: a finite list of outcomes with probabilities.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from .quadratics import Client, Estimate, full, target


class Outcome(NamedTuple):
    """One possible iteration ``s' = matrix @ s + constant + N(0, noise)``."""

    probability: float
    averages: bool
    refreshes: bool
    matrix: np.ndarray
    constant: np.ndarray
    noise: np.ndarray


class Recursion(NamedTuple):
    """All outcomes of an iteration; ``observe @ s + origin`` is the average over clients."""

    outcomes: list[Outcome]
    observe: np.ndarray
    origin: np.ndarray


def noise_covariance(b: int, d: int, step_size: float, noise_sharing: float, printed: bool) -> np.ndarray:
    """Covariance of the noise that one iteration adds to the stacked clients, float64[b d, b d].

    The common part weighs τ/b; ``printed=True`` gives the main text's τ, the erratum of the specification.
    """
    common = noise_sharing if printed else noise_sharing / b
    blocks = (1 - noise_sharing) * np.eye(b) + common * np.ones((b, b))
    return 2 * step_size * np.kron(blocks, np.eye(d))


def averager(b: int, d: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Matrix that replaces every client by the (weighted) average over clients, float64[b d, b d]."""
    w = np.full(b, 1 / b) if weights is None else weights / np.sum(weights)
    return np.kron(np.tile(w, (b, 1)), np.eye(d))


def _choices(clients: Sequence[Client]) -> list[tuple[float, tuple[Estimate, ...]]]:
    """Every combination of the clients' gradient estimates, with its probability."""
    combos = list(product(*clients))
    return [(1 / len(combos), combo) for combo in combos]


def _block_diagonal(blocks: Sequence[np.ndarray]) -> np.ndarray:
    b, d = len(blocks), len(blocks[0])
    out = np.zeros((b * d, b * d))
    for i, block in enumerate(blocks):
        out[i * d : (i + 1) * d, i * d : (i + 1) * d] = block
    return out


def fald(
    clients: Sequence[Client],
    step_size: float,
    comm_prob: float,
    noise_sharing: float,
    *,
    printed_noise: bool = False,
    weights: np.ndarray | None = None,
) -> Recursion:
    """FALD.

    ``printed_noise`` (common noise √τ) and ``weights`` (clients averaged by these instead of equally, as FedAvg
    does) are wrong on purpose: the tests must tell them from the sampler.
    """
    b, d = len(clients), len(clients[0][0].pull)
    centre, _ = target(clients)
    join = averager(b, d, weights)
    noise = noise_covariance(b, d, step_size, noise_sharing, printed_noise)
    outcomes = []
    for chance, combo in _choices(clients):
        matrix = _block_diagonal([np.eye(d) - step_size * e.hessian for e in combo])
        constant = np.concatenate([step_size * (e.pull - e.hessian @ centre) for e in combo])
        outcomes.append(Outcome(chance * (1 - comm_prob), False, False, matrix, constant, noise))
        outcomes.append(Outcome(chance * comm_prob, True, False, join @ matrix, join @ constant, join @ noise @ join.T))
    observe = averager(b, d)[:d]
    return Recursion([o for o in outcomes if o.probability > 0], observe, centre)


def vr_fald_star(
    clients: Sequence[Client],
    step_size: float,
    comm_prob: float,
    refresh_prob: float,
    noise_sharing: float,
    *,
    printed_noise: bool = False,
    wrong_sign: bool = False,
    two_minibatches: bool = False,
    post_step_refresh: bool = False,
) -> Recursion:
    """VR-FALD*: the state is (X^1..X^b, Y), of length (b + 1) d.

    The keywords are wrong on purpose: √τ for the common noise; the control variate ``g_S(Y) - C`` added
    instead of subtracted; a fresh minibatch for each of its two terms; Y taken from the values after the step.
    """
    b, d = len(clients), len(clients[0][0].pull)
    centre, _ = target(clients)
    mean_hessian = np.mean([full(c).hessian for c in clients], axis=0)
    size = (b + 1) * d
    join = np.eye(size)
    join[: b * d, : b * d] = averager(b, d)
    keep = np.zeros((size, size))
    keep[: b * d, : b * d] = noise_covariance(b, d, step_size, noise_sharing, printed_noise)
    sign = 1.0 if wrong_sign else -1.0
    outcomes = []
    pairs = [[(e, f) for e in c for f in (c if two_minibatches else [e])] for c in clients]
    for combo in product(*pairs):
        chance = 1 / np.prod([len(p) for p in pairs])
        step = np.eye(size)
        constant = np.zeros(size)
        for i, (at_x, at_y) in enumerate(combo):
            here = slice(i * d, (i + 1) * d)
            # G = g_S(X) + sign (g_S'(Y) - C), all linear in the centred X and Y
            step[here, here] -= step_size * at_x.hessian
            step[here, b * d :] -= step_size * sign * (at_y.hessian - mean_hessian)
            constant[here] = -step_size * ((at_x.hessian @ centre - at_x.pull) + sign * (at_y.hessian @ centre - at_y.pull))
        fetch = np.zeros((d, size))
        fetch[:, : b * d] = averager(b, d)[:d]
        for averages, refreshes in product((False, True), (False, True)):
            p = (comm_prob if averages else 1 - comm_prob) * (refresh_prob if refreshes else 1 - refresh_prob)
            after = join if averages else np.eye(size)
            matrix, shift, noise = after @ step, after @ constant, after @ keep @ after.T
            if refreshes and not post_step_refresh:
                matrix = matrix.copy()
                matrix[b * d :] = fetch
            elif refreshes:
                renew = np.eye(size)
                renew[b * d :] = fetch
                matrix, shift, noise = renew @ matrix, renew @ shift, renew @ noise @ renew.T
            outcomes.append(Outcome(chance * p, averages, refreshes, matrix, shift, noise))
    observe = np.zeros((d, size))
    observe[:, : b * d] = averager(b, d)[:d]
    return Recursion([o for o in outcomes if o.probability > 0], observe, centre)
