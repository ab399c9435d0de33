"""Test accounts of weak sampled Gaussian noise, for which rounding exceeds the divergences."""

import math

import mpmath
import pytest

from private_consensus.privacy import (
    Budget,
    Release,
    account,
    calibrate,
    fixed_batches,
    gaussian_epsilon,
)
from private_consensus.privacy.loss_distributions import Pair, _distributions, _uneven_edges
from private_consensus.privacy.subsampling import noisy_sum


def sampled(sigma, count, rate, kind="poisson"):
    """Return releases with the ratio 1 / sigma of sensitivity and noise, if a record is sampled."""
    noise = noisy_sum(fixed_batches(round(rate * 10**5)), 10**5, sampling=kind)
    return noise.releases(sigma if kind == "poisson" else 2 * sigma, count)


def exact_log_moment(order, rate, mu):
    """Sum the moment of Mironov et al. in high precision."""
    with mpmath.workdps(80):
        rate, mu = mpmath.mpf(rate), mpmath.mpf(mu)
        terms = (
            mpmath.binomial(order, i)
            * rate**i
            * (1 - rate) ** (order - i)
            * mpmath.exp(i * (i - 1) * mu**2 / 2)
            for i in range(order + 1)
        )
        return float(mpmath.log(mpmath.fsum(terms)))


@pytest.mark.parametrize("order", [2, 3, 17])
@pytest.mark.parametrize(("rate", "mu"), [(0.01, 1e-7), (0.5, 1e-8), (1e-9, 0.3), (0.1, 0.2)])
def test_the_moment_of_a_discretized_loss_is_slightly_above_its_exact_value(order, rate, mu):
    parts = [(Pair("gaussian", ((1.0, rate, mu),), "poisson"), 1)]
    (removed, _) = _distributions(parts, 1e-40, _uneven_edges)
    exact = exact_log_moment(order, rate, mu)
    assert exact * (1 - 1e-6) <= removed.log_moment(order - 1) <= exact * (1 + 1e-3)


WEAK = [(1e7, 1000, 0.01, 1e-12), (1e8, 10**6 + 1, 0.5, 1e-12), (1e5, 10**12, 1e-5, 1e-5)]


@pytest.mark.parametrize(("sigma", "count", "rate", "delta"), WEAK)
def test_many_weak_sampled_releases_are_not_free(sigma, count, rate, delta):
    # To first order in rate / sigma, the mixture is a Gaussian with a mean of rate / sigma.
    least = gaussian_epsilon(rate * math.sqrt(count) / sigma, delta)
    upper = account(sampled(sigma, count, rate), delta).epsilon
    assert least * (1 - 1e-3) <= upper <= 200 * least
    of_fixed_size = account(sampled(sigma, count, rate, "fixed_size"), delta).epsilon
    assert of_fixed_size >= least * (1 - 1e-3)


@pytest.mark.parametrize(("rate", "count", "budget"), [(0.01, 10**6, 1e-6), (0.1, 10**9, 1e-4)])
def test_calibrated_weak_noise_meets_its_budget(rate, count, budget):
    delta = 1e-12
    sigma = calibrate(lambda scale: sampled(scale, count, rate), Budget(budget, delta))
    assert gaussian_epsilon(rate * math.sqrt(count) / sigma, delta) <= budget


@pytest.mark.parametrize("sampling", ["poisson", "fixed_size"])
@pytest.mark.parametrize("records", [10**4, 10**7, 10**8])
def test_small_losses_of_a_batch_compose_like_a_gaussian_of_their_variance(sampling, records):
    # One record changes the likelihood ratio by u with this variance. The loss of the replacement
    # is that of the half line on which it is positive, and its mirror image.
    sigma, rate, count = 20.0, 1 / records, 10**6
    mu = (1 if sampling == "poisson" else 2) / sigma
    variance = rate**2 * math.expm1(mu**2)
    if sampling == "fixed_size":
        half = mpmath.quad(
            lambda x: (mpmath.exp(mu * x - mu**2 / 2) - 1) ** 2 * mpmath.npdf(x),
            [mu / 2, 4, 12],
        )
        variance = 2 * rate**2 * float(half)
    releases = noisy_sum(fixed_batches(1), records, sampling=sampling).releases(sigma, count)
    for delta in (1e-8, 1e-10):
        exact = gaussian_epsilon(math.sqrt(count * variance), delta)
        upper = account(releases, delta).epsilon
        assert exact * (1 - 1e-3) <= upper <= 1.01 * exact


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("sensitivity", [1e-15, 1e20])
def test_noise_of_any_size_is_calibrated(mechanism, sensitivity):
    budget = Budget(1.0, 1e-5)

    def scale_for(size):
        return calibrate(lambda scale: [Release(mechanism, size, scale)], budget)

    assert scale_for(sensitivity) == pytest.approx(sensitivity * scale_for(1.0), rel=1e-5)
    assert calibrate(lambda scale: [], budget) == 0.0


def test_extreme_sampled_noise_has_a_finite_account():
    assert 0 < account(sampled(1e9, 1, 0.01, "fixed_size"), 1e-12).epsilon < math.inf
