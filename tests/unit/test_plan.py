"""``fald check``: its numbers are those that a run makes."""

import numpy as np
import pytest

from fald_hpc import FALD, Clients, Gaussian, Logistic, UserError, VRFALDStar, sample
from fald_hpc.chains import Schedule
from fald_hpc.plan import make
from fald_hpc.study import Request

RNG = np.random.default_rng(5)
GAUSSIANS = Clients.from_gaussians(RNG.normal(size=(5, 2)), precisions=np.tile(np.eye(2), (5, 1, 1)))
ROWS = Clients.from_arrays([(RNG.normal(size=(n, 2)), RNG.integers(0, 2, n).astype(float)) for n in (0, 1, 30)])
CASES = {
    "fald": (Gaussian(), GAUSSIANS, FALD(step_size=0.05, comm_prob=0.3)),
    "vr": (Gaussian(), GAUSSIANS, VRFALDStar(step_size=0.05, comm_prob=0.3, refresh_prob=0.2)),
    "always": (Gaussian(), GAUSSIANS, VRFALDStar(step_size=0.05, comm_prob=1.0, refresh_prob=1.0)),
    "rows": (Logistic(), ROWS, VRFALDStar(step_size=0.01, comm_prob=0.1, refresh_prob=0.1, batch_size=3)),
}


@pytest.mark.parametrize("schedule", ["shared", "independent"])
@pytest.mark.parametrize("name", CASES)
def test_planned_messages_are_made(name, schedule):
    """Averagings, refreshes and messages of the plan equal those of the run (the start is one message)."""
    potential, clients, sampler = CASES[name]
    request = Request(potential, clients, sampler, 3000, 3, 11, Schedule(schedule == "shared", False, 0), "mode")
    plan = make(request, 1)
    run = sample(potential, clients, sampler, steps=3000, chains=3, seed=11, burn_in=0, init="mode", schedule=schedule)
    made = run.messages["made"]
    assert plan.messages == made == run.messages["predicted"]
    assert run.messages["repeated"] == 0
    assert plan.averagings == run.summary()["communications"]
    assert plan.refreshes == run.summary()["refreshes"]


def test_plan_of_many_ranks_lists_every_client_once():
    """The layout table covers clients and chains; more ranks than cores are noted."""
    request = Request(Gaussian(), GAUSSIANS, FALD(step_size=0.05), 100, 4, 1, Schedule())
    plan = make(request, 20)
    pairs = [(i, s) for rank in plan.ranks for i in rank.clients for s in rank.chains]
    assert len(pairs) == 20 == len(set(pairs))
    assert any("more than the" in note for note in plan.notes)
    with pytest.raises(UserError, match="idle"):
        make(request, 21)
