"""FALD and VR-FALD* for dense quadratics in JAX: one jitted scan, vectorised over clients and chains.

State X: float64[b, s, d]. The product of all clients' matrices with all chains is either one batched matrix product or,
for very small d, an elementwise product and a sum that XLA fuses; the faster one is reported. Averaging and refresh are
``lax.cond`` on shared coins, so that they cost nothing when they do not happen. Sums of X̄ and of its squares are kept.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.jax_setup import GENERATORS, Run


def batched(precision, v):
    """Return H_i v_i for all clients and chains as a batched matrix product."""
    return jnp.matmul(v, precision)  # the matrices are symmetric


def fused(precision, v):
    """Return the same as an elementwise product and a sum."""
    return jnp.sum(precision[:, None] * v[..., None, :], axis=-1)


def scan(b, d, gamma, tau, p, q, chains, steps, reduced, product):
    """Return a function of a key and data that runs so many iterations of VR-FALD* (``reduced``) or FALD."""
    common, private = (2.0 * gamma * tau / b) ** 0.5, (2.0 * gamma * (1.0 - tau)) ** 0.5

    def full(precision, mean, y):
        return jnp.mean(product(precision, y[None] - mean[:, None]), axis=0)

    def step(precision, mean, carry, key):
        x, y, shift, total, squares, count = carry
        coins, shared, own = jax.random.split(key, 3)
        u = jax.random.uniform(coins, (2,))
        gradient = product(precision, x - (y[None] if reduced else mean[:, None]))
        if reduced:
            gradient = gradient + shift[None]
        moved = x - gamma * gradient
        if tau > 0.0:
            moved = moved + common * jax.random.normal(shared, (chains, d))[None]
        if tau < 1.0:
            moved = moved + private * jax.random.normal(own, (b, chains, d))

        def average(state):
            moved, total, squares, count = state
            center = jnp.mean(moved, axis=0)
            return jnp.broadcast_to(center, moved.shape), total + center, squares + center * center, count + 1

        if reduced:

            def refresh(_):
                center = jnp.mean(x, axis=0)
                return center, full(precision, mean, center)

            y, shift = lax.cond(u[1] < q, refresh, lambda _: (y, shift), None)
        moved, total, squares, count = lax.cond(
            u[0] < p, average, lambda state: state, (moved, total, squares, count)
        )
        return (moved, y, shift, total, squares, count), None

    def run(key, precision, mean, start):
        y = jnp.broadcast_to(start, (chains, d))
        x = jnp.broadcast_to(y, (b, chains, d))
        zero = jnp.zeros((chains, d))
        carry = (x, y, full(precision, mean, y), zero, zero, 0)
        return lax.scan(partial(step, precision, mean), carry, jax.random.split(key, steps))[0]

    return run


def variants(precision, mean, start, *settings):
    """Return all forms by name."""
    data = tuple(jnp.asarray(array) for array in (precision, mean, start))
    return {
        f"{form.__name__}, {generator}": Run(scan(*mean.shape, *settings, form), generator, data)
        for form in (batched, fused)
        for generator in GENERATORS
        if form is batched or mean.shape[1] <= 4
    }
