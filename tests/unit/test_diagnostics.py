"""MCSE, ESS and R-hat: against the truth on AR(1) series, against ArviZ, and not to be flattered.

Tolerances. With k = (all records) / tau independent values' worth, tau = (1 + phi) / (1 - phi), a windowed estimate of
the long-run variance has relative standard error at most 3.6 / sqrt(k) when autocorrelation is resolved (a window of
about three times tau, 2 (2L + 1) / n with L = 3 tau), and 2 (1 + 2L) / a with L = 3 lags of a batch means a chain when
it is not. Each test takes four times the larger, plus the upward bias of the initial sequence (3 % at 1024 batches).
"""

import numpy as np
import pytest
from scipy.signal import lfilter

from fald_hpc.kernels import moments
from fald_hpc.kernels.jit import DISABLED
from fald_hpc.metrics import diagnostics

pytestmark = pytest.mark.skipif(DISABLED, reason="the kernels are covered by test_moments.py; this takes minutes")

PHI = np.array([0.0, 0.5, 0.9, 0.99])
TAU = (1 + PHI) / (1 - PHI)


def ar1(rng, chains, n, phi=PHI, shared=0.0):
    """Stationary AR(1) series of unit variance, float64[chains, n, len(phi)]; part of the noise may be shared."""
    burn = 3000
    noise = np.sqrt(1 - shared) * rng.normal(size=(chains, n + burn, len(phi)))
    noise += np.sqrt(shared) * rng.normal(size=(1, n + burn, len(phi)))
    x = [lfilter([1.0], [1.0, -p], noise[..., k], axis=1)[:, burn:] * np.sqrt(1 - p * p) for k, p in enumerate(phi)]
    return np.stack(x, axis=-1)


def absorbed(x, n_batches=None, counts=None):
    s, n, d = x.shape
    acc = moments.new(s, d, n_batches or moments.n_batches(s, d), True)
    moments.absorb(acc, np.ascontiguousarray(x), np.full(s, n) if counts is None else counts)
    return acc


def tolerance(chains, n, n_batches=4096):
    resolved = 3.6 / np.sqrt(chains * n / TAU)
    batches = np.sqrt(14.0 / (chains * n_batches))
    return 4 * np.maximum(resolved, batches) + 0.03


@pytest.mark.parametrize("chains", [1, 4])
@pytest.mark.parametrize("n", [20_000, 300_000])
@pytest.mark.parametrize("n_batches", [256, 4096])
def test_ess_and_mcse_of_ar1(chains, n, n_batches):
    x = ar1(np.random.default_rng([n, chains, n_batches]), chains, n)
    acc = absorbed(x, n_batches)
    mcse, ess = diagnostics.mcse_and_ess(acc)
    allowed = tolerance(chains, n, n_batches)
    told = allowed < 1.0  # phi = 0.99, one chain of 20 000 is a hundred independent values: nothing to compare
    assert told.sum() >= 3
    assert np.all(np.abs(ess * TAU / (chains * n) - 1)[told] < allowed[told])
    # The sd of a slow series is itself known to sqrt(tau / n) or so, well inside what is allowed.
    assert np.all(np.abs(mcse**2 * chains * n / TAU - 1)[told] < 1.5 * allowed[told])


def test_mcse_is_the_error_of_the_mean():
    """400 columns, 4 chains of 5000 with phi = 0.9: squared errors of the mean over MCSE² average 1, sd sqrt(2/400)."""
    x = ar1(np.random.default_rng(21), 4, 5000, phi=np.full(400, 0.9))
    acc = absorbed(x, 1024)
    mcse, _ = diagnostics.mcse_and_ess(acc)
    ratio = np.mean((diagnostics.mean(acc) / mcse) ** 2)
    # MCSE² itself is known to 3.6 / sqrt(20000 / 19) = 11 %, so its inverse is 1 % too large on average.
    assert abs(ratio - 1) < 4 * np.sqrt(2 / 400) + 0.02


def test_arviz_agrees_within_ten_percent():
    import arviz

    x = ar1(np.random.default_rng(12), 4, 400_000)
    acc = absorbed(x)
    mcse, ess = diagnostics.mcse_and_ess(acc)
    for p in range(len(PHI)):
        assert ess[p] == pytest.approx(np.asarray(arviz.ess(x[..., p], method="mean")).item(), rel=0.10)
        assert mcse[p] == pytest.approx(np.asarray(arviz.mcse(x[..., p], method="mean")).item(), rel=0.10)


@pytest.mark.parametrize("n", [40, 1000, 8000, 8192])
def test_r_hat_is_arviz_split_r_hat(n):
    """Exactly so while every record is a batch and n is even."""
    import arviz

    x = ar1(np.random.default_rng(n), 4, n)
    expected = [float(arviz.rhat(x[..., p], method="split")) for p in range(len(PHI))]
    np.testing.assert_allclose(diagnostics.r_hat(absorbed(x)), expected, rtol=1e-9)


def test_r_hat_when_batches_do_not_divide_evenly():
    """With 10 007 records in 64 slots of 256: the halves are 19 batches each and 279 records lie in neither."""
    import arviz

    x = ar1(np.random.default_rng(4), 4, 10_007) + np.arange(4)[:, None, None]
    expected = [float(arviz.rhat(x[..., p], method="split")) for p in range(len(PHI))]
    np.testing.assert_allclose(diagnostics.r_hat(absorbed(x, 32)), expected, rtol=0.02)


