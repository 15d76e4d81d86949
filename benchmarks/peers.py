"""All comparisons, workload by workload."""

import numpy as np

from benchmarks import jax_quadratic, jax_rows, jax_setup, numba_loop, numpy_loop, sgmcmcjax_peer
from benchmarks.comparison import compare
from fald_hpc.bench import images, logistics, normals, problems, quadratics
from fald_hpc.bench.spread import WALL, timed
from fald_hpc.bench.workbench import Case, repeated
from fald_hpc.potentials.logistic import Logistic
from fald_hpc.samplers.fald import FALD
from fald_hpc.samplers.vr_fald_star import VRFALDStar

WORDS = {"fald": "FALD", "vr_fald_star": "VR-FALD*"}


def w1(setting):
    """Compare a normal with NumPy's."""
    out = np.empty((256, 20))
    ours = lambda: min(normals.seconds_of(out, 1, WALL) for _ in range(20))  # noqa: E731
    theirs = lambda: min(timed(lambda: numpy_loop.normals(out), WALL) for _ in range(20)) / out.size  # noqa: E731
    return compare("W1", "normals", ours, {"NumPy standard_normal": (theirs, 4.0, {})}, setting.repeats, "normal")


def w2(setting):
    """Compare dense quadratics in 20 dimensions, 100 clients."""
    found = []
    chains = 16 if setting.quick else 100
    for tau, least in ((1.0, 4.0), (0.0, 5.0)):
        for name in ("fald", "vr_fald_star"):
            found += _quadratic("W2", name, 20, chains, tau, {"JAX": least, "numba": None}, setting)
    return found


def w3(setting):
    """Compare the same in 2 dimensions, one chain."""
    leasts = {"JAX": 25.0, "NumPy": 100.0, "numba": None}
    return [c for name in ("fald", "vr_fald_star") for c in _quadratic("W3", name, 2, 1, 1.0, leasts, setting)]


def _quadratic(workload, name, d, chains, tau, leasts, setting):
    clients, mode, gamma = problems.gaussian(quadratics.CLIENTS, d)
    parts = clients.load(range(quadratics.CLIENTS))
    precision, mean = np.array([part.precision for part in parts]), np.array([part.mean for part in parts])
    case = quadratics.case(name, d, chains, tau, clock=WALL)
    ours = repeated(case, quadratics.longer(setting))["fald"]
    shape = (precision, mean, mode, gamma, tau, quadratics.COINS, quadratics.COINS)
    reduced = name == "vr_fald_star"
    peers = {}
    if "JAX" in leasts:
        steps = _steps(setting, 2e-5 * max(chains, 5))
        measure, form = jax_setup.fastest(
            jax_quadratic.variants(*shape, chains, steps, reduced), steps * chains
        )
        peers["JAX, both cores"] = (measure, leasts["JAX"], {"form": form, "compile_seconds": measure.compile_seconds})
    for peer, module in (("numba", numba_loop), ("NumPy", numpy_loop)):
        if peer in leasts:
            used = 1 if peer == "numba" else chains
            steps = _steps(setting, 3e-5)
            peers[f"{peer} loop"] = (_plain(module.quadratic, (*shape, used, steps, reduced), steps * used),
                                     leasts[peer], {"chains": used})  # fmt: skip
    label = f"{WORDS[name]}, d = {d}, {chains} chain{'s' if chains > 1 else ''}, τ = {tau:g}"
    return compare(workload, label, ours, peers, setting.repeats)


def w4(setting):
    """Compare logistic regression on minibatches: both samplers, two clients; and one client with SGMCMCJax."""
    clients, point, gamma = problems.logistic(logistics.CLIENTS, logistics.ROWS, logistics.FEATURES)
    rows, labels = _rows(clients)
    steps = _steps(setting, 2e-5)
    found = []
    prepared = logistics.cases(clock=WALL)
    for name, leasts in (("fald", (None, None)), ("vr_fald_star", (10.0, 3.0))):
        reduced = name == "vr_fald_star"
        jax_shape = (rows, labels, point[:, None], gamma, 0.1, 0.001, logistics.BATCH, steps, reduced)
        measure, form = jax_setup.fastest(jax_rows.variants(*jax_shape), steps)
        shape = (rows, labels, point, gamma, 0.1, 0.001, logistics.BATCH, steps, reduced)
        peers = {
            "JAX, both cores": (measure, leasts[0], {"form": form, "compile_seconds": measure.compile_seconds}),
            "numba loop": (_plain(numba_loop.logistic, shape, steps), leasts[1], {}),
        }
        label = f"{WORDS[name]}, logistic, 2 clients of 10^4 rows, d = 50, minibatch 10"
        found += compare("W4", label, repeated(prepared[name], setting)["fald"], peers, setting.repeats)
    return found + _one_client(setting, steps)


def _one_client(setting, steps):
    clients, point, gamma = problems.logistic(1, logistics.ROWS, logistics.FEATURES)
    rows, labels = _rows(clients)
    found = []
    for label, sampler, every in (
        ("SGLD", FALD(gamma, 1.0, 1.0, logistics.BATCH), None),
        ("SVRG-Langevin, refresh every 1000 steps", VRFALDStar(gamma, 1.0, 1.0, logistics.BATCH, 0.001), 1000),
    ):
        run = sgmcmcjax_peer.run(rows[0], labels[0], point, gamma, logistics.BATCH, steps, every)
        peers = {"SGMCMCJax": (jax_setup.timer(run, steps), None, {})}
        case = Case(Logistic(), clients, sampler, 1, point, clock=WALL)
        ours = repeated(case, setting)["fald"]
        found += compare("W4", f"{label}, one client", ours, peers, setting.repeats)
    return found


def w7(setting):
    """Compare softmax regression with the shape of MNIST."""
    n = 100 if setting.quick else 3000
    clients, start, gamma = problems.softmax(images.CLIENTS, n, images.PIXELS, images.CLASSES)
    rows, labels = _rows(clients)
    rows = np.concatenate([np.ones((*rows.shape[:2], 1)), rows], axis=2)
    steps = 20 if setting.quick else 100
    shape = (rows, labels, start.reshape(-1, images.CLASSES), gamma, 0.1, 0.001, images.BATCH, steps, True)
    measure, form = jax_setup.fastest(jax_rows.variants(*shape), steps)
    peers = {"JAX, both cores": (measure, 2.0, {"form": form, "compile_seconds": measure.compile_seconds})}
    ours = repeated(images.case(n, WALL), setting)["fald"]
    label = f"VR-FALD*, softmax, d = {images.DIMENSION}, 20 clients of {n} rows, minibatch {images.BATCH}"
    return compare("W7", label, ours, peers, setting.repeats)


def _rows(clients):
    data = clients.load(range(len(clients)))
    return np.array([part.features for part in data]), np.array([part.target for part in data])


def _steps(setting, seconds_of_step):
    """Return iterations of a peer that take about as long as ours, from a guess of its speed."""
    return max(20, int(setting.seconds / seconds_of_step))


def _plain(function, arguments, units):
    function(*arguments)  # compiles, where it does
    return lambda: timed(lambda: function(*arguments), WALL) / units


WORKLOADS = {"W1": w1, "W2": w2, "W3": w3, "W4": w4, "W7": w7}
