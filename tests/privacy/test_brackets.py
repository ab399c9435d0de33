"""Test lower bounds on epsilon against closed forms, brute force and dp_accounting."""

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, gamma, norm

from private_consensus.common.errors import InvalidInput
from private_consensus.core.lower_bounds.approximate_admm import RandomCount
from private_consensus.core.lower_bounds.sgd import SentInPart
from private_consensus.privacy import (
    Release,
    account,
    deadline_batches,
    fixed_batches,
    gaussian_delta,
    gaussian_epsilon,
    noisy_mean,
)
from private_consensus.privacy.brackets import lower_bound
from private_consensus.privacy.subsampling import noisy_sum

SHARES = st.sampled_from([None, 0.0, 0.3, 0.5, 1.0])
LOSSES = st.lists(st.floats(0.01, 2.0), min_size=1, max_size=4).map(np.array)


def _series(mechanism):
    return st.builds(
        lambda losses, count, share: Release(mechanism, losses, 1.0, count=count, attained=share),
        LOSSES, st.integers(0, 5), SHARES,
    )  # fmt: skip


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
def test_lower_bound_of_attained_gaussians_equals_that_of_one_gaussian(delta):
    scales = np.array([2.0, 3.0, 5.0])
    bound = lower_bound([Release("gaussian", 1.5, scales, count=7, attained=0.5)], delta)
    mu = math.sqrt(7 * np.sum((0.75 / scales) ** 2))
    assert bound.epsilon == pytest.approx(gaussian_epsilon(mu, delta), rel=1e-6)
    assert bound.method == "gaussian"


def test_lower_bound_at_delta_zero_is_the_sum_of_the_largest_losses():
    laplace = Release("laplace", [1.0, 2.0], 4.0, count=3, attained=0.1, reached=[0.5, 1.0])
    radial = Release("gamma_norm", 1.0, 2.0, attained=1.0)
    bound = lower_bound([laplace, radial], 0.0)
    assert bound.epsilon == pytest.approx(3 * (0.125 + 0.5) + 0.5, rel=1e-6)
    assert lower_bound([Release("gaussian", 1.0, 9.0, attained=0.1)], 0.0).epsilon == math.inf


@pytest.mark.parametrize(("losses", "count"), [([0.25], 10), ([0.02, 0.03, 0.05], 12), ([2.0], 3)])
@pytest.mark.parametrize("delta", [1e-8, 1e-4])
def test_lower_bound_of_composed_laplace_is_within_2_percent_of_dp_accounting(losses, count, delta):
    total = None
    for loss in losses:
        loss_distribution = pld.from_laplace_mechanism(1 / loss, value_discretization_interval=1e-4)
        loss_distribution = loss_distribution.self_compose(count)
        total = loss_distribution if total is None else total.compose(loss_distribution)
    above = total.get_epsilon_for_delta(delta)
    bound = lower_bound([Release("laplace", losses, 1.0, count=count, attained=1.0)], delta)
    assert 0.98 * above < bound.epsilon <= above


@pytest.mark.parametrize(("rate", "mu"), [(0.02, 1.0), (0.3, 0.5), (1.0, 2.0), (0.01, 4.0)])
def test_lower_bound_of_a_sampled_gaussian_agrees_with_numerical_integration(rate, mu):
    """Delta of the pair is at least the target at the bound, and smaller slightly beyond it."""

    x = np.linspace(-12, 12 + mu, 200_001)
    base_density = norm.pdf(x)
    mixed_density = (1 - rate) * base_density + rate * norm.pdf(x - mu)

    def delta_of(epsilon):
        return np.trapezoid(np.maximum(mixed_density - math.exp(epsilon) * base_density, 0), x)

    noise = noisy_sum(fixed_batches(round(1000 * rate)), 1000, sampling="poisson")
    for delta in (1e-5, 1e-3):
        lower = lower_bound(noise.releases(1 / mu, 1), delta).epsilon
        assert delta_of(lower) >= delta * (1 - 1e-6)
        assert delta_of(1.01 * lower + 1e-4) < delta


def test_lower_bound_of_sampled_batches_is_within_10_percent_of_the_accountant():
    for batches, records, sigma, rounds in ((deadline_batches(0.4), 1000, 0.3, 44),
                                            (fixed_batches(20), 20, 0.5, 3)):  # fmt: skip
        releases = noisy_mean(batches, records).releases(sigma, rounds)
        above = account(releases, 1e-5).epsilon
        bound = lower_bound(releases, 1e-5)
        assert 0.9 * above < bound.epsilon <= above
    exactly = gaussian_epsilon(2 / (20 * 0.5) * math.sqrt(3), 1e-5)
    assert bound.epsilon == pytest.approx(exactly, rel=0.01)
    unknown = [replace(release, attained=None) for release in releases]
    assert lower_bound(unknown, 1e-5).epsilon == 0


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.one_of(
            _series("gaussian"), _series("laplace"), _series("gamma_norm"),
            _series("discrete_gaussian"),
            st.builds(
                lambda loss, share: Release("pure", epsilon=loss, attained=share),
                st.floats(0.01, 1.0),
                SHARES,
            ),
        ),
        max_size=3,
    ),
    st.sampled_from([0.0, 1e-12, 1e-6, 1e-3, 0.2]),
)  # fmt: skip
def test_lower_bound_never_exceeds_the_accountant(releases, delta):
    assert lower_bound(releases, delta).epsilon <= account(releases, delta).epsilon


