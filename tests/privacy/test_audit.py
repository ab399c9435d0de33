"""Audits: exact levels, limits that cover, and broken copies that are flagged."""

import numpy as np
import pytest
from scipy import stats

from private_consensus.errors import InvalidInput
from private_consensus.privacy import gamma_norm_noise, gaussian_delta, gaussian_epsilon
from private_consensus.privacy.audit import (
    clopper_pearson,
    gaussian_fit,
    log_likelihood_ratio,
    noise_scale_test,
    threshold_audit,
    transcript_audit,
)
from private_consensus.privacy.audit_rates import AUDITS, Rate, Trial, measure_rates, rejection_rate


def unit_noise(law, rng, shape):
    if law == "gaussian":
        return rng.standard_normal(shape)
    if law == "laplace":
        return rng.laplace(size=shape)
    radius = rng.standard_gamma(shape[-1], shape[:-1])
    return gamma_norm_noise(rng.standard_normal(shape), radius, 1.0)


LAWS = ["gaussian", "laplace", "gamma_norm"]


@pytest.mark.parametrize("law", LAWS)
def test_noise_of_the_claimed_scale_passes_and_two_thirds_or_three_halves_do_not(law):
    rng = np.random.default_rng(2)
    noise = unit_noise(law, rng, (100, 5))
    right = noise_scale_test(2 * noise, 2.0, law=law)
    assert right.passes and right.low < 2 < right.high
    assert "too small" in noise_scale_test(4 / 3 * noise, 2.0, law=law).findings
    assert "too large" in noise_scale_test(3 * noise, 2.0, law=law).findings


def test_the_scale_may_change_from_release_to_release():
    rng = np.random.default_rng(3)
    scales = np.geomspace(0.1, 10, 50)[:, None]
    noise = rng.standard_normal((40, 50, 2))
    assert noise_scale_test(scales * noise, scales).passes
    assert not noise_scale_test(scales[::-1] * noise, scales).passes


def test_another_law_of_the_same_scale_is_noticed():
    rng = np.random.default_rng(4)
    found = noise_scale_test(rng.laplace(size=(1000, 3)) / np.sqrt(2), 1.0)
    assert "wrong shape" in found.findings


@pytest.mark.parametrize("law", LAWS)
def test_reused_noise_is_noticed(law):
    rng = np.random.default_rng(5)
    once = unit_noise(law, rng, (60, 1, 4))
    copied = np.broadcast_to(once, (60, 3, 4))
    assert noise_scale_test(copied, 1.0, law=law).findings == ("reused",)
    rounded = copied * (1 + 1e-13 * rng.standard_normal(copied.shape))  # as read off messages
    assert "reused" in noise_scale_test(rounded, 1.0, law=law).findings
    negated = rounded * np.array([1, -1, 1])[:, None]
    assert "reused" in noise_scale_test(negated, 1.0, law=law).findings


@pytest.mark.parametrize("law", LAWS)
def test_the_noise_test_has_exact_levels(law):
    rng = np.random.default_rng(6)
    tests = [noise_scale_test(unit_noise(law, rng, (20, 4)), 1.0, law=law) for _ in range(400)]
    small = [found.pvalues["too small"] for found in tests]
    assert stats.kstest(small, "uniform").pvalue > 1e-3
    covered = sum(found.low <= 1 <= found.high for found in tests)
    assert covered >= 396
    # 0.1 % of 400 is less than one: three or more would be a broken level
    assert sum(not found.passes for found in tests) <= 3


def test_limits_of_a_probability():
    low, high = clopper_pearson(np.array([0, 3, 10]), 10, 0.025)
    exact = [stats.binomtest(k, 10).proportion_ci(0.95, "exact") for k in (0, 3, 10)]
    np.testing.assert_allclose(low, [ci.low for ci in exact])
    np.testing.assert_allclose(high, [ci.high for ci in exact])


