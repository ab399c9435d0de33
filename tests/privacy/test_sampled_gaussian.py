"""Test accounts of weak sampled Gaussian noise, for which rounding exceeds the divergences."""

import math

import mpmath
import numpy as np
import pytest

from private_consensus.privacy import (
    Budget,
    Release,
    Sampling,
    account,
    calibrate,
    fixed_batches,
    gaussian_epsilon,
    noisy_sum,
)
from private_consensus.privacy.releases import RENYI_ORDERS
from private_consensus.privacy.sampled_gaussian import log_moment
from private_consensus.privacy.subsampling import renyi_curve


def sampled(sigma, count, rate, kind="poisson"):
    return [Release("gaussian", 1.0, sigma, count=count, sampling=Sampling(kind, rate))]


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


@pytest.mark.parametrize("order", [2, 3, 17, 64, 1024])
@pytest.mark.parametrize(("rate", "mu"), [(0.01, 1e-7), (0.5, 1e-8), (1e-9, 0.3), (0.1, 0.2)])
def test_the_moment_agrees_with_high_precision_arithmetic(order, rate, mu):
    expected = exact_log_moment(order, rate, mu)
    assert log_moment(order, rate, mu) == pytest.approx(expected, rel=1e-9)


def test_a_moment_between_integers_is_bounded_by_the_chord():
    rate, mu = 0.3, 1e-3
    ends = [0.0, *(exact_log_moment(order, rate, mu) for order in (2, 3))]
    assert log_moment(1.0, rate, mu) == 0
    assert log_moment(1.25, rate, mu) == pytest.approx(0.25 * ends[1], rel=1e-9)
    assert log_moment(2.5, rate, mu) == pytest.approx((ends[1] + ends[2]) / 2, rel=1e-9)


WEAK = [(1e7, 1000, 0.01, 1e-12), (1e8, 10**6 + 1, 0.5, 1e-12), (1e5, 10**12, 1e-5, 1e-5)]


@pytest.mark.parametrize(("sigma", "count", "rate", "delta"), WEAK)
def test_many_weak_sampled_releases_are_not_free(sigma, count, rate, delta):
    # To first order in rate / sigma, the mixture is a Gaussian with a mean of rate / sigma.
    least = gaussian_epsilon(rate * math.sqrt(count) / sigma, delta)
    epsilon = account(sampled(sigma, count, rate), delta).epsilon
    assert least * (1 - 1e-3) <= epsilon <= 200 * least
    of_fixed_size = account(sampled(sigma, count, rate, "fixed_size"), delta).epsilon
    assert of_fixed_size >= least * (1 - 1e-3)


@pytest.mark.parametrize(("rate", "count", "epsilon"), [(0.01, 10**6, 1e-6), (0.1, 10**9, 1e-4)])
def test_calibrated_weak_noise_meets_its_budget(rate, count, epsilon):
    delta = 1e-12
    sigma = calibrate(lambda scale: sampled(scale, count, rate), Budget(epsilon, delta))
    assert gaussian_epsilon(rate * math.sqrt(count) / sigma, delta) <= epsilon


@pytest.mark.parametrize("sampling", ["poisson", "fixed_size"])
@pytest.mark.parametrize("records", [10**4, 10**7, 10**8])
def test_small_divergences_of_a_batch_have_their_leading_order(sampling, records):
    # One record changes the likelihood ratio by u, with variance rate^2 mu^2: the divergence is
    # alpha Var(u) / 2 for adding or removing it, and alpha Var(u) for replacing it with its mirror.
    sigma, rate = 20.0, 1 / records
    mu = (1 if sampling == "poisson" else 2) / sigma
    curve = np.array(renyi_curve(noisy_sum(fixed_batches(1), records, sampling=sampling), sigma))
    orders = np.array(RENYI_ORDERS)
    variance = rate**2 * math.expm1(mu**2)
    if sampling == "fixed_size":  # the half line on which the loss is positive, and its mirror
        half = mpmath.quad(
            lambda x: (mpmath.exp(mu * x - mu**2 / 2) - 1) ** 2 * mpmath.npdf(x),
            [mu / 2, 4, 12],
        )
        variance = 2 * rate**2 * float(half)
    small = orders <= 8
    expected = orders[small] * variance / 2
    assert curve[small] == pytest.approx(expected, rel=1e-2 if records == 10**4 else 1e-5)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("sensitivity", [1e-15, 1e20])
def test_noise_of_any_size_is_calibrated(mechanism, sensitivity):
    budget = Budget(1.0, 1e-5)

    def scale_for(size):
        return calibrate(lambda scale: [Release(mechanism, size, scale)], budget)

    assert scale_for(sensitivity) == pytest.approx(sensitivity * scale_for(1.0), rel=1e-5)
    assert calibrate(lambda scale: [], budget) == 0.0


@pytest.mark.parametrize(
    "releases",
    [
        [Release("laplace", 1.0, 1 / 800, sampling=Sampling("poisson", 0.01))],
        sampled(1e9, 1, 0.01, "fixed_size"),
    ],
)
def test_extreme_sampled_noise_has_a_finite_account(releases):
    assert 0 < account(releases, 1e-12).epsilon < math.inf


def test_orders_without_a_divergence_are_excluded_without_a_warning(caplog):
    account(sampled(0.83, 3, 0.2), 1e-5)
    assert "failed to converge" not in caplog.text
