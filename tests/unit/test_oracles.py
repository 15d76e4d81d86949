"""The oracles against each other and against the specification's numbers: what checks the checkers."""

import numpy as np
import pytest

from oracles import averages, closed_forms, exact, messages, models, moments, quadratics, recursions, titanic
from oracles import transcription as tr


class Random:
    """Draws from a NumPy generator for ``chains`` chains at once; coins shared or one a chain."""

    def __init__(self, seed, chains, d, comm_prob, refresh_prob, *, shared=False):
        self.rng = np.random.default_rng(seed)
        self.shape = (chains, d)
        self.coins = (1,) if shared else (chains,)
        self.p, self.q = comm_prob, refresh_prob

    def common(self, k):
        return self.rng.standard_normal(self.shape)

    def private(self, client, k):
        return self.rng.standard_normal(self.shape)

    def subset(self, client, k, again=0):
        return np.arange(1)

    def averaging(self, k):
        return np.broadcast_to(self.rng.random(self.coins) < self.p, self.shape[:1])

    def refresh(self, k):
        return np.broadcast_to(self.rng.random(self.coins) < self.q, self.shape[:1])


def small_problem(seed=0, b=2, d=2, spread=2.0):
    """Two heterogeneous clients in two dimensions."""
    return quadratics.random_clients(np.random.default_rng(seed), b, d, spread)


def numpy_mean(stack):
    return stack.mean(axis=0)


def test_two_client_example_of_the_specification():
    mean, variance = closed_forms.two_clients([1.0, -2.0], [0.5, 2.0], 0.2)
    assert mean == pytest.approx(0.3132530, abs=5e-8)
    assert variance == pytest.approx(0.4750865, abs=5e-8)
    target_mean, target_variance = quadratics.target(quadratics.gaussian(np.array([[1.0], [-2.0]]), np.array([[[2.0]], [[0.5]]])))
    assert target_mean[0] == pytest.approx(0.4)
    assert target_variance[0, 0] == pytest.approx(0.4)


def test_two_client_formula_is_the_fixed_point_of_a_two_step_round():
    step, mu, s = 0.2, np.array([1.0, -2.0]), np.array([0.5, 2.0])
    a = np.diag(1 - step / s)
    c = step * mu / s
    q = recursions.noise_covariance(2, 1, step, 1.0, printed=False)
    join = recursions.averager(2, 1)
    matrix, shift = join @ a @ a, join @ (a @ c + c)
    noise = join @ (a @ q @ a.T + q) @ join.T
    mean = np.linalg.solve(np.eye(2) - matrix, shift)
    covariance = np.linalg.solve(np.eye(4) - np.kron(matrix, matrix), noise.ravel()).reshape(2, 2)
    expected = closed_forms.two_clients(mu, s, step)
    assert mean[0] == pytest.approx(expected[0], rel=1e-13)
    assert covariance[0, 0] == pytest.approx(expected[1], rel=1e-13)


@pytest.mark.parametrize("tau", [0.0, 0.3, 1.0])
def test_one_client_is_item_1_for_every_noise_sharing(tau):
    clients = quadratics.gaussian(np.array([[3.0]]), np.array([[[1.7]]]))
    expected = closed_forms.one_client_variance(1.7, 0.3)
    for recursion in (
        recursions.fald(clients, 0.3, 0.4, tau),
        recursions.vr_fald_star(clients, 0.3, 0.4, 0.2, tau),
    ):
        m = moments.stationary(recursion)
        assert m.mean[0] == pytest.approx(3.0, rel=1e-12)
        assert m.covariance[0, 0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("b", "d", "tau", "p", "q"), [(2, 2, 0.3, 0.3, 0.2), (3, 1, 0.0, 0.1, 1.0), (4, 2, 1.0, 1.0, 0.05)])