@pytest.mark.parametrize("law", LAWS)
def test_log_likelihood_ratio_is_that_of_the_densities(law):
    rng = np.random.default_rng(7)
    one, other = rng.normal(size=(2, 6, 4, 3))
    scale = np.array([0.5, 1.0, 2.0, 4.0])[:, None]
    density = {
        "gaussian": lambda r: stats.norm.logpdf(r, scale=scale).sum(axis=(-2, -1)),
        "laplace": lambda r: stats.laplace.logpdf(r, scale=scale).sum(axis=(-2, -1)),
        "gamma_norm": lambda r: -(np.linalg.norm(r, axis=-1) / scale[:, 0]).sum(axis=-1),
    }[law]
    found = log_likelihood_ratio(one, other, scale, law=law)
    np.testing.assert_allclose(found, density(one) - density(other), atol=1e-12)


def randomised_response(rng, epsilon, runs):
    truth = 1 / (1 + np.exp(-epsilon))
    return [(rng.random(runs) < share).astype(float) for share in (truth, 1 - truth)]


def test_the_bound_comes_near_the_truth_and_stays_below():
    rng = np.random.default_rng(8)
    bounds = [threshold_audit(*randomised_response(rng, 2.0, 4000)) for _ in range(200)]
    found = np.array([bound.epsilon for bound in bounds])
    assert np.sum(found > 2.0) <= 2
    assert np.median(found) > 1.6


def test_a_bound_at_lower_confidence_does_overstep_at_about_its_rate():
    """So that the test above could fail: at 50 % both limits are too tight about half the time."""
    rng = np.random.default_rng(8)
    found = [
        threshold_audit(*randomised_response(rng, 2.0, 4000), confidence=0.1).epsilon
        for _ in range(100)
    ]
    assert np.mean(np.array(found) > 2.0) > 0.1


def test_direction_and_role_are_found_from_outcomes():
    rng = np.random.default_rng(9)
    one, other = randomised_response(rng, 3.0, 4000)
    for a, b in ((one, other), (other, one), (-one, -other), (-other, -one)):
        assert threshold_audit(a, b).epsilon > 2
    rare = (rng.random(4000) < 0.2).astype(float)  # tells only one way round
    forward, backward = threshold_audit(rare, np.zeros(4000)), threshold_audit(np.zeros(4000), rare)
    assert forward.epsilon == pytest.approx(backward.epsilon) and forward.epsilon > 3
    assert backward.event.swapped and not forward.event.swapped


def test_delta_is_granted_and_the_ceiling_is_said():
    one, other = np.ones(2000), np.zeros(2000)
    plain, granted = (threshold_audit(one, other, delta=delta) for delta in (0.0, 0.5))
    assert plain.epsilon == plain.ceiling == pytest.approx(np.log(0.9924 / 0.00757), abs=0.01)
    assert granted.epsilon < plain.epsilon
    assert plain.contradicts(4.8) and not plain.contradicts(4.9)
    same = threshold_audit(np.arange(2000.0), np.arange(2000.0))
    assert same.epsilon == 0.0
    infinite = threshold_audit(np.full(2000, np.inf), np.full(2000, -np.inf))
    assert infinite.epsilon == plain.epsilon


@pytest.mark.parametrize("mu", [0.0, 0.5, 3.0, 20.0])
def test_fitted_mu_covers_the_truth_by_the_noncentral_t(mu):
    rng = np.random.default_rng(10)
    one, other = rng.standard_normal((2, 300, 400))
    fits = [gaussian_fit(a + mu, b) for a, b in zip(one, other, strict=True)]
    assert sum(not fit.low <= mu <= fit.high for fit in fits) <= 2
    assert sum(fit.floor > mu for fit in fits) <= 2
    # the limits against the exact law of the studentised difference
    fit, size = fits[0], np.sqrt(200)
    tail = 0.001 / 4
    high = stats.nct.cdf(fit.mu * size, 798, fit.high * size)
    assert high == pytest.approx(tail, rel=1e-2)
    if fit.low > 0:
        assert stats.nct.sf(fit.mu * size, 798, fit.low * size) == pytest.approx(tail, rel=1e-2)


