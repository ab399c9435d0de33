"""Test the simulated coverage of confidence intervals of claims, and closed forms."""

import numpy as np
import pytest
from scipy.stats import t

from private_consensus.reproduction.claims.intervals import jackknife, limits, quantile, runs_needed

LAWS = {
    "normal": (lambda rng, size: rng.normal(size=size), 0.0),
    "exponential": (lambda rng, size: rng.exponential(size=size), 1.0),
    "lognormal": (lambda rng, size: rng.lognormal(size=size), np.exp(0.5)),
    "student": (lambda rng, size: rng.standard_t(3, size=size), 0.0),
}
MISSED = {
    "normal": [0.05, 0.05, 0.05, 0.05, 0.05],
    "exponential": [0.085, 0.07, 0.055, 0.05, 0.05],
    "lognormal": [0.13, 0.105, 0.075, 0.055, 0.055],
    "student": [0.05, 0.05, 0.05, 0.05, 0.055],
}
"""Largest allowed fraction of misses at level 5 %, for 5, 10, 30, 100 and 500 runs.

Few runs of a long-tailed distribution do not contain the tail, which no interval can correct."""


def moments(values):
    """Return mean, standard error and skewness of each row."""
    mean = values.mean(1)
    centred = values - mean[:, None]
    variance = (centred**2).mean(1)
    error = np.sqrt(variance / (values.shape[1] - 1))
    return mean, error, (centred**3).mean(1) / variance**1.5


@pytest.mark.parametrize("law", LAWS)
def test_the_fraction_of_intervals_that_miss_the_true_mean_is_bounded(law):
    draw, truth = LAWS[law]
    rng = np.random.default_rng(5)
    for runs, max_missed in zip((5, 10, 30, 100, 500), MISSED[law], strict=True):
        repeated = 5000 if runs <= 100 else 1500
        low, high = limits(*moments(draw(rng, (repeated, runs))), runs, 0.05)
        missed = 1 - np.mean((low <= truth) & (truth <= high))
        noise = 3 * np.sqrt(max_missed * (1 - max_missed) / repeated)
        assert 0.3 * 0.05 <= missed <= max_missed + noise, runs


def test_the_skewness_correction_improves_coverage():
    """For skewed runs, Student's interval exceeds its error level of 0.1 % several times."""
    rng = np.random.default_rng(6)
    mean, error, skewness = moments(rng.exponential(size=(20_000, 30)))
    low, high = limits(mean, error, skewness, 30, 0.001)
    half = error * t.isf(0.0005, 29)
    ours = np.mean((low > 1) | (high < 1))
    symmetric = np.mean(np.abs(mean - 1) > half)
    assert symmetric > 0.005
    assert ours < 0.003


def test_without_skewness_the_interval_is_students_t_interval():
    values = np.array([[-2.0, -1.0, 0.0, 1.0, 2.0, 0.0]])
    low, high = limits(*moments(values), 6, 0.01)
    half = values.std(ddof=1) / np.sqrt(6) * t.isf(0.005, 5)
    assert (low, high) == (pytest.approx(-half), pytest.approx(half))


@pytest.mark.parametrize("runs", [2, 3, 4])
def test_intervals_of_fewer_than_five_varying_runs_are_unbounded(runs):
    assert [float(end) for end in limits(1.0, 0.1, 0.0, runs, 0.05)] == [-np.inf, np.inf]
    assert [float(end) for end in limits(1.0, 0.0, 0.0, runs, 0.05)] == [1.0, 1.0]


def test_the_jackknife_agrees_with_standard_errors_and_the_delta_method():
    values = np.random.default_rng(3).normal(5.0, 0.2, size=(2, 400))
    estimate, error, skewness = jackknife(lambda means: means, values)
    assert estimate == pytest.approx(values.mean(1))
    assert error == pytest.approx(values.std(1, ddof=1) / 20)
    assert skewness == pytest.approx(moments(values)[2])
    _, relative, _ = jackknife(np.log, values)
    assert relative == pytest.approx(error / values.mean(1), rel=1e-3)


@pytest.mark.parametrize("distance", [0.3, 0.05])
def test_the_interval_of_the_needed_runs_ends_at_the_border(distance):
    needed = runs_needed(distance, 0.1, 10, 0.01)
    error = 0.1 * np.sqrt(10 / needed)
    assert error * quantile(0.01, int(needed)) == pytest.approx(distance, rel=0.15)
    assert runs_needed(0.0, 0.1, 10, 0.01) == np.inf
