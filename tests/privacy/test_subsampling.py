"""Test noisy means of random batches: published formulas, accountant and counterexamples."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant as library
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.families.decentralized_sgd import (
    theorem11_epsilon,
    theorem11_sigma,
    theorem15_factor,
)
from private_consensus.core.algorithms.q_dpsgd_2 import noisy_message, reused_state_releases
from private_consensus.privacy import (
    Budget,
    Release,
    account,
    deadline_batches,
    fixed_batches,
    noisy_mean,
)
from private_consensus.privacy.loss_distributions import _distributions, _sampled
from private_consensus.privacy.subsampling import (
    Batches,
    noisy_sum,
    wang_balle_kasiviswanathan,
)

DELTA = 1e-5
WHOLE = [2, 3, 4, 8, 16, 32, 64]


def renyi_curve(noise, sigma):
    """Return the Renyi divergence of one batch at each of ``WHOLE``, from its losses."""

    def fine_edges(pair, tail):
        spans = [(rate, pair.span(rate, mu, tail)) for _, rate, mu in pair.components]
        edges = [_sampled(np.linspace(*span, 60_000), rate) for rate, span in spans]
        return np.unique(np.concatenate(edges))

    pair = noise.releases(sigma, 1)[0].profile.pair()
    directions = _distributions([(pair, 1)], 1e-200, fine_edges)
    moments = [max(losses.log_moment(order - 1) for losses in directions) for order in WHOLE]
    return np.array(moments) / (np.array(WHOLE) - 1)


# --- Batch sizes ---------------------------------------------------------------------------------


def test_deadline_batch_sizes_are_floors_of_speed_times_time():
    short, long = deadline_batches(0.4), deadline_batches(1.0)
    assert (short.sizes[0], short.sizes[-1], len(short.sizes)) == (4, 35, 32)
    assert short.probabilities == pytest.approx([1 / 32] * 32)
    assert (long.sizes[0], long.sizes[-1]) == (10, 89)
    odd = deadline_batches(0.03)  # V T_d from 0.3 to 2.7
    assert odd.sizes == (0, 1, 2)
    assert odd.probabilities == pytest.approx([0.7 / 2.4, 1 / 2.4, 0.7 / 2.4])
    speeds = np.random.default_rng(0).uniform(10, 90, 20_000)
    mean = np.dot(short.sizes, short.probabilities)
    assert np.floor(speeds * 0.4).mean() == pytest.approx(mean, abs=0.3)


# --- The formulas of Theorems 11 and 15 ----------------------------------------------------------


@pytest.mark.parametrize("factor", [1.0, 0.02])
def test_theorem_11_epsilon_inverts_theorem_11_sigma(factor):
    sigma = theorem11_sigma(Budget(1.3, DELTA), 1000, 700, factor=factor)
    assert theorem11_epsilon(sigma, DELTA, 1000, 700, factor=factor) == pytest.approx(1.3)
    # the statement of the theorem: epsilon(rho) + ln(1/delta) / (rho - 1)
    order = 2 * math.log(1 / DELTA) / 1.3 + 1
    renyi_loss = 8 * order * factor**2 * 700 / (1000**2 * sigma**2)
    assert renyi_loss + math.log(1 / DELTA) / (order - 1) == pytest.approx(1.3)


def test_theorem_15_requires_noise_far_beyond_the_range_of_three_bits():
    # Erratum E4.8b: p = 39760, eta = 1e-3, T = 1000, |S| = 20: sigma is 4.97 times K = 0.5
    step = 0.3 / 1000 ** (1 / 6) * 11 / 1000**0.5
    factor = theorem15_factor(step=step, resolution=1e-3, dim=39_760, clip=0.5, size=20)
    sigma = theorem11_sigma(Budget(1.0, DELTA), 1000, 1000, factor=factor)
    assert sigma == pytest.approx(4.97, abs=0.01)
    assert theorem15_factor(step=step, resolution=0.0, dim=39_760, clip=0.5, size=20) == step
    eight_steps = 0.1 * 7
    wide = theorem15_factor(step=step, resolution=0.1, dim=39_760, clip=0.5, size=20)
    assert theorem11_sigma(Budget(1.0, DELTA), 1000, 1000, factor=wide) * 0.5 > 100 * eight_steps


# --- Renyi divergences ---------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "sigma"), [(20, 0.4), (4, 0.4), (90, 0.05), (20, 5.0)])
def test_renyi_curve_of_poisson_batches_agrees_with_dp_accounting(size, sigma):
    curve = renyi_curve(noisy_mean(fixed_batches(size), 1000, sampling="poisson"), sigma)
    expected = library._compute_rdp_poisson_subsampled_gaussian(size / 1000, size * sigma, WHOLE)
    usable = np.array(WHOLE) / (size * sigma) < 30
    assert np.all(curve[usable] >= expected[usable] * (1 - 1e-9))
    np.testing.assert_allclose(curve[usable], expected[usable], rtol=1e-5)


@pytest.mark.parametrize(("size", "sigma"), [(20, 0.4), (4, 0.6), (90, 0.1)])
def test_renyi_curve_of_fixed_batches_lies_between_an_attack_and_general_bounds(size, sigma):
    noise = noisy_mean(fixed_batches(size), 1000)
    curve = renyi_curve(noise, sigma)
    mu, rate = 2 / (size * sigma), size / 1000
    bound = [wang_balle_kasiviswanathan(int(order), rate, mu) for order in WHOLE]
    tighter = library._compute_rdp_sample_wor_gaussian(rate, 1 / mu, WHOLE)
    for order, value, loose, tight in zip(WHOLE, curve, bound, tighter, strict=True):
        if order * mu > 30:
            continue
        assert value <= loose * (1 + 1e-9)
        assert value <= tight * (1 + 1e-9)

        # all other gradients at -K, one at +K or -K: the mean is -K unless that record is sampled
        def power(x, order=order):
            ratio = 1 - rate + rate * math.exp(mu * x - mu**2 / 2)
            return math.exp(order * math.log(ratio) + norm.logpdf(x))

        middle = order * mu
        moment = quad(power, -12, middle + 12, points=[0, middle], limit=200)[0]
        assert value >= math.log(moment) / (order - 1) - 1e-9


def test_renyi_divergence_at_a_small_rate_has_its_leading_order_constant():
    # Erratum E4.8a: 2 rho / (m sigma)^2 to replace, rho / (2 m^2 sigma^2) to add; paper: 8 rho
    sigma, records = 5.0, 10_000
    for sampling, constant in (("fixed_size", 2.0), ("poisson", 0.5)):
        curve = renyi_curve(noisy_mean(fixed_batches(20), records, sampling=sampling), sigma)
        leading = constant * 2 / (records * sigma) ** 2
        assert curve[WHOLE.index(2)] == pytest.approx(leading, rel=0.02)


def test_random_batch_sizes_average_renyi_moments_and_not_divergences():
    law = Batches((4, 35), (0.5, 0.5))
    mixed = renyi_curve(noisy_mean(law, 1000), 0.2)
    curves = np.array([renyi_curve(noisy_mean(fixed_batches(s), 1000), 0.2) for s in law.sizes])
    orders = np.array(WHOLE)
    usable = orders * 2 / (4 * 0.2) < 30
    moments = np.exp(((orders - 1) * curves)[:, usable]).mean(0)
    expected = np.log(moments) / (orders - 1)[usable]
    np.testing.assert_allclose(mixed[usable], expected, rtol=1e-6)
    assert np.all(mixed[usable] >= curves.mean(0)[usable])


# --- Loss distributions and the accountant -------------------------------------------------------


@pytest.mark.parametrize(("size", "sigma", "rounds"), [(20, 0.44, 500), (50, 0.1, 300)])
def test_epsilon_of_constant_poisson_batches_agrees_with_dp_accounting(size, sigma, rounds):
    releases = noisy_mean(fixed_batches(size), 1000, sampling="poisson").releases(sigma, rounds)
    guarantee = account(releases, DELTA)
    loss_distribution = pld.from_gaussian_mechanism(
        size * sigma, sampling_prob=size / 1000, value_discretization_interval=1e-4
    )
    expected = loss_distribution.self_compose(rounds).get_epsilon_for_delta(DELTA)
    assert guarantee.epsilon == pytest.approx(expected, rel=3e-3)
    assert guarantee.method == "pld"


def test_epsilon_of_full_batches_agrees_with_the_gaussian_mechanism():
    full_batch = noisy_mean(fixed_batches(1000), 1000)
    plain = [Release("gaussian", 2 / 1000, 0.05, count=100)]
    assert account(full_batch.releases(0.05, 100), DELTA).epsilon == pytest.approx(
        account(plain, DELTA).epsilon, rel=2e-3
    )


def test_accountant_calibrated_noise_meets_the_budget_within_0_3_percent():
    budget = Budget(1.0, DELTA)
    for noise in (noisy_mean(deadline_batches(0.4), 1000), noisy_sum(fixed_batches(20), 1000)):
        sigma = noise.sigma(budget, 500)
        assert account(noise.releases(sigma, 500), DELTA).epsilon == pytest.approx(1, rel=3e-3)
        assert account(noise.releases(sigma, 500), DELTA).epsilon <= 1
        assert account(noise.releases(0.97 * sigma, 500), DELTA).epsilon > 1


def test_noise_on_sum_and_mean_are_equivalent_for_a_constant_batch_size():
    on_sum, on_mean = (f(fixed_batches(20), 1000) for f in (noisy_sum, noisy_mean))
    assert renyi_curve(on_sum, 8.0) == pytest.approx(renyi_curve(on_mean, 8.0 / 20))


# --- Erratum E4.8a -------------------------------------------------------------------------------


def least_epsilon(law, records, sigma, rounds, *, sizes_known):
    """Return a lower bound on epsilon, attained by one record at +K or -K among records at -K."""
    step, width = 1e-3, 12 + 2 / (min(law.sizes) * sigma)
    edges = np.linspace(-12, width, 100_001)
    base = np.diff(ndtr(edges))
    shifted = [
        (1 - s / records) * base + s / records * np.diff(ndtr(edges - 2 / (s * sigma)))
        for s in law.sizes
    ]
    if not sizes_known:
        shifted = [np.average(shifted, axis=0, weights=law.probabilities)]
    masses = np.zeros(0)
    for distribution, weight in zip(
        shifted, law.probabilities if sizes_known else (1.0,), strict=True
    ):
        usable = (distribution > 0) & (base > 0)
        loss = np.floor(np.log(distribution[usable] / base[usable]) / step).astype(int)
        lowest = -math.ceil(0.2 / step)
        counted = weight * np.bincount(np.maximum(loss, lowest) - lowest, distribution[usable])
        masses = np.pad(masses, (0, max(0, len(counted) - len(masses))))
        masses[: len(counted)] += counted
    mass_by_loss = dict(
        zip((np.arange(len(masses)) + lowest).tolist(), masses.tolist(), strict=True)
    )
    distribution = pld.PrivacyLossDistribution.create_from_rounded_probability(
        mass_by_loss, 0.0, step, pessimistic_estimate=False
    )
    return distribution.self_compose(rounds).get_epsilon_for_delta(DELTA)


@pytest.mark.parametrize(
    ("eps", "rounds", "broken"),
    [(1.0, 100, True), (1.0, 500, False), (1.5, 300, True), (1.5, 900, False)],
)
def test_theorem_11_is_violated_by_short_deadline_runs_and_not_by_long_ones(eps, rounds, broken):
    law = deadline_batches(0.4)
    sigma = theorem11_sigma(Budget(eps, DELTA), 1000, rounds)
    accounted = account(noisy_mean(law, 1000).releases(sigma, rounds), DELTA).epsilon
    least = least_epsilon(law, 1000, sigma, rounds, sizes_known=True)
    assert least <= accounted * (1 + 1e-3)
    assert (least > eps) == (accounted > eps) == broken


def test_theorem_11_at_epsilon_1_5_is_violated_by_44_rounds_of_constant_batches():
    # SDM-DSGD completes 44 rounds of B = 20 in the time of 100 rounds of Q-DPSGD
    law, sigma = fixed_batches(20), theorem11_sigma(Budget(1.5, DELTA), 1000, 44)
    assert least_epsilon(law, 1000, sigma, 44, sizes_known=True) > 1.5
    sigma = theorem11_sigma(Budget(1.0, DELTA), 1000, 44)
    assert account(noisy_mean(law, 1000).releases(sigma, 44), DELTA).epsilon < 1


def test_theorem_11_is_violated_by_short_runs_even_if_batch_sizes_are_hidden():
    law, sigma = deadline_batches(0.4), theorem11_sigma(Budget(1.5, DELTA), 1000, 100)
    assert least_epsilon(law, 1000, sigma, 100, sizes_known=False) > 1.5


# --- Q-DPSGD-2, erratum E4.8b --------------------------------------------------------------------

MESSAGE = {"step": 0.02, "resolution": 0.1, "dim": 100, "clip": 0.5}


@pytest.mark.parametrize("keep", [0.9, 1.3])
def test_sensitivity_of_a_reused_model_equals_the_shift_by_extreme_gradients(keep):
    rounds, sigma = 30, 40.0
    (release,) = reused_state_releases(sigma, rounds, keep=keep, **MESSAGE)
    x = np.zeros(2)
    for t in range(rounds):
        x = keep * x - MESSAGE["step"] * MESSAGE["clip"] * np.array([1.0, -1.0])
        jump = MESSAGE["resolution"] * math.sqrt(MESSAGE["dim"])
        expected = (abs(x[0] - x[1]) + jump) / MESSAGE["resolution"]
        assert release.sensitivity[t] == pytest.approx(expected)
    assert release.scale == pytest.approx(sigma * 0.5 / 0.1)
    (always,) = reused_state_releases(sigma, rounds, keep=1.0, **MESSAGE)
    assert np.all((always.sensitivity > release.sensitivity)[1:] == (keep < 1))


def test_noisy_messages_without_subsampling_cost_as_much_as_a_discrete_gaussian():
    """The privacy loss without subsampling (rate 1) is that of discrete Gaussian noise in zCDP."""
    noise = noisy_message(fixed_batches(50), 50, **MESSAGE)
    (loss,) = noise.losses
    assert loss == pytest.approx(2 * 0.02 / 50 + 0.1 * 10 / 0.5)
    plain = [Release("discrete_gaussian", loss, 30.0, count=20)]
    without_sampling = account(plain, DELTA).epsilon
    full = account(noise.releases(30.0, 20), DELTA).epsilon
    assert full == pytest.approx(without_sampling, rel=0.02)
    sampled = noisy_message(fixed_batches(50), 1000, **MESSAGE)
    guarantee = account(sampled.releases(30.0, 20), DELTA)
    assert guarantee.epsilon < 0.6 * without_sampling
    assert guarantee.method == "rdp"  # no dominating pair known


# --- Invalid input -------------------------------------------------------------------------------


def test_invalid_batches_rules_and_budgets_are_refused():
    with pytest.raises(InvalidInput, match="records"):
        noisy_mean(deadline_batches(1.0), 80)
    with pytest.raises(InvalidInput, match=r"deadline: found 500\.0.*at most 10,000 records"):
        deadline_batches(500.0)
    with pytest.raises(InvalidInput, match="delta"):
        theorem11_sigma(Budget(1.0, 0.0), 1000, 10)
    with pytest.raises(InvalidInput, match="keep"):
        reused_state_releases(1.0, 10, keep=-0.1, **MESSAGE)
    with pytest.raises(InvalidInput, match="profile"):
        Release("profile")
    assert account(noisy_mean(fixed_batches(20), 1000).releases(0.0, 5), DELTA).epsilon == math.inf


def test_empty_batches_are_refused_for_means_and_have_zero_loss_for_sums():
    law = Batches((0, 2), (0.5, 0.5))
    message = {"step": 0.1, "resolution": 0.1, "dim": 2, "clip": 1.0}
    for make in (noisy_mean, lambda *args: noisy_message(*args, **message)):
        with pytest.raises(InvalidInput, match=r"batches\.sizes.*no mean"):
            make(law, 10)
    assert noisy_sum(law, 10).losses == (0.0, 2.0)
