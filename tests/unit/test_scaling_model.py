"""The performance model: fits of synthetic pieces, laws of gaps and of the slowest rank, prediction against simulation."""

import math

import numpy as np
import pytest

from fald_hpc.errors import UserError
from fald_hpc.kernels import coins, noise
from fald_hpc.scaling import network, overlap, schedule, slowest
from fald_hpc.scaling.costs import Costs, Piece, Work, fit
from fald_hpc.scaling.predict import crossover, predict
from fald_hpc.scaling.simulate import simulate
from fald_hpc.scaling.work import Point

TRUE = Costs(2e-7, 3e-8, 8e-8, 1e-6, 2e-8, 2e-6, 3e-7)


def work(count, clients=10.0, slow=1.0):
    groups = len(count)
    full = lambda value: np.full(groups, float(value))  # noqa: E731
    return Work(full(clients), full(2000), full(100), full(4), np.broadcast_to(slow, groups) * 1.0, np.array(count))


def point(ranks, **more):
    return Point(ranks, ranks, work([ranks], **more), 360, 1)


def pieces(disturbed=0):
    found = []
    for c in (1, 3, 10):
        for s in (1, 4):
            for steps, refreshes, messages in ((1000, 0, 50), (1000, 50, 150), (300, 200, 300), (2000, 0, 10)):
                piece = Piece(c, 211 * c * c, 5 * c * c, s, steps, refreshes, messages, 1.0)
                values = [TRUE.to_dict()[name] for name in list(TRUE.to_dict())[:7]]
                found.append(Piece(**{**vars(piece), "seconds": float(np.dot(piece.features(), values))}))
    for i in range(disturbed):
        found[5 * i] = Piece(**{**vars(found[5 * i]), "seconds": 2.0 * found[5 * i].seconds})
    return found


@pytest.mark.parametrize("disturbed", [0, 3])
def test_fit_finds_the_costs_that_made_the_pieces(disturbed):
    found = fit(pieces(disturbed))
    for name, value in TRUE.to_dict().items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-6, abs=1e-15), name


@pytest.mark.parametrize("p", [1.0, 0.5, 0.05, 0.001])
def test_geometric_quadrature(p):
    values, weights = slowest.geometric(p)
    assert weights.sum() == pytest.approx(1.0, rel=1e-12)
    assert weights @ values == pytest.approx(1.0 / p, rel=1e-9)
    # E sqrt(G) by its series
    g = np.arange(1, 60_000)
    series = float((p * (1.0 - p) ** (g - 1) * np.sqrt(g)).sum()) if p < 1.0 else 1.0
    assert weights @ np.sqrt(values) == pytest.approx(series, rel=2e-4)


def test_largest_of_normals():
    # E max of two standard normals is 1/sqrt(pi), of three 1.5/sqrt(pi)
    for n, exact in ((1, 0.0), (2, 1.0 / math.sqrt(math.pi)), (3, 1.5 / math.sqrt(math.pi))):
        assert slowest.largest(np.array([5.0]), np.array([n]), 1.0) == pytest.approx(5.0 + exact, abs=1e-4)
    two = slowest.largest(np.array([0.0, 0.0]), np.array([1, 1]), np.array([1.0, 2.0]))
    assert two == pytest.approx(math.sqrt(5.0 / (2.0 * math.pi)), abs=1e-3)  # sqrt((s1² + s2²)/(2π))
    assert slowest.largest(np.array([1.0, 3.0]), np.array([100, 1]), 0.0) == 3.0


def test_largest_of_interruptions():
    # each of n ranks is hit with probability h: E max = δ Σ_k P(k hits) H_k
    n, h = 40, 0.1
    probability = [math.comb(n, k) * h**k * (1 - h) ** (n - k) for k in range(n + 1)]
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n + 1))])
    exact = 3.0 * float(np.dot(probability, harmonic))
    assert slowest.largest(np.array([0.0]), np.array([n]), 0.0, h, 3.0) == pytest.approx(exact, rel=1e-3)
    # every rank hit, and a normal beside: the mean of one rank is the sum of both means
    assert slowest.largest(np.array([2.0]), np.array([1]), 0.5, 1.0, 3.0) == pytest.approx(5.0, rel=1e-3)


@pytest.mark.parametrize(("p", "q"), [(0.2, None), (0.1, 0.1), (0.3, 0.05), (1.0, 0.5)])
def test_events_count_the_messages_of_the_table(p, q):
    key, steps = noise.key(3), 20_000
    found = schedule.events(key, p, q, steps)
    flips = np.empty(steps, np.uint8)
    coins.fill(key, coins.SHARED, 0, coins.threshold(p), coins.threshold(q or 1.0), flips)
    averages, refreshes, messages, _ = coins.tally(flips, True, q is not None)
    assert len(found.kind) == messages
    assert (found.kind == schedule.AVERAGE).sum() == averages
    assert found.refreshes.sum() == (refreshes if q is not None else 0)
    last = int(np.flatnonzero(flips & (1 if q is None else 3))[-1]) + 1
    assert found.steps.sum() == last
    # random coins: the expected number, within 5 standard deviations of so many Bernoulli trials
    expected = schedule.rates(p, q)[0] * steps
    assert abs(messages - expected) < 5.0 * 2.0 * math.sqrt(steps * max(p * (1 - p), 1e-9) + steps * (q or 0.0))


