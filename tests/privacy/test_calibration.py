"""Test that calibrated noise scales meet their budget, and slightly smaller ones do not."""

import math

import numpy as np
import pytest

from private_consensus.common.errors import InvalidInput
from private_consensus.privacy import (
    Budget,
    Release,
    account,
    analytic_gaussian_scale,
    calibrate,
    extended_gaussian_scale,
    gaussian_delta,
    gaussian_noise_multiplier,
)

BUDGETS = [Budget(0.1, 1e-9), Budget(1.0, 1e-5), Budget(10.0, 1e-3)]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("count", [1, 300])
def test_noise_multiplier_meets_the_budget_and_0_1_percent_less_exceeds_it(budget, count):
    multiplier = gaussian_noise_multiplier(budget, count)

    def cost(scale):
        return account([Release("gaussian", 1.0, scale, count=count)], budget.delta).epsilon

    assert cost(multiplier) <= budget.epsilon * (1 + 1e-12) < cost(0.999 * multiplier)


def test_analytic_gaussian_scale_is_proportional_to_sensitivity():
    assert analytic_gaussian_scale(BUDGETS[1], 3.0) == 3 * gaussian_noise_multiplier(BUDGETS[1])
    # analytic Gaussian mechanism of Balle and Wang (2018) at epsilon 1, delta 1e-5
    assert analytic_gaussian_scale(BUDGETS[1]) == pytest.approx(3.7306, abs=5e-4)


def test_a_budget_below_the_loss_with_any_noise_is_refused_with_this_loss():
    def releases(scale):
        return [Release("laplace", 1.0, scale), Release("pure", epsilon=1.25)]

    with pytest.raises(InvalidInput, match=r"epsilon above 1\.25"):
        calibrate(releases, Budget(1.0, 0.0))
    assert calibrate(releases, Budget(1.5, 0.0)) == pytest.approx(4.0, rel=1e-6)


def test_extended_gaussian_scale_meets_the_budget_for_every_epsilon():
    for delta in (0.7, 0.3, 1e-2, 1e-5, 1e-12):
        for value in np.geomspace(1e-4, 1e3, 40):
            scale = extended_gaussian_scale(Budget(value, delta))
            assert gaussian_delta(1 / scale, value) <= delta
            assert scale >= analytic_gaussian_scale(Budget(value, delta))


def test_extended_gaussian_scale_equals_the_published_formula():
    tail = math.log(math.sqrt(2 / math.pi) / 1e-3)
    printed = math.sqrt(2) * 5 / (2 * 0.1) * (math.sqrt(tail) + math.sqrt(tail + 0.1))
    assert extended_gaussian_scale(Budget(0.1, 1e-3), 5) == pytest.approx(printed, rel=1e-14)
    with pytest.raises(InvalidInput, match=r"budget\.delta"):
        extended_gaussian_scale(Budget(1.0, 0.8))


def test_bisection_agrees_with_closed_form_scales():
    budget = BUDGETS[1]
    gaussian = calibrate(lambda scale: [Release("gaussian", 1.0, scale, count=9)], budget)
    assert gaussian == pytest.approx(gaussian_noise_multiplier(budget, 9), rel=1e-5)
    assert gaussian >= gaussian_noise_multiplier(budget, 9)
    pure = calibrate(lambda scale: [Release("laplace", 1.0, scale)], Budget(0.3))
    assert pure == pytest.approx(1 / 0.3, rel=1e-5)


def test_bisection_meets_the_budget_of_a_mixture_of_releases():
    def releases(scale):
        return [
            Release("gaussian", 1.0, scale, count=20),
            Release("laplace", 1.0, 2 * scale, count=20),
        ]

    scale = calibrate(releases, BUDGETS[1])
    assert account(releases(scale), 1e-5).epsilon <= 1.0
    assert account(releases(0.999 * scale), 1e-5).epsilon > 1.0


def test_scale_is_zero_for_infinite_epsilon_and_for_no_releases():
    free = Budget(math.inf, 0)
    assert gaussian_noise_multiplier(free) == analytic_gaussian_scale(free) == 0
    assert extended_gaussian_scale(free) == 0
    assert calibrate(lambda scale: [Release("exact")], free) == 0
    assert calibrate(lambda scale: [], BUDGETS[1]) == 0


def test_budgets_that_no_noise_can_meet_are_refused():
    with pytest.raises(InvalidInput, match=r"budget\.delta"):
        gaussian_noise_multiplier(Budget(1.0))
    with pytest.raises(InvalidInput, match="budget"):
        calibrate(lambda scale: [Release("gaussian", 1.0, scale)], Budget(1.0))
    with pytest.raises(InvalidInput, match="budget"):
        calibrate(lambda scale: [Release("exact")], BUDGETS[1])


@pytest.mark.parametrize("epsilon", [1e-3, 1e-9, 1e-300])
def test_laplace_noise_for_a_tiny_epsilon_follows_from_delta(epsilon):
    """delta = 1 - exp((epsilon - 1/b)/2) for one release of sensitivity 1."""
    delta = 1e-5
    exact = 1.0 / (epsilon - 2.0 * np.log1p(-delta))
    scale = calibrate(lambda b: [Release("laplace", 1.0, b)], Budget(epsilon, delta))
    assert exact * (1.0 - 1e-6) <= scale <= 1.002 * exact
