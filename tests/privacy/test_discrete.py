"""Test the discrete Gaussian sampler against its probabilities."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from private_consensus.common.errors import InvalidInput
from private_consensus.privacy import (
    discrete_gaussian,
    discrete_gaussian_from_uniform,
    discrete_gaussian_pmf,
)
from private_consensus.privacy.discrete import _bernoulli, _bernoulli_exp


def fits(draws, variance):
    """Return the chi-square p-value of draws under the distribution; rare values are merged."""
    reach = int(10 * np.sqrt(float(variance))) + 3
    support = np.arange(-reach, reach + 1)
    expected = discrete_gaussian_pmf(support, variance) * draws.size
    observed = np.bincount(draws + reach, minlength=support.size)
    common = expected >= 5
    remainder = draws.size - expected[common].sum()
    return chisquare(
        np.append(observed[common], observed[~common].sum()) + 1e-12,
        np.append(expected[common], remainder) + 1e-12,
    ).pvalue


# a small ratio, integers, floats whose exact fractions need long arithmetic, a wide distribution
VARIANCES = [Fraction(1, 4), 1, Fraction(7, 3), 0.1, 2.7, 30.1, 2500]


@pytest.mark.parametrize("variance", VARIANCES)
def test_draws_follow_the_discrete_gaussian_distribution(variance):
    draws = discrete_gaussian(np.random.default_rng(5), variance, 20_000)
    assert draws.dtype == np.int64
    assert fits(draws, variance) > 1e-3


@pytest.mark.parametrize("variance", VARIANCES)
def test_chi_square_test_rejects_another_variance(variance):
    draws = discrete_gaussian(np.random.default_rng(5), variance, 20_000)
    assert fits(draws, 1.15 * float(variance)) < 1e-6
    assert fits(draws, float(variance) / 1.15) < 1e-6


def test_chi_square_test_rejects_a_rounded_gaussian():
    rounded = np.rint(np.random.default_rng(0).standard_normal(20_000)).astype(int)
    assert fits(rounded, 1) < 1e-6


@pytest.mark.parametrize("variance", [0.01, 0.3, 0.999, 1.0, 4.5, 1e4])
def test_probabilities_add_up_to_one(variance):
    support = np.arange(-2000, 2001)
    total = np.exp(-(support**2) / (2 * variance)).sum()
    assert discrete_gaussian_pmf(support, variance).sum() == pytest.approx(1, abs=1e-14)
    assert discrete_gaussian_pmf(0, variance) == pytest.approx(1 / total, rel=1e-13)


@pytest.mark.parametrize(("variance", "shift"), [(0.5, 1), (4, 1), (4, 3)])
def test_renyi_divergence_is_at_most_the_zcdp_bound(variance, shift):
    support = np.arange(-400, 401)
    p, q = (-((support - move) ** 2) / (2 * variance) for move in (0, shift))
    normaliser = np.log(np.sum(np.exp(p)))
    for order in (1.1, 2.0, 2.5, 7.3):
        moment = np.logaddexp.reduce(order * p + (1 - order) * q) - normaliser
        bound = order * shift**2 / (2 * variance)
        assert 0.5 * bound < moment / (order - 1) <= bound + 1e-12


def test_bernoulli_samples_have_their_probability_for_small_and_huge_integers():
    rng = np.random.default_rng(11)
    short = _bernoulli(rng, np.full(40_000, 3), 7).mean()
    huge = 10**40
    long = _bernoulli(rng, np.full(40_000, 3 * huge, dtype=object), 7 * huge).mean()
    for share in (short, long):
        assert share == pytest.approx(3 / 7, abs=4 * np.sqrt(12 / 49 / 40_000))
    for numerator, probability in ((0, 1.0), (1, np.exp(-0.5)), (5, np.exp(-2.5))):
        share = _bernoulli_exp(rng, np.full(40_000, numerator), 2).mean()
        assert share == pytest.approx(probability, abs=4 * np.sqrt(0.25 / 40_000))


def test_draws_are_reproducible_and_have_the_requested_shape():
    draws = discrete_gaussian(np.random.default_rng(3), 9, (4, 5))
    assert draws.shape == (4, 5)
    np.testing.assert_array_equal(draws, discrete_gaussian(np.random.default_rng(3), 9, (4, 5)))
    assert discrete_gaussian(np.random.default_rng(3), 9, 0).size == 0


@pytest.mark.parametrize("variance", [0.2, 6.0, 900.0])
def test_inverse_sampling_follows_the_distribution_and_is_monotone(variance):
    uniform = np.random.default_rng(8).random(20_000)
    draws = discrete_gaussian_from_uniform(uniform, variance)
    assert fits(draws, variance) > 1e-3
    assert np.all(np.diff(draws[np.argsort(uniform)]) >= 0)


@pytest.mark.parametrize("variance", [0, -1, float("inf"), float("nan")])
def test_a_variance_must_be_positive_and_finite(variance):
    with pytest.raises(InvalidInput, match="variance"):
        discrete_gaussian(np.random.default_rng(0), variance, 3)