@pytest.mark.parametrize(
    "costs",
    [TRUE, TRUE.with_noise(0.5, 0.0, 0.0), TRUE.with_noise(0.1, 100.0, 1e-4), TRUE.with_noise(0.5, 50.0, 1e-4)],
    ids=["quiet", "jitter", "interruptions", "both"],
)
@pytest.mark.parametrize("ranks", [1, 2, 64, 1000])
@pytest.mark.parametrize("q", [None, 0.05])
def test_prediction_agrees_with_the_simulated_schedule(costs, ranks, q):
    events = schedule.events(noise.key(1), 0.05, q, 60_000)
    cluster = network.Cluster(network.PRESETS["infiniband"])
    # a tenth of the ranks is slower by a fifth
    groups = [ranks - ranks // 10, ranks // 10] if ranks >= 10 else [ranks]
    here = Point(ranks, ranks, work(groups, slow=np.array([1.0, 1.2])[: len(groups)]), 360, 1)
    found = simulate(costs, here, events, cluster, noise.key(5))
    predicted = predict(costs, here, 0.05, q, cluster).total
    per_step = found.total / found.steps
    # the schedule itself is random: messages and refreshes a step have a relative error of about 1/sqrt(3000)
    assert predicted == pytest.approx(per_step, rel=0.03, abs=4.0 * found.error / found.steps)


def test_slow_ranks_make_the_others_wait():
    cluster = network.Cluster(network.PRESETS["shared-memory"])
    even = predict(TRUE, Point(8, 8, work([8]), 360, 1), 0.1, 0.1, cluster)
    one = predict(TRUE, Point(8, 8, work([7, 1], slow=np.array([1.0, 2.0])), 360, 1), 0.1, 0.1, cluster)
    assert even.waiting == pytest.approx(0.0, abs=1e-12)
    assert one.total - one.network == pytest.approx(2.0 * (even.total - even.network), rel=1e-6)


def test_network_costs():
    net = network.Network("x", 1e-6, 1e9, "")
    assert net.seconds(1, 1e6) == 0.0
    assert net.seconds(2, 0) == 1e-6
    assert net.seconds(1024, 0) == pytest.approx(10e-6)
    assert net.seconds(1024, 1000) == pytest.approx(10e-6 + 2.0 * 1023 / 1024 * 1e-6)
    nodes = network.Cluster(net, 4, network.Network("in", 1e-7, 1e9, ""))
    assert nodes.seconds(16, 0) == pytest.approx(2e-7 + 2e-6)
    assert network.parse("1.5,12").latency == 1.5e-6
    for text in ("fast", "1", "1,0", "-1,2", "nan,1", "1,2,3"):
        with pytest.raises(UserError, match="--network"):
            network.parse(text)


def test_crossover_is_the_first_point_where_communication_dominates():
    slow = network.Cluster(network.Network("slow", 1e-3, 1e9, ""))
    points = [predict(TRUE, point(n), 0.05, 0.05, slow) for n in (1, 2, 1024)]
    assert crossover(points) == 2
    assert crossover(points[:1]) is None


def test_overlap_of_batches():
    work_, message = np.full(1000, 1.0), np.full(1000, 1.0)
    assert overlap.simulate(work_, message, 1) == pytest.approx(2000.0)
    # two batches hide a message as long as half the work, at best a factor of two
    assert overlap.simulate(work_, 0.5 * message, 2) == pytest.approx(1000.0, rel=1e-2)
    assert overlap.simulate(work_, 4.0 * message, 2) == pytest.approx(4500.0, rel=1e-2)
    # nothing to hide, and overhead to pay
    assert overlap.simulate(work_, 0.0 * message, 2, 0.1) == pytest.approx(1200.0, rel=1e-2)


@pytest.mark.parametrize("delay", [0.0, 1e-4, 1e-3])
def test_time_in_batches(delay):
    """One batch is the prediction without overlap; two are never faster than the work alone or than half of it and a message."""
    events = schedule.events(noise.key(1), 0.05, 0.05, 60_000)
    cluster = network.Cluster(network.PRESETS["shared-memory"])
    one, two = (overlap.per_step(TRUE, point(8), events, cluster, n, delay) for n in (1, 2))
    plain = predict(TRUE, point(8), 0.05, 0.05, cluster)
    rate = plain.messages
    # the schedule is random: about 9000 messages, and a tenth of a per cent of steps behind the last one
    assert one == pytest.approx(plain.total + rate * delay, rel=0.03)
    per_message = len(events.kind) / events.steps.sum()
    work_ = one - per_message * (delay + cluster.seconds(8, 360))
    least = max(work_, 0.5 * work_ + per_message * delay)
    assert 0.99 * least <= two <= one + 1.01 * per_message * TRUE.message
    assert np.isnan(overlap.per_step(TRUE, point(8), events, cluster, 5))
