"""Long runs: paths across iterations 2^31 and 2^32 against the transcription, where a 32-bit count would wrap around."""

import numpy as np
import pytest
from problems import cases
from problems.draws import CounterDraws

from fald_hpc import FALD, VRFALDStar, comm
from fald_hpc.chains import Chains, Schedule
from fald_hpc.events import expected_events
from fald_hpc.kernels import coins, noise
from fald_hpc.sampling import request
from fald_hpc.study import prepare
from oracles import transcription as tr

SEED, STEPS = 42, 400
COMMON = dict(step_size=0.05, comm_prob=0.15, noise_sharing=0.3, batch_size=2)
SAMPLERS = {"fald": FALD(**COMMON), "vr": VRFALDStar(**COMMON, refresh_prob=0.1)}
AFTER = {"2^31": 2**31, "2^32": 2**32, "2^40": 2**40 - STEPS // 2 - 1}
"""The iteration in the middle; the last one ends at the largest number of steps that a run may have."""


class Late(CounterDraws):
    """Draws of a run whose iterations are counted from a late one."""

    first = 0

    def common(self, k):
        return super().common(k + self.first)

    def private(self, client, k):
        return super().private(client, k + self.first)

    def subset(self, client, k, again=0):
        return super().subset(client, k + self.first, again)

    def averaging(self, k):
        return super().averaging(k + self.first)

    def refresh(self, k):
        return super().refresh(k + self.first)


@pytest.mark.parametrize("middle", AFTER)
@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("segment", [7, 1000])
def test_paths_across_powers_of_two(middle, name, segment):
    case, sampler = cases.case("logistic"), SAMPLERS[name]
    first = AFTER[middle] - STEPS // 2
    last = first + STEPS
    start = np.random.default_rng(5).standard_normal(case.d)
    wanted = request(
        case.potential, case.clients, sampler, last, 1, SEED, 0, start, "shared", "communication", False
    )  # fmt: skip
    study = prepare(wanted, comm.Serial())
    chains = Chains(study.federation, sampler, Schedule(), study.layout, 0, study.key)
    chains.compile()
    chains.start(start[None])
    chains.begin_at(first)
    k, found = first, []
    while k < last:
        k = chains.run(k, min(k + segment, last), last)
        found.append(chains.log.records[0, : chains.log.counts[0]].copy())
    assert k == last

    variance_reduced = isinstance(sampler, VRFALDStar)
    refresh = sampler.refresh_prob if variance_reduced else 1.0
    draws = Late(SEED, 0, case.model.rows, case.d, sampler.comm_prob, refresh, sampler.batch_size)
    draws.first = first
    path = tr.run(
        case.model, start, STEPS, draws, step_size=sampler.step_size, noise_sharing=sampler.noise_sharing,
        variance_reduced=variance_reduced,
    )  # fmt: skip
    expected = path.means[path.averaged]
    got = np.concatenate(found)
    assert got.shape == expected.shape
    # the tolerance of test_trajectories.py, whose paths are five times as long
    assert np.max(np.abs(got - expected)) / np.max(np.abs(expected)) < 1e-12
    averagings = expected_events(sampler, Schedule(), study.key, range(1), first, last)[0]
    assert averagings == len(expected)


@pytest.mark.parametrize("middle", [2**31, 2**32])
def test_the_schedule_does_not_repeat_after_a_power_of_two(middle):
    def schedule(first):
        out = np.empty(2000, np.uint8)
        coins.fill(noise.key(SEED), coins.SHARED, first, coins.threshold(0.5), coins.threshold(0.5), out)
        return out

    assert not np.array_equal(schedule(0), schedule(middle))
    assert np.array_equal(schedule(middle - 1000)[1000:], schedule(middle)[:1000])