def test_vr_fald_star_has_mean_exactly_the_mode_and_fald_does_not(b, d, tau, p, q):
    clients = quadratics.gaussian(*small_problem(1, b, d))
    mode, covariance = quadratics.target(clients)
    vr = moments.stationary(recursions.vr_fald_star(clients, 0.1, p, q, tau))
    assert vr.mean == pytest.approx(mode, abs=1e-13)
    fald = moments.stationary(recursions.fald(clients, 0.1, p, tau))
    if p < 1:
        assert np.linalg.norm(fald.mean - mode) > 0.01 * np.sqrt(covariance.max())
    else:
        assert fald.mean == pytest.approx(mode, abs=1e-13)


def test_equal_curvatures_leave_fald_unbiased():
    means, precisions = small_problem(2, 3, 2)
    precisions[:] = precisions[0]
    clients = quadratics.gaussian(means, precisions)
    m = moments.stationary(recursions.fald(clients, 0.1, 0.2, 1.0))
    assert m.mean == pytest.approx(quadratics.target(clients)[0], abs=1e-13)


@pytest.mark.parametrize("b", [2, 3, 5])
def test_printed_noise_multiplies_the_variance_by_b(b):
    """With τ = 1, p_c = 1 and equal clients the printed form has exactly b times the variance."""
    clients = quadratics.gaussian(np.zeros((b, 1)), np.ones((b, 1, 1)))
    right = moments.stationary(recursions.fald(clients, 0.1, 1.0, 1.0)).covariance
    wrong = moments.stationary(recursions.fald(clients, 0.1, 1.0, 1.0, printed_noise=True)).covariance
    assert wrong == pytest.approx(b * right, rel=1e-12)
    assert right[0, 0] == pytest.approx(closed_forms.one_client_variance(b, 0.1 / b), rel=1e-12)


def test_small_steps_reach_the_target():
    clients = quadratics.gaussian(*small_problem(3, 3, 2))
    mode, covariance = quadratics.target(clients)
    for step, limit in ((1e-3, 2e-2), (1e-4, 2e-3)):
        fald = moments.stationary(recursions.fald(clients, step, 0.5, 0.3))
        vr = moments.stationary(recursions.vr_fald_star(clients, step, 0.5, 0.5, 0.3))
        for m in (fald, vr):
            assert np.max(np.abs(m.covariance - covariance)) < limit * covariance.max()
            assert np.max(np.abs(m.mean - mode)) < limit


