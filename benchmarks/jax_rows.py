"""FALD and VR-FALD* for regressions on minibatches in JAX: one jitted scan, vectorised over clients.

One chain. Rows: float64[b, n, p], K columns of scores (1: logistic; more: softmax). Minibatches are drawn with
replacement by ``random.randint``, as SGMCMCJax does: without replacement JAX would sort or permute all rows at every step.
VR-FALD* keeps the residuals at the reference, so that its step costs what FALD's costs, as in fald_hpc.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.jax_setup import GENERATORS, Run


def residuals(scores, y):
    """Return the derivative of the loss by the scores: float64[..., K]."""
    if scores.shape[-1] == 1:
        return jax.nn.sigmoid(scores) - y[..., None]
    return jax.nn.softmax(scores, axis=-1) - jax.nn.one_hot(y.astype(int), scores.shape[-1], dtype=scores.dtype)


def scan(b, n, gamma, p, q, batch, steps, reduced):
    """Return a function of a key and data that runs so many iterations."""
    scale = n / batch
    noise = (2.0 * gamma / b) ** 0.5
    chosen = jax.vmap(lambda data, index: data[index])

    def full(rows, labels, y):
        kept = residuals(rows @ y, labels)
        return jnp.mean(jnp.swapaxes(rows, 1, 2) @ kept, axis=0) + y / b, kept

    def step(rows, labels, carry, key):
        x, y, shift, kept, total, squares, count = carry
        coins, subset, shared = jax.random.split(key, 3)
        u = jax.random.uniform(coins, (2,))
        index = jax.random.randint(subset, (b, batch), 0, n)
        z, t = chosen(rows, index), chosen(labels, index)
        r = residuals(z @ x, t)
        if reduced:
            r = r - chosen(kept, index)
        gradient = scale * (jnp.swapaxes(z, 1, 2) @ r)
        gradient = gradient + ((x - y) / b + shift if reduced else x / b)
        moved = x - gamma * gradient + noise * jax.random.normal(shared, y.shape)

        def average(state):
            moved, total, squares, count = state
            center = jnp.mean(moved, axis=0)
            return jnp.broadcast_to(center, moved.shape), total + center, squares + center * center, count + 1

        if reduced:

            def refresh(_):
                center = jnp.mean(x, axis=0)
                return center, *full(rows, labels, center)

            y, shift, kept = lax.cond(u[1] < q, refresh, lambda _: (y, shift, kept), None)
        moved, total, squares, count = lax.cond(
            u[0] < p, average, lambda state: state, (moved, total, squares, count)
        )
        return (moved, y, shift, kept, total, squares, count), None

    def run(key, rows, labels, start):
        x = jnp.broadcast_to(start, (b, *start.shape))
        shift, kept = full(rows, labels, start)
        zero = jnp.zeros(start.shape)
        carry = (x, start, shift, kept, zero, zero, 0)
        return lax.scan(partial(step, rows, labels), carry, jax.random.split(key, steps))[0]

    return run


def variants(rows, labels, start, *settings):
    """Return all forms by name; start: float64[p, K]."""
    data = tuple(jnp.asarray(array) for array in (rows, labels, start))
    return {generator: Run(scan(*rows.shape[:2], *settings), generator, data) for generator in GENERATORS}
