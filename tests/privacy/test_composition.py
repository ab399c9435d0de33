"""Test composed mixtures of releases against loss distributions composed one by one."""

import math
from functools import reduce

import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution as pld

from private_consensus.privacy import (
    Release,
    account,
    fixed_batches,
    gaussian_epsilon,
)
from private_consensus.privacy.accounting import LEVELS
from private_consensus.privacy.loss_distributions import MAX_LOSS
from private_consensus.privacy.subsampling import noisy_sum

STEP = 2e-3
OPTIMISTIC = {"pessimistic_estimate": False, "value_discretization_interval": STEP}
RATES = (0.005, 0.02)


def batch(rate, sigma):
    """Return a Poisson-sampled Gaussian release that is known by its privacy profile.

    The divisor is fixed and the noise is added to the sum.
    """
    noise = noisy_sum(fixed_batches(round(1000 * rate)), 1000, sampling="poisson")
    return Release("profile", profile=noise.releases(float(sigma), 1)[0].profile)


def plain(mechanism):
    return lambda rate, loss: Release(mechanism, loss, 1.0)


def response(loss):
    """Return randomised response, the worst-case mechanism with pure epsilon ``loss``."""
    flips = 2 / (1 + math.exp(loss))
    relation = NeighboringRelation.REPLACE_ONE
    return pld.from_randomized_response(flips, 2, neighboring_relation=relation, **OPTIMISTIC)


def gaussian_loss(rate, loss):
    return pld.from_gaussian_mechanism(
        1 / loss, sampling_prob=rate, use_connect_dots=False, **OPTIMISTIC
    )


def laplace_loss(rate, loss):
    return pld.from_laplace_mechanism(1 / loss, use_connect_dots=False, **OPTIMISTIC)


# For each kind, its declaration and the loss distribution of a mechanism with at most its loss.
KINDS = {
    "gaussian": (plain("gaussian"), lambda rate, loss: gaussian_loss(1.0, loss)),
    "laplace": (plain("laplace"), laplace_loss),
    "gamma_norm": (plain("gamma_norm"), laplace_loss),
    "pure": (lambda rate, loss: Release("pure", epsilon=loss), lambda rate, loss: response(loss)),
    "profile": (lambda rate, loss: batch(rate, 1 / loss), gaussian_loss),
}
# Largest loss of a release for each sampling rate.
LARGEST = {1.0: 0.3, 0.02: 1.0, 0.005: 3.0}
DELTAS = (1e-5, 1e-8)


def mixture(seed, kinds, size):
    """Return the kind, rate and loss of ``size`` different releases."""
    rng = np.random.default_rng(seed)
    drawn = []
    for kind in rng.choice(kinds, size):
        rate = float(rng.choice(RATES)) if kind == "profile" else 1.0
        drawn.append((kind, rate, float(LARGEST[rate] * rng.uniform(0.1, 1.0))))
    return drawn


def composed(components):
    """Return the epsilons of a composition, rounded down."""
    losses = (KINDS[kind][1](rate, loss) for kind, rate, loss in components)
    total = reduce(lambda first, second: first.compose(second), losses)
    return np.array([total.get_epsilon_for_delta(delta) for delta in DELTAS])


@pytest.mark.parametrize(
    ("kinds", "size"),
    [
        (("gaussian", "laplace", "gamma_norm", "pure"), 4 * LEVELS),
        (("laplace", "pure"), 4 * LEVELS),
        (("profile", "laplace"), LEVELS + 6),
        (tuple(KINDS), 12),
    ],
)
def test_epsilon_of_a_mixture_exceeds_optimistic_composition_by_at_most_5_percent(kinds, size):
    components = mixture(size, kinds, size)
    releases = [KINDS[kind][0](rate, loss) for kind, rate, loss in components]
    epsilons = np.array([account(releases, delta).epsilon for delta in DELTAS])
    truth = composed(components)
    assert np.all(truth <= epsilons)
    assert np.all(epsilons <= 1.05 * truth)


def test_profiles_with_equal_losses_and_different_rates_are_composed_within_5_percent():
    sigmas = np.linspace(1.0, 1.0001, LEVELS - 1)
    both = [batch(rate, sigma) for rate in (0.002, 0.02) for sigma in sigmas]
    fine = {**OPTIMISTIC, "value_discretization_interval": STEP / 4, "use_connect_dots": False}
    losses = [pld.from_gaussian_mechanism(1.0001, sampling_prob=q, **fine) for q in (0.002, 0.02)]
    truth = losses[0].compose(losses[1]).self_compose(LEVELS - 1)
    for delta in DELTAS:
        upper = account(both, delta).epsilon
        least = truth.get_epsilon_for_delta(delta)
        assert least <= upper <= 1.05 * least


def test_discrete_gaussian_and_laplace_compose_within_1_percent_of_the_renyi_bound():
    losses = np.random.default_rng(0).uniform(0.01, 0.3, (2, 3 * LEVELS))
    releases = [Release("discrete_gaussian", loss, 1.0) for loss in losses[0]]
    releases += [Release("laplace", loss, 1.0) for loss in losses[1]]
    orders = 1 + np.geomspace(1e-2, 1e2, 4000)
    total = np.sum(losses[0] ** 2) / 2 * orders
    total += sum(laplace_divergence(loss, orders) for loss in losses[1])
    for delta in DELTAS:
        bound = np.min(total + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1))
        upper = account(releases, delta).epsilon
        assert bound * (1 - 1e-4) <= upper <= 1.01 * bound
        # a discrete Gaussian may be as bad as a Gaussian
        assert upper > gaussian_epsilon(np.linalg.norm(losses[0]), delta)


def laplace_divergence(loss, order):
    """Return the Renyi divergence of Laplace noise (Mironov 2017, Proposition 6)."""
    first = np.log(order / (2 * order - 1)) + (order - 1) * loss
    second = np.log((order - 1) / (2 * order - 1)) - order * loss
    return np.logaddexp(first, second) / (order - 1)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "discrete_gaussian"])
def test_losses_near_the_floating_point_limit_are_accounted_or_infinite(mechanism):
    for loss in (1e4, 1e7, 1e12, 1e200):
        guarantee = account([Release(mechanism, loss, 1.0), Release("pure", epsilon=1.0)], 1e-5)
        power = loss if mechanism == "laplace" else loss**2 / 2 if loss < 1e150 else math.inf
        assert power <= guarantee.epsilon * (1 + 1e-3)
        if power <= MAX_LOSS or mechanism != "gaussian":
            assert guarantee.epsilon <= 1.1 * power + 1