def test_mean_and_covariance():
    x = ar1(np.random.default_rng(9), 3, 1001) @ np.random.default_rng(2).normal(size=(4, 4)) + 1e4
    x[1] += 2.0
    acc = absorbed(x)
    flat = x.reshape(-1, 4)
    np.testing.assert_allclose(diagnostics.mean(acc), flat.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(diagnostics.covariance(acc), np.cov(flat.T), rtol=1e-10)
    np.testing.assert_allclose(diagnostics.sd(acc), flat.std(axis=0, ddof=1), rtol=1e-10)
    small = moments.new(3, 4, 64, False)
    moments.absorb(small, x, np.full(3, 1001))
    assert diagnostics.covariance(small) is None
    np.testing.assert_array_equal(diagnostics.sd(small), diagnostics.sd(acc))


def test_chains_of_different_length():
    x = ar1(np.random.default_rng(31), 4, 60_000)
    counts = np.array([60_000, 51_234, 33_333, 30_001])  # batches of 8, 8, 8 and 4 records at 8192 slots
    acc = absorbed(x, 4096, counts)
    assert len(set(acc.size)) > 1
    flat = np.concatenate([x[i, :n] for i, n in enumerate(counts)])
    np.testing.assert_allclose(diagnostics.mean(acc), flat.mean(axis=0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(diagnostics.covariance(acc), np.cov(flat.T), rtol=1e-9, atol=1e-12)
    _, ess = diagnostics.mcse_and_ess(acc)
    allowed = tolerance(4, 30_000)
    assert np.all(np.abs(ess * TAU / 120_000 - 1)[:3] < allowed[:3])
    assert np.all(np.abs(diagnostics.r_hat(acc)[:3] - 1) < 0.02)


@pytest.mark.parametrize("shared", [0.3, 0.8])
def test_dependent_chains_are_not_flattered(shared):
    """A share r of the noise is common to 20 chains: the variance of the grand mean is 1 + 19 r times the naive one."""
    n, phi = 100_000, np.array([0.5, 0.9])
    x = ar1(np.random.default_rng(77), 20, n, phi, shared)
    mcse, _ = diagnostics.mcse_and_ess(absorbed(x, 4096))
    tau = (1 + phi) / (1 - phi)
    truth = tau / n * (shared + (1 - shared) / 20)
    # One series now decides, of n / tau = 5263 independent values at phi = 0.9: 4 · 3.6 / sqrt(5263) = 0.20.
    assert np.all(np.abs(mcse**2 / truth - 1) < 0.20 + 0.03)


def test_slow_shared_noise_below_fast_private_noise():
    """The shared part has 2 % of the variance and 95 % of the error: lag 0 alone would not see it."""
    rng, n = np.random.default_rng(5), 200_000
    x = np.sqrt(0.98) * rng.normal(size=(10, n, 1)) + np.sqrt(0.02) * ar1(rng, 1, n, np.array([0.98]))
    mcse, _ = diagnostics.mcse_and_ess(absorbed(x))
    truth = (0.98 / 10 + 0.02 * 99) / n
    # n / tau = 2020 independent values of the slow part: 4 · 3.6 / sqrt(2020) = 0.32.
    assert abs(mcse[0] ** 2 / truth - 1) < 0.32 + 0.03


def test_chains_that_disagree_have_a_small_ess():
    x = ar1(np.random.default_rng(6), 4, 50_000)
    x[0] += 4.0
    acc = absorbed(x)
    assert np.all(diagnostics.r_hat(acc) > 1.5)
    mcse, ess = diagnostics.mcse_and_ess(acc)
    # Eight half means, two of them 4 above: variance 16 · (2 · 6 / 8) / 7 = 3.43, pooled variance 1 + 3 = 4, so
    # ESS = 8 · 4 / 3.43 = 9.3; the half means of phi = 0.99 move by 0.1, far less than the 20 % allowed.
    assert ess == pytest.approx(9.33, rel=0.2)
    assert np.all(mcse > 0.5)


def test_a_common_drift_is_a_disagreement_too():
    x = ar1(np.random.default_rng(6), 4, 20_000) + np.linspace(0, 6, 20_000)[:, None]
    for chains in (1, 4):
        acc = absorbed(x[:chains])
        assert np.all(diagnostics.r_hat(acc) > 1.2)
        assert np.all(diagnostics.mcse_and_ess(acc)[1] < 5 * chains)


@pytest.mark.parametrize("records", [0, 1, 2, 19])
def test_too_few_for_any_number(records):
    acc = absorbed(ar1(np.random.default_rng(1), 4, 60)[:, :records])
    assert np.isnan(diagnostics.r_hat(acc)).all()
    for numbers in diagnostics.mcse_and_ess(acc):
        assert np.isnan(numbers).all()


def test_too_short_for_its_autocorrelation():
    """1000 records are 5 autocorrelation times at phi = 0.99: no number, or the small one of chains that disagree."""
    rng = np.random.default_rng(13)
    for _ in range(50):
        acc = absorbed(ar1(rng, 4, 1000))
        mcse, ess = diagnostics.mcse_and_ess(acc)
        assert np.isfinite(ess[:2]).all()
        assert np.isnan(ess[3]) or (diagnostics.r_hat(acc)[3] > diagnostics.LARGEST_R_HAT and ess[3] < 100)
        assert np.isnan(mcse[3]) == np.isnan(ess[3])


def test_same_bits_from_the_same_sums_in_any_batch_layout_of_memory():
    x = ar1(np.random.default_rng(1), 4, 5000)
    acc = absorbed(x)
    strided = moments.Accumulators(*(np.asfortranarray(a) for a in acc))
    for one, two in zip(diagnostics.mcse_and_ess(acc), diagnostics.mcse_and_ess(strided), strict=True):
        assert one.tobytes() == two.tobytes()
    assert diagnostics.covariance(acc).tobytes() == diagnostics.covariance(strided).tobytes()
    assert diagnostics.r_hat(acc).tobytes() == diagnostics.r_hat(strided).tobytes()
