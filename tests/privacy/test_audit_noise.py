"""Test the checks of recovered noise: error level per distribution, and detection of faults."""

import numpy as np
import pytest
from scipy import stats

from private_consensus.privacy import discrete_gaussian_pmf, gamma_norm_noise
from private_consensus.privacy.audit.laws import (
    LAWS,
    coincidence,
    discrete_pmf,
    largest_p_values,
    scale_p_values,
)
from private_consensus.privacy.audit.noise import KINDS, noise_test

SHAPE = (60, 12, 4, 5)
SIGMA = 3.0


def scale_of(law):
    return SIGMA if law == "discrete_gaussian" else 1.0


def drawn(law, rng, shape=SHAPE):
    """Return noise of scale 1, or of scale SIGMA for the discrete distribution."""
    if law == "gaussian":
        return rng.standard_normal(shape)
    if law == "laplace":
        return rng.laplace(size=shape)
    if law == "uniform":
        return rng.uniform(-1, 1, shape)
    if law == "gamma_norm":
        radius = rng.standard_gamma(shape[-1], shape[:-1])
        return gamma_norm_noise(rng.standard_normal(shape), radius, 1.0)
    return integers(rng, SIGMA, shape)


def integers(rng, sigma, shape):
    """Sample discrete Gaussian noise from its probabilities."""
    k = np.arange(-60, 61)
    mass = discrete_gaussian_pmf(k, sigma**2)
    return rng.choice(k.astype(float), size=shape, p=mass / mass.sum())


def judged(noise, law, confidence=0.99, **options):
    return noise_test(noise, scale_of(law), law=law, confidence=confidence, **options)


@pytest.mark.parametrize("law", LAWS)
def test_false_alarm_rate_of_every_noise_test_is_at_most_its_level(law):
    rng = np.random.default_rng(1)
    reports = [
        judged(drawn(law, rng, (12, 4, 2, 3)), law, 0.6, other=drawn(law, rng, (12, 4, 2, 3)))
        for _ in range(80)
    ]
    assert sum(not report.passes for report in reports) <= stats.binom.ppf(0.999, 80, 0.4)
    for kind in KINDS:
        wrong = sum(report.p_values[kind] < 0.4 for report in reports)
        assert wrong <= stats.binom.ppf(0.999, 80, 0.4 / len(KINDS))


@pytest.mark.parametrize("law", LAWS)
def test_noise_that_is_too_small_or_too_large_is_flagged(law):
    noise = drawn(law, np.random.default_rng(2))
    right = judged(noise, law)
    assert right.passes and right.low < 1 < right.high and right.low < right.estimate < right.high
    for factor, kind in ((0.8, "too small"), (1.25, "too large")):
        if law == "discrete_gaussian":
            broken = integers(np.random.default_rng(3), factor * SIGMA, SHAPE)
        else:
            broken = factor * noise
        report = judged(broken, law)
        assert kind in report.kinds
        assert report.estimate == pytest.approx(factor, rel=0.1)


def faulty(noise, fault):
    noise = noise.copy()
    if fault == "half of the coordinates":
        noise[..., ::2] = 0
    elif fault == "quieter on half of the coordinates":
        noise[..., ::2] *= 0.6
    elif fault == "first round":
        noise[:, 0] = 0
    elif fault == "last round":
        noise[:, -1] = 0
    elif fault == "every third round":
        noise[:, ::3] = 0
    elif fault == "one agent at half":
        noise[:, :, 1] /= 2
    elif fault == "a tenth of the values":
        noise.reshape(-1)[::10] = 0
    elif fault == "some runs":
        noise[::7] *= 0.3
    elif fault == "two rounds":
        noise[:, 7] = noise[:, 2]
    elif fault == "two rounds, turned round":
        noise[:, 7] = -noise[:, 2]
    elif fault == "two agents":
        noise[:, :, 3] = noise[:, :, 0]
    elif fault == "two coordinates":
        noise[..., 4] = noise[..., 1]
    elif fault == "two runs":
        noise[31] = noise[5]
    elif fault == "all rounds":
        noise[:] = noise[:, :1]
    return noise


