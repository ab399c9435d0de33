"""Test conversions against high-precision arithmetic, published tables and inverses."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_consensus.common.errors import InvalidInput
from private_consensus.privacy import (
    CONVERSIONS,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    zcdp_epsilon,
    zcdp_rho,
)
from private_consensus.privacy.conversions import gaussian_log_delta

MUS = st.floats(1e-4, 50)
EPSILONS = st.floats(1e-3, 100)
DELTAS = st.floats(-690, -0.7).map(np.exp)


def exact_log_delta(mu, epsilon):
    with mpmath.workdps(420):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        low = mpmath.erfc((epsilon / mu - mu / 2) / mpmath.sqrt(2)) / 2
        high = mpmath.erfc((epsilon / mu + mu / 2) / mpmath.sqrt(2)) / 2
        return mpmath.log(low - mpmath.exp(epsilon) * high)


@pytest.mark.parametrize("mu", [1e-8, 1e-3, 0.1, 0.4999, 0.5001, 1, 3, 12, 100])
@pytest.mark.parametrize("ratio", [0, 1e-3, 0.3, 2, 10, 36])
def test_gaussian_delta_agrees_with_high_precision_arithmetic(mu, ratio):
    epsilon = ratio * mu
    expected = exact_log_delta(mu, epsilon)
    assert gaussian_log_delta(mu, epsilon) == pytest.approx(float(expected), rel=1e-13, abs=1e-12)
    if expected > -690:
        assert gaussian_delta(mu, epsilon) == pytest.approx(float(mpmath.exp(expected)), rel=1e-11)


def test_gaussian_log_delta_is_accurate_below_the_smallest_float():
    expected = float(exact_log_delta(0.5, 40.0))
    assert expected < -2000
    assert gaussian_delta(0.5, 40.0) == 0.0
    assert gaussian_log_delta(0.5, 40.0) == pytest.approx(expected, rel=1e-13)


def test_limits_and_array_shapes_of_gaussian_conversions():
    assert gaussian_delta(0, 1) == 0 and gaussian_delta(np.inf, 1) == 1
    assert gaussian_delta(1, np.inf) == 0
    assert gaussian_epsilon(1, 0) == np.inf and gaussian_epsilon(0, 0) == 0
    assert gaussian_mu(np.inf, 1e-5) == np.inf and gaussian_mu(1, 0) == 0
    assert gaussian_epsilon(1e-9, 0.1) == 0
    assert isinstance(gaussian_delta(1, 1), float)
    assert gaussian_delta(np.ones((3, 1)), np.ones(4)).shape == (3, 4)
    assert gaussian_epsilon(np.ones((3, 1)), np.full(4, 0.1)).shape == (3, 4)


@settings(max_examples=60, deadline=None)
@given(MUS, DELTAS)
def test_gaussian_epsilon_inverts_gaussian_delta(mu, delta):
    epsilon = gaussian_epsilon(mu, delta)
    if epsilon == 0:
        assert gaussian_delta(mu, 0) <= delta
    else:
        assert gaussian_log_delta(mu, epsilon) == pytest.approx(np.log(delta), rel=1e-11, abs=1e-11)


@settings(max_examples=60, deadline=None)
@given(EPSILONS, DELTAS)
def test_gaussian_mu_inverts_gaussian_epsilon(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_epsilon(mu, delta) <= epsilon * (1 + 1e-9)
    assert gaussian_epsilon(mu * 1.0001, delta) > epsilon


@settings(max_examples=20, deadline=None)
@given(EPSILONS, DELTAS, st.sampled_from(CONVERSIONS))
def test_zcdp_rho_inverts_zcdp_epsilon_for_each_conversion(epsilon, delta, conversion):
    rho = zcdp_rho(epsilon, delta, conversion=conversion)
    assert zcdp_epsilon(rho, delta, conversion=conversion) == pytest.approx(epsilon, rel=1e-9)


# Columns at delta 1e-4: epsilon, rho by each conversion, pure epsilon of one of 30 steps.


def test_shortcut_conversion_fails_for_gaussian_noise_only_at_the_largest_epsilon():
    """A Gaussian mechanism is rho-zCDP, so its exact epsilon refutes a conversion that is lower."""
    nominal = np.array([1, 2, 5, 10.0])
    rho = zcdp_rho(nominal, 1e-4, conversion="shortcut")
    exact = gaussian_epsilon(np.sqrt(2 * rho), 1e-4)
    assert (exact > nominal).tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    ("epsilon", "paper", "safe", "exact"), [(1, 13.6, 20.3, 17.3), (0.15, 2.04, 2.19, 1.51)]
)
def test_gratton_et_al_omit_a_term_of_the_zcdp_conversion(epsilon, paper, safe, exact):
    rho = 200 * epsilon**2 / (4.2 * np.log(1.25 / 1e-3))
    by = {name: zcdp_epsilon(rho, 1e-3, conversion=name) for name in ("shortcut", "safe")}
    assert by["shortcut"] == pytest.approx(paper, rel=5e-3)
    assert by["safe"] == pytest.approx(safe, rel=5e-3)
    assert gaussian_epsilon(np.sqrt(2 * rho), 1e-3) == pytest.approx(exact, rel=5e-3)


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.1, 1, 30])
@pytest.mark.parametrize("delta", [1e-200, 1e-9, 1e-3, 0.3])
def test_cks_conversion_is_the_minimum_over_all_orders(rho, delta):
    excess = np.exp(np.linspace(-20, 60, 200_001))
    bound = (
        (1 + excess) * rho
        + (-np.log(delta) - np.log1p(excess)) / excess
        + np.log(excess)
        - np.log1p(excess)
    )
    assert zcdp_epsilon(rho, delta) == pytest.approx(max(0.0, bound.min()), rel=1e-6, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-6, 100), DELTAS)
def test_exact_epsilon_is_below_cks_and_cks_below_the_safe_conversion(rho, delta):
    exact = gaussian_epsilon(np.sqrt(2 * rho), delta)
    cks = zcdp_epsilon(rho, delta)
    assert exact <= cks * (1 + 1e-9) + 1e-12
    assert cks <= zcdp_epsilon(rho, delta, conversion="safe")


def test_invalid_input_is_refused():
    for call in (
        lambda: gaussian_epsilon(1, 1),
        lambda: gaussian_mu(1, -0.1),
        lambda: zcdp_epsilon(1, 2),
        lambda: zcdp_epsilon(-1, 0.1),
        lambda: zcdp_rho(1, 0.1, conversion="exact"),
        lambda: gaussian_delta(-1, 1),
    ):
        with pytest.raises(InvalidInput):
            call()


def test_gaussian_epsilon_is_the_smallest_float_that_meets_delta():
    mus = np.array([0.01, 0.3, 2.0, 7.0])
    epsilons = gaussian_epsilon(mus, 1e-5)
    assert [gaussian_epsilon(mu, 1e-5) for mu in mus] == epsilons.tolist()
    assert (gaussian_log_delta(mus, epsilons) <= np.log(1e-5)).all()
    assert (gaussian_log_delta(mus, np.nextafter(epsilons, 0)) > np.log(1e-5)).all()
