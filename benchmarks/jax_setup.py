"""JAX as these benchmarks use it: double precision, all cores of the process, and a timer that waits for the result."""

import time

import jax

jax.config.update("jax_enable_x64", True)

GENERATORS = ("threefry2x32", "rbg")
"""JAX's default generator, and the faster one that its documentation offers; the faster of the two is reported."""


def timer(run, units):
    """Return what measures seconds per unit of a jitted function; it is compiled now.

    Parameters
    ----------
    run : callable
        Takes a key and returns arrays.
    units : int
        Units of work of a call.
    """
    keys = [jax.random.key(seed, impl=run.generator) for seed in range(8)]
    begun = time.perf_counter()
    jax.block_until_ready(run(keys[0]))
    compiling = time.perf_counter() - begun
    calls = 0

    def measure():
        nonlocal calls
        calls += 1
        key = keys[calls % len(keys)]
        begun = time.perf_counter()
        jax.block_until_ready(run(key))
        return (time.perf_counter() - begun) / units

    measure.compile_seconds = compiling
    return measure


def fastest(variants, units):
    """Return the timer and the name of the fastest of some jitted functions, each tried a few times."""
    timers = {name: timer(run, units) for name, run in variants.items()}
    tried = {name: min(measure() for _ in range(3)) for name, measure in timers.items()}
    name = min(tried, key=tried.get)
    return timers[name], name


class Run:
    """A jitted function of a key and of data, with the generator that the key is of.

    The data are arguments: XLA would spend minutes on folding arrays that a function closes over.
    """

    def __init__(self, function, generator, data=()):
        self.function, self.generator, self.data = jax.jit(function), generator, data

    def __call__(self, key):
        """Run it."""
        return self.function(key, *self.data)
