"""Test composition: closed forms against numerical accountants, identities and errors."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from private_consensus.common.errors import InvalidInput
from private_consensus.privacy import (
    Guarantee,
    Release,
    account,
    gaussian_delta,
    gaussian_epsilon,
    zcdp_epsilon,
)
from private_consensus.privacy.accounting import epsilon_by_method, gaussian_dp
from private_consensus.privacy.loss_distributions import Pair
from private_consensus.privacy.loss_distributions import epsilon as pld_epsilon

DELTA = 1e-5


def gaussians(scale, count=1, **options):
    return [Release("gaussian", 1.0, scale, count=count, **options)]


def test_composed_gaussians_equal_one_gaussian_with_less_noise():
    single = account(gaussians(2.0 / math.sqrt(50)), DELTA).epsilon
    for releases in (gaussians(2.0, 50), gaussians(np.full(50, 2.0)), gaussians(2.0) * 50):
        assert account(releases, DELTA).epsilon == pytest.approx(single, rel=1e-12)


def test_mu_squared_adds_over_iterations_and_repeats():
    releases = [
        Release("gaussian", [1.0, 2.0], [4.0, 4.0], count=3),
        Release("gaussian", 3.0, [6.0, 12.0]),
    ]
    assert gaussian_dp(releases) ** 2 == pytest.approx(3 * (1 / 16 + 4 / 16) + 1 / 4 + 1 / 16)


@pytest.mark.parametrize("scale", [0.7, 3.0, 20.0])
def test_closed_form_agrees_with_loss_distributions_and_is_below_zcdp(scale):
    closed = account(gaussians(scale, 10), DELTA).epsilon
    by_losses = pld_epsilon([(Pair("gaussian", ((1.0, 1.0, 1 / scale),)), 10)], DELTA)
    assert closed * (1 - 1e-9) <= by_losses <= closed * (1 + 2e-3)
    assert closed < zcdp_epsilon(10 / scale**2 / 2, DELTA)


def randomised_response_epsilon(loss, count, delta):
    """Return epsilon of the optimal composition of equal pure releases.

    Theorem of Kairouz, Oh and Viswanath (2015).
    """
    wins = np.arange(count + 1)
    losses = (2 * wins - count) * loss
    mass = binom.pmf(wins, count, 1 / (1 + math.exp(-loss)))

    def spent(bound):
        return np.sum(mass * np.maximum(0, -np.expm1(np.minimum(bound - losses, 0.0))))

    low, high = 0.0, count * loss
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if spent(middle) <= delta else (middle, high)
    return high


@pytest.mark.parametrize(
    ("loss", "count"), [(0.1, 60), (0.0512345, 200), (0.5, 10), (2.0, 3), (50.0, 2)]
)
def test_epsilon_of_composed_pure_releases_is_within_0_3_percent_of_optimal(loss, count):
    best = randomised_response_epsilon(loss, count, DELTA)
    guarantee = account([Release("pure", epsilon=loss, count=count)], DELTA)
    assert best * (1 - 1e-9) <= guarantee.epsilon <= best * 1.003
    rho = count * loss * math.tanh(loss / 2)
    assert guarantee.epsilon <= min(loss * count, zcdp_epsilon(rho, DELTA))


@pytest.mark.parametrize(
    ("loss", "count", "delta"),
    [(0.01, 600_000, 1e-10), (0.01, 600_000, 1e-9), (0.001, 500_000, 1e-10), (32.0068, 1, 1e-10)],
)
def test_rounding_errors_do_not_make_epsilon_too_small(loss, count, delta):
    """Fourier transforms change delta by 1e-11.

    For large losses, the probability of a true response rounds to 1.
    """
    best = randomised_response_epsilon(loss, count, delta)
    guarantee = account([Release("pure", epsilon=loss, count=count)], delta)
    assert best * (1 - 1e-9) <= guarantee.epsilon <= best * 1.02


@pytest.mark.parametrize("loss", [150.0123, 449.4569, 700.0, 720.0, 800.0, 5000.0])
@pytest.mark.parametrize("count", [1, 3])
def test_epsilon_of_huge_pure_losses_is_between_its_exact_value_and_their_sum(loss, count):
    """Up to rounding, all responses are true, so that delta = 1 - exp(epsilon - sum)."""
    exact = count * loss + math.log1p(-1e-5)
    assert (
        exact * (1 - 1e-12)
        <= account([Release("pure", epsilon=loss, count=count)], 1e-5).epsilon
        <= count * loss
    )
    by_losses = epsilon_by_method([Release("pure", epsilon=loss, count=count)], 1e-5)["pld"]
    assert exact * (1 - 1e-12) <= by_losses


def test_rounding_allowance_is_independent_of_the_number_of_gaussians():
    """Gaussians without sampling are composed as one release."""
    many = account(
        [Release("gaussian", 1e-3, 1.0, count=10**6), Release("pure", epsilon=0.5)], 1e-10
    )
    few = account([Release("gaussian", 1.0, 1.0), Release("pure", epsilon=0.5)], 1e-10)
    assert many.epsilon == pytest.approx(few.epsilon, rel=1e-6)
    assert many.method == few.method == "pld"


def test_epsilon_of_a_mixture_is_the_minimum_over_the_accountants_that_apply():
    mixture = [*gaussians(10.0, 30), Release("laplace", 1.0, 20.0, count=30)]
    guarantee, epsilons = account(mixture, DELTA), epsilon_by_method(mixture, DELTA)
    assert guarantee.epsilon == min(epsilons.values()) == epsilons[guarantee.method] < math.inf
    assert epsilons["pure"] == math.inf
    gaussian = account(gaussians(10.0, 30), DELTA).epsilon
    assert gaussian < guarantee.epsilon < gaussian + 1.5  # basic composition


def test_a_small_pure_release_adds_at_most_its_epsilon_to_that_of_gaussians():
    gaussian = account(gaussians(1.0, 10), 1e-12).epsilon
    both = account([*gaussians(1.0, 10), Release("pure", epsilon=1e-6)], 1e-12)
    assert gaussian <= both.epsilon <= (gaussian + 1e-6) * (1 + 1e-6)


def test_discrete_gaussian_is_accounted_by_zcdp_and_not_as_a_gaussian():
    discrete = [Release("discrete_gaussian", 1, 4, count=8)]
    assert account(discrete, DELTA).epsilon <= zcdp_epsilon(8 / 32, DELTA)
    assert gaussian_dp(discrete) == math.inf
    assert account(discrete, DELTA).epsilon > gaussian_epsilon(math.sqrt(8) / 4, DELTA)


def test_epsilon_is_zero_without_releases_or_sensitivity_and_infinite_without_noise():
    assert account([], DELTA) == Guarantee(0.0, DELTA, "none")
    assert account([Release("exact", 0)], 0).epsilon == 0
    assert account([*gaussians(1.0), Release("exact")], DELTA).epsilon == math.inf
    assert "without noise" in account([Release("exact")], DELTA).note
    assert account(gaussians(0.0), DELTA).epsilon == math.inf
    assert account([Release("gaussian", 0.0, 0.0)], 0).epsilon == 0
    assert account(gaussians(1.0, 0), DELTA).epsilon == 0


def test_gaussians_have_infinite_epsilon_at_delta_zero():
    assert account(gaussians(1e6), 0).epsilon == math.inf
    assert account([Release("laplace", 1, 4, count=3)], 0) == Guarantee(0.75, 0, "pure")


def test_guarantee_inherits_an_unproven_sensitivity_and_its_note():
    guarantee = account(gaussians(2.0, proven=False, note="assumes bounded gradients"), DELTA)
    assert not guarantee.proven and guarantee.note == "assumes bounded gradients"
    assert account(gaussians(2.0), DELTA).proven


def test_many_distinct_losses_are_all_counted():
    losses = np.geomspace(1e-3, 2.0, 400)
    releases = [Release("laplace", losses, 30.0)]
    composed_epsilon = account(releases, DELTA).epsilon
    assert composed_epsilon < zcdp_epsilon(np.sum((losses / 30) ** 2) / 2, DELTA)
    assert composed_epsilon < losses.sum() / 30
    assert composed_epsilon > gaussian_epsilon(np.linalg.norm(losses / 30) * 0.8, DELTA)


def test_errors_name_the_invalid_argument():
    with pytest.raises(InvalidInput, match="delta"):
        account([], 1.0)


def test_delta_at_the_reported_epsilon_equals_the_requested_delta():
    guarantee = account(gaussians(np.geomspace(3, 30, 100)), DELTA)
    mu = gaussian_dp(gaussians(np.geomspace(3, 30, 100)))
    assert gaussian_delta(mu, guarantee.epsilon) == pytest.approx(DELTA, rel=1e-9)


def test_a_large_delta_leaves_a_small_epsilon_of_a_pure_release():
    """The Gaussian release alone has delta 1/2 at epsilon 0, up to 1e-11."""
    releases = [Release("gaussian", 2 * norm.ppf(0.75), 1.0), Release("pure", epsilon=1e-3)]
    assert 0 < account(releases, 0.5).epsilon < 1e-3