def test_lower_bound_is_infinite_without_noise_and_zero_if_unknown():
    assert lower_bound([Release("exact", attained=1.0)], 0.1).epsilon == math.inf
    assert lower_bound([Release("gaussian", np.inf, 3.0, attained=1.0)], 1e-5).epsilon == math.inf
    unknown = lower_bound([Release("exact"), Release("pure", epsilon=2.0)], 1e-5)
    assert (unknown.epsilon, unknown.method) == (0.0, "none")


def test_lower_bound_uses_the_attack_instead_of_the_release():
    attack = Release("laplace", 1.0, 2.0, attained=1.0)
    assert lower_bound([Release("pure", epsilon=0.9, attack=attack)], 0.0).epsilon == pytest.approx(
        0.5
    )


@pytest.mark.parametrize("share", [-0.1, 1.1, [0.5, 0.5, 0.5], math.nan])
def test_invalid_attained_fraction_or_delta_is_refused(share):
    with pytest.raises(InvalidInput, match=r"release\.attained"):
        Release("gaussian", [1.0, 2.0], 1.0, attained=share)
    with pytest.raises(InvalidInput, match="delta"):
        lower_bound([], 1.0)


@pytest.mark.parametrize(("dim", "loss"), [(2, 1.0), (3, 2.5), (40, 3.0)])
def test_lower_bound_of_gamma_norm_noise_agrees_with_numerical_integration(dim, loss):
    """Delta of the pair is about the target or more at the bound, and smaller slightly above."""
    r = gamma.ppf((np.arange(2000) + 0.5) / 2000, dim)[:, None]
    c = 2 * beta.ppf((np.arange(4000) + 0.5) / 4000, (dim - 1) / 2, (dim - 1) / 2) - 1
    losses = np.sqrt(r**2 + 2 * r * loss * c + loss**2) - r
    release = Release("gamma_norm", loss, 1.0, attained=1.0, dim=dim)
    for delta in (1e-3, 0.05):
        lower = lower_bound([release], delta).epsilon
        deltas = [-np.minimum(np.expm1(e - losses), 0).mean() for e in (lower, 1.03 * lower)]
        assert deltas[0] >= delta * 0.995
        assert deltas[1] < delta
    assert lower_bound([release], 0.0).epsilon == pytest.approx(loss)
    assert lower_bound([replace(release, dim=None)], 1e-3).epsilon == 0


def test_partially_sent_batches_have_a_smaller_lower_bound():
    (full_release,) = noisy_mean(fixed_batches(20), 1000).releases(0.1, 100)
    partial_profile = SentInPart(full_release.profile.noise, 0.1, share=0.25, missed=1e-12)
    attacked = replace(full_release, attack=replace(full_release, profile=partial_profile))
    half = noisy_mean(fixed_batches(20), 1000).releases(0.2, 100)
    lower = lower_bound([attacked], 1e-5).epsilon
    assert lower == pytest.approx(lower_bound(half, 1e-5).epsilon, rel=1e-3)
    assert lower < lower_bound([full_release], 1e-5).epsilon


def test_lower_bound_of_a_random_number_of_gaussians_agrees_with_their_mixture():
    """Delta of the mixture is at least the target at the bound, and smaller slightly beyond it."""
    random_count = RandomCount(0.7, (0.2, 0.3, 0.1, 0.4))
    release = Release(
        "pure", epsilon=9.0, attack=Release("profile", profile=random_count, attained=1.0)
    )

    def delta_of(epsilon):
        mus = [0.7 * math.sqrt(k) for k in (1, 2, 3)]
        return sum(
            p * gaussian_delta(mu, epsilon) for p, mu in zip((0.3, 0.1, 0.4), mus, strict=True)
        )

    for delta in (1e-6, 1e-2):
        lower = lower_bound([release], delta).epsilon
        assert delta_of(lower) >= delta * (1 - 1e-6)
        assert delta_of(1.01 * lower) < delta
    assert lower_bound([release], 0.0).epsilon == math.inf
    never = Release("profile", profile=RandomCount(0.7, (1.0, 0.0)), attained=1.0)
    assert lower_bound([replace(release, attack=never)], 0.0).epsilon == 0.0


@pytest.mark.parametrize("blur", [0.02, 0.3])
def test_lower_bound_with_log_tolerance_agrees_with_numerical_integration(blur):
    """The factors are the worst case: they make the likelier outcome less likely."""
    mu, x = 1.2, np.linspace(-14, 16, 300_001)
    base_density, shifted_density = norm.pdf(x), norm.pdf(x - mu)
    attack = Release("gaussian", mu, 1.0, attained=1.0, log_tolerance=blur)
    for delta in (1e-5, 1e-2):
        bound = lower_bound([Release("pure", epsilon=9.0, attack=attack)], delta)
        plain = lower_bound([replace(attack, log_tolerance=0.0)], delta).epsilon
        assert 0 < bound.epsilon < plain - 2 * blur
        hidden = np.where(x > mu / 2 + bound.epsilon / mu, -blur / 2, blur / 2)
        sides = [shifted_density * np.exp(hidden), base_density * np.exp(-hidden)]
        sides = [side / np.trapezoid(side, x) for side in sides]
        for side, law in zip(sides, (shifted_density, base_density), strict=True):
            assert np.abs(np.log(side / law)).max() <= blur + 1e-9
        excess = np.maximum(sides[0] - math.exp(bound.epsilon) * sides[1], 0)
        assert np.trapezoid(excess, x) >= delta
    for delta in (0.0, 1e-3):
        assert lower_bound([replace(attack, log_tolerance=math.inf)], delta).epsilon == 0.0
    assert lower_bound([replace(attack, log_tolerance=9.0)], 1e-3).epsilon == 0.0
    with pytest.raises(InvalidInput, match=r"release\.log_tolerance"):
        replace(attack, log_tolerance=-1.0)
