"""Messages made and rows touched against what the specification's tables say of the coins (sections 2 and 3 item 7)."""

import numpy as np
import pytest
from problems import cases, sampling

from fald_hpc import FALD, VRFALDStar
from fald_hpc.kernels import coins, noise
from oracles import messages

STEPS, CHAINS, SEED = 3000, 3, 8


def flips(chain, p, q):
    """Return the coins of all steps."""
    out = np.empty(STEPS, np.uint8)
    coins.fill(noise.key(SEED), chain, 0, coins.threshold(p), coins.threshold(q), out)
    return (out & coins.AVERAGE) != 0, (out & coins.REFRESH) != 0


@pytest.mark.parametrize(("p", "q"), [(0.1, 0.1), (0.05, 0.6), (1.0, 0.2), (0.5, 1.0), (1.0, 1.0)])
def test_variance_reduced_messages_and_rows(p, q):
    """One message at the start, then the table. A refresh touches every row of every chain, as the start does."""
    case = cases.case("logistic")
    sampler = VRFALDStar(step_size=0.02, comm_prob=p, refresh_prob=q, batch_size=2)
    run = sampling.run(case, sampler, STEPS, chains=CHAINS, seed=SEED, init="mode")
    averaging, refresh = flips(coins.SHARED, p, q)
    assert run.messages["made"] == messages.count(averaging, refresh)
    assert run.messages["predicted"] == run.messages["made"]
    batches = sum(min(2, n) for n in case.model.rows)
    every = sum(case.model.rows)
    assert run.messages["rows_touched"] == CHAINS * (STEPS * batches + (int(refresh.sum()) + 1) * every)
    assert run.summary()["communications"] == averaging.sum()
    assert run.summary()["refreshes"] == refresh.sum()


@pytest.mark.parametrize("batch", [1, 2, "full"])
def test_fald_sends_one_message_an_averaging_and_touches_its_minibatches(batch):
    case = cases.case("logistic")
    run = sampling.run(
        case, FALD(step_size=0.02, comm_prob=0.2, batch_size=batch), STEPS, chains=CHAINS, seed=SEED, init="mode"
    )
    averaging, _ = flips(coins.SHARED, 0.2, 1.0)
    assert run.messages["made"] == run.messages["predicted"] == messages.count(averaging)
    touched = sum(n if batch == "full" else min(batch, n) for n in case.model.rows)
    assert run.messages["rows_touched"] == CHAINS * STEPS * touched
    assert run.summary()["refreshes"] == 0


def test_own_coins_cost_messages_of_their_own():
    case = cases.case("logistic")
    sampler = VRFALDStar(step_size=0.02, comm_prob=0.2, refresh_prob=0.1, batch_size=2)
    run = sampling.run(case, sampler, STEPS, chains=CHAINS, seed=SEED, init="mode", schedule="independent")
    events = sum(messages.count(*flips(chain, 0.2, 0.1)) - 1 for chain in range(CHAINS))
    assert run.messages["made"] == run.messages["predicted"]
    # the start is one message for all chains together, or one for each
    assert run.messages["made"] - events in (1, CHAINS)


def test_a_row_potential_without_kept_residuals_touches_twice_as_many():
    case = cases.case("row-potential")
    sampler = VRFALDStar(step_size=0.02, comm_prob=0.2, refresh_prob=0.1, batch_size=2)
    run = sampling.run(case, sampler, STEPS, chains=1, seed=SEED, init=np.zeros(case.d))
    _, refresh = flips(coins.SHARED, 0.2, 0.1)
    batches = sum(min(2, n) for n in case.model.rows)
    assert run.messages["rows_touched"] == 2 * STEPS * batches + (int(refresh.sum()) + 1) * sum(case.model.rows)