def test_a_statistic_that_is_not_gaussian_is_not_fitted():
    rng = np.random.default_rng(11)
    skewed = rng.exponential(size=(2, 2000))
    assert not gaussian_fit(*skewed).gaussian
    unequal = rng.standard_normal((2, 2000)) * np.array([[1.0], [2.0]])
    assert not gaussian_fit(*unequal).gaussian
    fit = gaussian_fit(rng.standard_normal(2000) + 1, rng.standard_normal(2000))
    assert fit.gaussian and fit.epsilon(1e-3) == gaussian_epsilon(fit.mu, 1e-3)


def test_a_transcript_audit_prefers_the_likelihood_when_it_knows_more():
    """Two clusters with equal means: no linear statistic sees them, the likelihood does."""
    rng = np.random.default_rng(12)
    one = rng.choice([-3.0, 3.0], size=(4000, 1)) + rng.standard_normal((4000, 1))
    other = rng.standard_normal((4000, 1))
    ratio = [np.logaddexp(3 * y, -3 * y)[:, 0] for y in (one, other)]
    blind = transcript_audit(one, other)
    seeing = transcript_audit(one, other, statistics={"likelihood": ratio})
    assert seeing.statistic == "likelihood" and seeing.bound.epsilon > blind.bound.epsilon + 1


def test_more_coordinates_than_runs_are_handled():
    rng = np.random.default_rng(13)
    noise = rng.standard_normal((2, 200, 600))
    assert transcript_audit(*noise).bound.epsilon == 0
    shifted = noise[0] + 0.5
    assert transcript_audit(shifted, noise[1]).bound.epsilon > 1.5


@pytest.fixture(scope="module")
def rates():
    return measure_rates(Trial(), 10, np.random.default_rng(14))


@pytest.mark.parametrize("audit", AUDITS)
def test_each_audit_flags_broken_copies_and_spares_the_correct_one(rates, audit):
    assert rates[audit, "half noise"].rate == 1.0
    assert rates[audit, "reused noise"].rate == 1.0
    assert rates[audit, "correct"].interval[0] <= 1e-3


@pytest.mark.parametrize("audit", AUDITS)
def test_false_alarms_stay_at_one_in_a_thousand(audit):
    """On small outcomes, where the level would suffer first; 5 of 250 refute 0.1 % at 99.9 %."""
    trial = Trial(runs=200)
    rate = rejection_rate(
        lambda rng: trial.flags(audit, rng, "correct"), 250, np.random.default_rng(15)
    )
    assert rate.interval[0] <= 1e-3
    assert Rate(5, 250).interval[0] > 1e-3


def test_the_claim_under_trial_is_exact():
    trial = Trial(mu=1.5, delta=1e-3)
    assert np.linalg.norm(trial.shift) == pytest.approx(1.5)
    assert gaussian_delta(1.5, trial.epsilon) == pytest.approx(1e-3)


def test_a_likelihood_of_the_claimed_model_is_blind_to_reused_noise():
    """Why transcripts are searched for discriminants too."""
    trial, rng = Trial(), np.random.default_rng(16)
    one, other = (trial.noise(rng, "reused noise") for _ in range(2))
    one = one + trial.shift
    ratio = [log_likelihood_ratio(y - trial.shift, y, 1.0) for y in (one, other)]
    assert not threshold_audit(*ratio, delta=trial.delta).contradicts(trial.epsilon)
    found = transcript_audit(one, other, delta=trial.delta)
    assert found.contradicts(epsilon=trial.epsilon) and found.contradicts(mu=trial.mu)


def test_wrong_input_is_named():
    numbers = np.zeros(100)
    for call in (
        lambda: threshold_audit(np.full(100, np.nan), numbers),
        lambda: threshold_audit(np.zeros((50, 2)), numbers),
        lambda: gaussian_fit(numbers[:10], numbers),
        lambda: noise_scale_test(np.array([[np.inf]]), 1.0),
        lambda: noise_scale_test(np.zeros((2, 2)), 1.0, law="cauchy"),
        lambda: transcript_audit(None, None),
        lambda: transcript_audit(np.zeros((10, 2)), np.zeros((10, 2))),
        lambda: Trial().flags("coin", np.random.default_rng(0), "correct"),
    ):
        with pytest.raises(InvalidInput):
            call()