def test_gmres_agrees_with_the_dense_solve():
    clients = quadratics.gaussian(*small_problem(4, 4, 3))
    recursion = recursions.vr_fald_star(clients, 0.05, 0.1, 0.1, 0.3)
    m = moments.stationary(recursion)
    feed = moments.source(recursion.outcomes, m.state_mean, with_noise=True)
    iterative = moments.solve_second_moment(recursion.outcomes, feed, dense_up_to=0)
    dense = moments.solve_second_moment(recursion.outcomes, feed, dense_up_to=100)
    assert iterative == pytest.approx(dense, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("vr", [False, True])
def test_records_at_communications_have_the_stationary_law(vr):
    clients = quadratics.gaussian(*small_problem(5, 3, 2))
    recursion = recursions.vr_fald_star(clients, 0.1, 0.2, 0.4, 0.3) if vr else recursions.fald(clients, 0.1, 0.2, 0.3)
    m = moments.stationary(recursion)
    series = averages.at_communications(recursion, m)
    covariance = recursion.observe @ series.covariance @ recursion.observe.T
    assert covariance == pytest.approx(m.covariance, rel=1e-11)


@pytest.mark.parametrize("vr", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_transcription_has_the_exact_moments_and_the_predicted_spread(vr, shared):
    """400 chains of 2500 steps against the linear solve: mean, covariance, and the spread of the means.

    The grand mean must lie within 4.5 predicted standard errors; the chains' own means must have the predicted
    variance (relative standard error sqrt(2 / (chains d)), loose for shared coins); the covariance must be within
    4.5 standard errors.
    """
    p, q, tau, step, chains, steps = 0.3, 0.2, 0.3, 0.15, 400, 2500
    means, precisions = small_problem(6)
    clients = quadratics.gaussian(means, precisions)
    recursion = recursions.vr_fald_star(clients, step, p, q, tau) if vr else recursions.fald(clients, step, p, tau)
    m = moments.stationary(recursion)
    path = tr.run(
        models.gaussian(means, precisions),
        np.tile(m.mean, (chains, 1)),
        steps,
        Random(7, chains, 2, p, q, shared=shared),
        step_size=step,
        noise_sharing=tau,
        variance_reduced=vr,
        mean=numpy_mean,
    )
    series = averages.at_communications(recursion, m)
    burn = 200
    keep = path.averaged[burn:]
    x = path.means[burn:]
    records = keep.sum(axis=0).mean()
    own = np.einsum("ks,ksd->sd", keep, x - m.mean) / keep.sum(axis=0)[:, None]
    grand = own.mean(axis=0)
    predicted = averages.mean_variance(series, records, chains, shared=shared)
    assert np.all(np.abs(grand) < 4.5 * np.sqrt(np.diag(predicted)))
    if not shared:
        ratio = np.mean(own**2, axis=0) / (np.diag(predicted) * chains)
        assert ratio == pytest.approx(np.ones(2), abs=4.5 * np.sqrt(2 / chains))
        centred = x - m.mean
        estimate = np.einsum("ks,ksi,ksj->ij", keep, centred, centred) / keep.sum()
        error = np.sqrt(averages.covariance_variance(series, records, chains))
        assert np.all(np.abs(estimate - m.covariance) < 4.5 * error)


def test_shared_coins_correlate_fald_chains_as_predicted():
    """Item 8: the between-chain covariance predicted for shared coins, against many pairs of chains."""
    p, tau, step, groups, steps = 0.1, 1.0, 0.1, 300, 1500
    means = np.array([[10.0], [-10.0]])
    precisions = np.array([[[2.0]], [[0.2]]])
    recursion = recursions.fald(quadratics.gaussian(means, precisions), step, p, tau)
    m = moments.stationary(recursion)
    series = averages.at_communications(recursion, m)

    class Pairs(Random):
        """Groups of two chains with the same coins."""

        def averaging(self, k):
            return np.repeat(self.rng.random(groups) < p, 2)

    path = tr.run(
        models.gaussian(means, precisions),
        np.tile(m.mean, (2 * groups, 1)),
        steps,
        Pairs(1, 2 * groups, 1, p, 1.0),
        step_size=step,
        noise_sharing=tau,
        variance_reduced=False,
        mean=numpy_mean,
    )
    keep, x = path.averaged[300:], path.means[300:, :, 0]
    own = np.sum(keep * (x - m.mean), axis=0) / keep.sum(axis=0)
    pairs = own.reshape(groups, 2)
    records = keep.sum(axis=0).mean()
    single = averages.mean_variance(series, records, 1, shared=True)[0, 0]
    double = averages.mean_variance(series, records, 2, shared=True)[0, 0]
    between = 2 * double - single
    assert between > 0.2 * single  # the chains do depend on each other here
    measured = np.mean(pairs[:, 0] * pairs[:, 1])
    error = np.sqrt((single**2 + between**2) / groups)
    # 5 % for the finite length of a run
    assert abs(measured - between) < 4.5 * error + 0.05 * between


def enumerated():
    """Linear regression on two tiny clients with every minibatch of one row, and its model."""
    rng = np.random.default_rng(8)
    rows = [
        (rng.standard_normal((3, 1)), rng.standard_normal(3)),
        (rng.standard_normal((2, 1)), rng.standard_normal(2)),
    ]
    model = models.generalised_linear([r[0] for r in rows], [r[1] for r in rows], models.linear_residual(1.0))
    return rows, model


@pytest.mark.parametrize("fault", [None, "two_minibatches"])
def test_enumerated_minibatches_agree_with_the_transcription(fault):
    rows, model = enumerated()
    clients = quadratics.regression(rows, 1.0, 1.0, batch=1)
    p, q, tau, step, steps = 0.5, 0.3, 0.5, 0.1, 15_000
    recursion = recursions.vr_fald_star(clients, step, p, q, tau, two_minibatches=fault is not None)
    m = moments.stationary(recursion)

    class Subsets(Random):
        def subset(self, client, k, again=0):
            return self.rng.integers(0, len(rows[client][1]), 1)

    path = tr.run(
        model,
        m.mean[None],
        steps,
        Subsets(9, 1, 1, p, q),
        step_size=step,
        noise_sharing=tau,
        variance_reduced=True,
        fault=fault,
        mean=numpy_mean,
    )
    keep = path.averaged[:, 0]
    x = path.means[keep][:, 0]
    series = averages.at_communications(recursion, m)
    error = np.sqrt(averages.mean_variance(series, keep.sum(), 1, shared=False)[0, 0])
    assert abs(x.mean() - m.mean[0]) < 4.5 * error
    spread = np.sqrt(averages.covariance_variance(series, keep.sum(), 1)[0, 0])
    assert abs(np.mean((x - m.mean[0]) ** 2) - m.covariance[0, 0]) < 4.5 * spread


def test_minibatches_average_to_the_full_gradient():
    """Item 7, on the oracle's own estimates."""
    rows, model = enumerated()
    theta = np.array([0.7])
    for i, (_, y) in enumerate(rows):
        mean = np.mean([tr.estimate(model, i, np.array([j]), theta) for j in range(len(y))], axis=0)
        assert mean == pytest.approx(tr.full_gradient(model, i, theta), rel=1e-13)


def test_wrong_recursions_differ_from_the_right_ones():
    """Each fault that moments can show moves them; the post-step refresh moves covariances by less than 1 %."""
    clients = quadratics.gaussian(*small_problem(10, 3, 2))
    arguments = (clients, 0.1, 0.3, 0.3, 1.0)
    right = moments.stationary(recursions.vr_fald_star(*arguments))
    printed = moments.stationary(recursions.vr_fald_star(*arguments, printed_noise=True))
    assert np.trace(printed.covariance) > 2.5 * np.trace(right.covariance)
    sign = moments.stationary(recursions.vr_fald_star(*arguments, wrong_sign=True))
    assert np.max(np.abs(sign.mean - right.mean)) > 0.05 * np.sqrt(right.covariance.max())
    late = moments.stationary(recursions.vr_fald_star(*arguments, post_step_refresh=True))
    assert late.covariance != pytest.approx(right.covariance, rel=1e-6)
    assert late.covariance == pytest.approx(right.covariance, rel=0.03)
    weights = np.array([1.0, 2.0, 5.0])
    fald = moments.stationary(recursions.fald(clients, 0.1, 0.3, 1.0))
    weighted = moments.stationary(recursions.fald(clients, 0.1, 0.3, 1.0, weights=weights))
    assert np.max(np.abs(weighted.mean - fald.mean)) > 0.05 * np.sqrt(fald.covariance.max())


def test_message_table():
    """The specification's table, one line each."""
    yes, no = True, False
    assert messages.count([no], None) == 0
    assert messages.count([yes, no, yes], None) == 2
    assert messages.count([], []) == 1  # the start
    assert messages.count([no], [no]) == 1
    assert messages.count([yes], [no]) == 2
    assert messages.count([no], [yes]) == 2  # k = 0: all X^i are equal
    assert messages.count([no, no], [no, yes]) == 3
    assert messages.count([yes, no], [no, yes]) == 3  # the previous iteration averaged
    assert messages.count([no, yes], [no, yes]) == 3  # both
    assert messages.count([yes, yes], [no, yes]) == 4


def test_exact_mean_is_correctly_rounded():
    assert exact.mean([1e100, 1.0, -1e100]) == 1 / 3
    assert exact.mean([0.1] * 7) == 0.1
    assert exact.rounded(exact.total([2.0**53, 1.0])) == 2.0**53  # a tie goes to even


def test_titanic_table_and_splits():
    x, y = titanic.rows()
    assert x.shape == (2201, 4)
    assert y.sum() == 711
    assert x[:, 1:].mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-13)
    assert x[:, 1:].std(axis=0) == pytest.approx(np.ones(3))
    for b in (1, 3, 10):
        joined = np.concatenate(titanic.split(b))
        assert sorted(joined.tolist()) == list(range(2201))


def test_titanic_reference_agrees_with_quadrature_and_knows_its_error():
    reference = titanic.posterior()
    mean, sd = titanic.quadrature()
    assert np.all(np.abs(reference.mean - mean) < 4.5 * reference.mean_error)
    assert np.all(np.abs(reference.sd - sd) < 4.5 * reference.sd_error)
    assert np.all(reference.mean_error < 0.003 * reference.sd)
    assert np.all(reference.sd_error < 0.003 * reference.sd)
    coarse_mean, coarse_sd = titanic.quadrature(11)
    assert coarse_mean == pytest.approx(mean, abs=1e-6)
    assert coarse_sd == pytest.approx(sd, abs=1e-6)


@pytest.mark.parametrize("name", ["linear", "logistic", "poisson", "softmax"])
def test_row_gradients_are_those_of_the_log_likelihood(name):
    """Central differences of the negative log likelihoods."""
    rng = np.random.default_rng(11)
    x = rng.standard_normal((5, 3))
    theta = 0.3 * rng.standard_normal(6 if name == "softmax" else 3)
    if name == "softmax":
        y = np.array([0, 1, 1, 0, 1])
        model = models.softmax([x], [y], 2)

        def loss(t):
            predictor = x @ t.reshape(2, 3).T
            return np.sum(np.log(np.exp(predictor).sum(axis=1)) - predictor[np.arange(5), y])
    else:
        y = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
        residual = {
            "linear": models.linear_residual(0.7),
            "logistic": models.logistic_residual,
            "poisson": models.poisson_residual,
        }[name]
        offset = rng.standard_normal(5)
        weight = rng.uniform(0.5, 2, 5)
        model = models.generalised_linear([x], [y], residual, weights=[weight], offsets=[offset])

        def loss(t):
            predictor = x @ t + offset
            value = {
                "linear": (y - predictor) ** 2 / (2 * 0.7**2),
                "logistic": np.log1p(np.exp(predictor)) - y * predictor,
                "poisson": np.exp(predictor) - y * predictor,
            }[name]
            return weight @ value

    h = 1e-5
    numeric = [(loss(theta + h * e) - loss(theta - h * e)) / (2 * h) for e in np.eye(len(theta))]
    assert model.gradient_rows(0, np.arange(5), theta) == pytest.approx(numeric, abs=1e-7)
    assert tr.full_gradient(model, 0, theta) == pytest.approx(np.array(numeric) + theta, abs=1e-7)


def test_squared_bias_of_the_papers_experiment_is_ordered():
    """One of the ten 2 x 2 problems of Table 1, with 20 clients: what the specification's section 5 says must hold."""
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, 20)
    rotations = np.array([[[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]] for a in angles])
    diagonals = np.array([np.diag(v) for v in rng.uniform(0, 1, (20, 2))])
    scales = rng.uniform(0.1, 10.1, (20, 1, 1))
    covariances = scales * rotations @ diagonals @ np.swapaxes(rotations, 1, 2)
    clients = quadratics.gaussian(10 * rng.standard_normal((20, 2)), np.linalg.inv(covariances))
    _, covariance = quadratics.target(clients)
    eigenvalues = np.linalg.eigvalsh(np.linalg.inv(covariance))
    p = 0.2
    step = p * 2 / (eigenvalues[0] + eigenvalues[-1])

    def squared_bias(recursion):
        return (np.trace(moments.stationary(recursion).covariance) - np.trace(covariance)) ** 2

    table = {}
    for share in (1 / 2, 1 / 5):
        table["fald", share] = squared_bias(recursions.fald(clients, step * share, p, 0.0))
        for tau in (0.0, 1.0):
            table[tau, share] = squared_bias(recursions.vr_fald_star(clients, step * share, p, p, tau))
        assert table[1.0, share] < table[0.0, share] < 0.01 * table["fald", share]
    for key in ("fald", 0.0, 1.0):
        assert table[key, 1 / 5] < table[key, 1 / 2]