FAULTS = {
    "half of the coordinates": "zeros",
    "quieter on half of the coordinates": "too small",
    "first round": "too small",
    "last round": "too small",
    "every third round": "too small",
    "one agent at half": "too small",
    "a tenth of the values": "zeros",
    "some runs": "too small",
    "two rounds": "dependent",
    "two rounds, turned round": "dependent",
    "two agents": "dependent",
    "two coordinates": "dependent",
    "two runs": "dependent",
    "all rounds": "dependent",
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_detected_for_each_distribution(law, fault):
    noise = faulty(drawn(law, np.random.default_rng(4)), fault)
    assert FAULTS[fault] in judged(noise, law, 0.999).kinds


def test_finding_states_the_round_of_the_fault():
    noise = faulty(drawn("gaussian", np.random.default_rng(5)), "last round")
    locations = {finding.kind: finding.where for finding in judged(noise, "gaussian").findings}
    assert "round 11" in locations["too small"]


@pytest.mark.parametrize("law", LAWS)
def test_equal_noise_on_both_data_sets_is_detected_as_dependent(law):
    noise = drawn(law, np.random.default_rng(6))
    report = judged(noise, law, 0.999, other=noise.copy())
    assert "dependent" in report.kinds


def test_float32_coincidences_pass_and_a_reused_release_is_detected():
    """Some of 60,000 values on a 24-bit grid are equal; a reused release is still found."""
    rng = np.random.default_rng(7)
    for _ in range(10):
        noise = rng.standard_normal((300, 20, 2, 5), dtype=np.float32)
        assert np.unique(noise).size < noise.size
        assert judged(noise, "gaussian", 0.999).passes
    noise[:5, 4, 1] = noise[:5, 9, 0]  # 25 values: too few for a test of signs
    assert judged(noise, "gaussian", 0.999).kinds == ("reused",)


@pytest.mark.parametrize("law", LAWS)
def test_reused_noise_that_differs_by_rounding_errors_is_detected(law):
    rng = np.random.default_rng(8)
    noise = drawn(law, rng)
    noise[:, 3] = noise[:, 1] + 1e-9 * rng.standard_normal(noise[:, 1].shape)
    assert not judged(noise, law, 0.999).passes


def test_noise_of_another_distribution_is_flagged():
    rng = np.random.default_rng(9)
    laplace = rng.laplace(size=SHAPE) / np.sqrt(2)
    assert "wrong shape" in judged(laplace, "gaussian").kinds
    uniform = rng.uniform(-np.sqrt(3), np.sqrt(3), SHAPE)
    assert "wrong shape" in judged(uniform, "gaussian").kinds
    rounded = np.rint(SIGMA * rng.standard_normal(SHAPE) + 0.5)
    assert not judged(rounded, "discrete_gaussian").passes


def within(noise, law, share):
    """Return the noise without its tails: the shorter values, repeated to the same shape."""
    lengths = np.linalg.norm(noise, axis=-1) if law == "gamma_norm" else np.abs(noise)
    central_noise = noise[lengths <= np.quantile(lengths, share)]
    return np.resize(central_noise, noise.shape)


@pytest.mark.parametrize("law", ["gaussian", "laplace", "gamma_norm", "discrete_gaussian"])
def test_truncated_tails_and_outliers_are_detected(law):
    rng = np.random.default_rng(16)
    tail_count = 600 if law == "gamma_norm" else 3_000
    cut = within(drawn(law, rng), law, 1 - 30 / tail_count)[:50]
    locations = {
        finding.kind: finding.where
        for finding in judged(rng.permuted(cut, axis=0), law, 0.999).findings
    }
    assert locations["wrong shape"] == "tails are cut"
    assert "too small" not in locations or law == "discrete_gaussian"  # the central noise is right
    noise = drawn(law, rng)
    noise[3, 2, 1] = np.rint(40 * SIGMA) if law == "discrete_gaussian" else 40.0
    locations = {finding.kind: finding.where for finding in judged(noise, law, 0.999).findings}
    assert locations["wrong shape"] == "outliers"


@pytest.mark.parametrize("law", ["gaussian", "laplace", "gamma_norm"])
def test_reused_noise_with_reversed_and_negated_coordinates_is_detected(law):
    noise = drawn(law, np.random.default_rng(17))
    noise[:, 5, 2] = -noise[:, 1, 0][..., ::-1]
    locations = {finding.kind: finding.where for finding in judged(noise, law, 0.999).findings}
    releases = "of agent 0 in iteration 2 and of agent 2 in iteration 6"
    assert locations["reused"] == f"norms of releases {releases}"


@pytest.mark.parametrize("law", LAWS)
def test_p_values_of_the_largest_norm_are_valid_for_every_distribution(law):
    """Both p-values are stochastically at least uniform, and uniform for continuous noise."""
    rng = np.random.default_rng(18)
    unit = (drawn(law, rng, (4, 2, 2, 3)) / scale_of(law) for _ in range(400))
    p_values = [largest_p_values(sample, law, SIGMA) for sample in unit]
    for side in np.transpose(p_values):
        assert stats.kstest(side, "uniform", alternative="greater").pvalue > 1e-3
        if law != "discrete_gaussian":
            assert stats.kstest(side, "uniform").pvalue > 1e-3


def test_shape_test_detects_another_distribution_in_one_of_ten_rounds():
    """The test samples 400,000 values, yet finds another distribution in one of ten rounds."""
    rng = np.random.default_rng(15)
    noise = rng.standard_normal((4_000, 10, 2, 5))
    noise[:, 7] = rng.choice([-1.0, 1.0], size=noise[:, 7].shape)  # equal variance
    assert noise_test(noise, 1.0, law="gaussian", confidence=0.999).p_values["shape"] < 1e-3


def test_noise_is_tested_against_the_scale_of_each_release():
    rng = np.random.default_rng(10)
    scales = np.geomspace(0.1, 10, 12)[:, None, None]
    noise = scales * rng.standard_normal(SHAPE)
    assert noise_test(noise, scales, law="gaussian", confidence=0.99).passes
    assert not noise_test(noise, scales[::-1], law="gaussian", confidence=0.99).passes


def test_scale_p_values_equal_gamma_tails_and_bound_discrete_gaussian_tails():
    for law, total, count, dist in (
        ("gaussian", 55.0, 40, stats.chi2(40)),
        ("laplace", 55.0, 40, stats.gamma(40)),
        ("gamma_norm", 55.0, 40, stats.gamma(40)),
    ):
        low, high = scale_p_values(np.array(total), count, law, 1.0)
        assert (low, high) == (pytest.approx(dist.cdf(total)), pytest.approx(dist.sf(total)))
    low, high = scale_p_values(np.array(55.0), 40, "uniform", 1.0)
    assert (low, high) == (
        pytest.approx(stats.gamma(40).sf(55.0)), pytest.approx(stats.gamma(40).cdf(55.0))
    )  # fmt: skip
    # distribution of the sum of 8 squared discrete Gaussians, by convolution
    k, mass = discrete_pmf(1.2)
    law = np.zeros(200)
    np.add.at(law, k[np.abs(k) < 14] ** 2, mass[np.abs(k) < 14])
    total = np.array([1.0])
    for _ in range(8):
        total = np.convolve(total, law)
    sums = np.arange(total.size)
    for s in (0, 2, 5, 20, 30, 45):
        low, high = scale_p_values(np.array(s / 1.2**2), 8, "discrete_gaussian", 1.2)
        assert total[sums <= s].sum() <= low * (1 + 1e-9) <= 20 * total[sums <= s].sum()
        assert total[sums >= s].sum() <= high * (1 + 1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_coincidences_are_no_more_frequent_than_the_stated_probability(law):
    rng = np.random.default_rng(11)
    values = np.abs(drawn(law, rng, (200_000, 2))) / scale_of(law)
    zero, equal = coincidence(law, scale_of(law), 0.01)
    cells = np.rint(values / 0.01)
    same = np.mean(cells[:, 0] == cells[::-1, 0])
    assert same <= equal + 4 * np.sqrt(equal / 200_000)
    assert np.mean(values[:, 0] < 0.005) <= zero + 4 * np.sqrt(zero / 200_000)
