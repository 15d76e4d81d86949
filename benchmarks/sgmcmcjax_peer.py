"""SGMCMCJax: its SGLD and SVRG-Langevin samplers on one client's rows, as its documentation builds them.

Version 0.2.13 imports ``jax.experimental.host_callback``, which JAX has removed since, for its progress bar alone. An
empty stand-in lets it load; the progress bar is off and none of its sampling code is touched.
"""

import sys
import types

import jax
import jax.experimental
import jax.numpy as jnp

from benchmarks import jax_setup


def _load():
    name = "jax.experimental.host_callback"
    if not hasattr(jax.experimental, "host_callback"):
        sys.modules[name] = jax.experimental.host_callback = types.ModuleType(name)
    from sgmcmcjax import samplers

    return samplers


def run(rows, labels, start, gamma, batch, steps, every=None):
    """Return a jitted function of a key: SGLD, or SVRG-Langevin with a refresh ``every`` so many steps.

    Its step dt is our 2γ: drift dt/2 times the gradient, noise sqrt(dt).
    """
    samplers = _load()
    data = (jnp.asarray(rows), jnp.asarray(labels))

    def loglikelihood(x, z, y):
        score = jnp.dot(z, x)
        return y * score - jnp.logaddexp(0.0, score)

    def logprior(x):
        return -0.5 * jnp.dot(x, x)

    if every is None:
        sampler = samplers.build_sgld_sampler(2.0 * gamma, loglikelihood, logprior, data, batch, pbar=False)
    else:
        sampler = samplers.build_sgld_SVRG_sampler(
            2.0 * gamma, loglikelihood, logprior, data, batch, every, pbar=False
        )
    point = jnp.asarray(start)

    def whole(key):
        return sampler(key, steps, point)

    whole.generator = jax_setup.GENERATORS[0]
    return whole
