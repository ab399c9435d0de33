"""Test loss distributions on a grid against closed forms."""

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr
from scipy.stats import binom

from private_consensus.privacy import account
from private_consensus.privacy.accounting import _from_profile, _Group, _loss_distribution
from private_consensus.privacy.conversions import gaussian_epsilon
from private_consensus.privacy.subsampling import fixed_batches, noisy_mean

DELTA = 1e-5


@pytest.mark.parametrize(("mu", "step"), [(0.05, 1e-4), (0.7, 1e-3), (3.3, 1e-2)])
def test_epsilon_of_one_gaussian_release_is_at_most_0_1_percent_above_exact(mu, step):
    distribution = _loss_distribution(_Group("gaussian", mu, 1, None), step)
    exact = gaussian_epsilon(mu, DELTA)
    assert exact <= distribution.get_epsilon_for_delta(DELTA) <= exact * (1 + 1e-3)


@pytest.mark.parametrize(("loss", "step"), [(1e-3, 1e-6), (0.03, 1e-5), (2.0, 1e-3)])
def test_epsilon_of_one_laplace_release_is_within_one_grid_step_above_exact(loss, step):
    r"""Compare with :math:`\delta(\epsilon) = 1 - e^{(\epsilon-\ell)/2}`."""
    exact = loss + 2 * np.log1p(-DELTA)
    distribution = _loss_distribution(_Group("laplace", loss, 1, None), step)
    epsilon_bound = distribution.get_epsilon_for_delta(DELTA)
    assert exact - 1e-13 <= epsilon_bound <= exact + step


@pytest.mark.parametrize(("steps", "count"), [(30, 12), (200, 60)])
def test_composed_randomised_responses_agree_with_the_binomial_distribution(steps, count):
    loss = 1e-3 * steps
    truth = 1 / (1 + np.exp(-loss))
    distribution = _loss_distribution(_Group("pure", loss, count, None), 1e-3)
    truths = np.arange(count + 1)
    losses = (2 * truths - count) * loss
    weights = binom.pmf(truths, count, truth)
    for epsilon in (0.0, 0.4, 1.1):
        exact = (weights * np.maximum(-np.expm1(epsilon - losses), 0)).sum()
        # Truncated mass counts as an infinite loss, so that the curve is not below the exact one.
        assert (
            -1e-15 <= distribution.get_delta_for_epsilon(epsilon) - exact <= 1e-14 + 1e-12 * exact
        )


@pytest.mark.parametrize("sigma", [0.01, 0.003, 0.001])
@pytest.mark.parametrize("sampling", ["fixed_size", "poisson"])
def test_epsilon_of_one_batch_with_little_noise_is_within_0_5_percent_of_exact(sigma, sampling):
    """Losses beyond 709, whose exponential overflows, are accounted for.

    With rate q the exact curve of one batch is q H(eps + ln(1/q)) for a Gaussian of that mu.
    """
    noise = noisy_mean(fixed_batches(10), 1000, sampling=sampling)
    mu, rate = noise.losses[0] / sigma, 0.01

    def exact_delta(epsilon):
        loss = epsilon - np.log(rate) + np.log1p(-(1 - rate) * np.exp(-epsilon))
        tail = loss + log_ndtr(-mu / 2 - loss / mu)
        return rate * (ndtr(mu / 2 - loss / mu) - np.exp(tail))

    epsilon = account(noise.releases(sigma, 1), DELTA).epsilon
    assert exact_delta(epsilon) <= DELTA * (1 + 1e-6)
    assert exact_delta(0.995 * epsilon) > DELTA


def test_a_coarse_first_grid_is_refined():
    """The bound of Renyi accounting sets the first grid; here it is six times the result."""
    releases = noisy_mean(fixed_batches(10), 1000).releases(0.01, 100)
    guarantee = account(releases, DELTA)
    finest = noisy_mean(fixed_batches(10), 1000).releases(0.01, 1)[0].profile
    fine = _from_profile(finest, 0.1).self_compose(100).get_epsilon_for_delta(DELTA)
    assert fine <= guarantee.epsilon <= 1.005 * fine
