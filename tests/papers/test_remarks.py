"""Test statements in the text of the papers with a second, independent computation."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from private_consensus.privacy import Release, account
from private_consensus.reproduction.statements import consensus_innovation as wang
from private_consensus.reproduction.statements import (
    functional,
    gradient_descent,
    local,
    zeroth_order,
)

# Showkatbakhsh et al.


def naive_mean(step_sizes, noises, runs=4000, seed=5):
    """Return squared errors of ten agents that estimate the mean 3.5 by noisy gradient steps.

    The graph is complete, the dimension is five, and the start is 0. Messages are computed one by
    one.
    """
    rng = np.random.default_rng(seed)
    sent = np.zeros((runs, 10, 5))
    for step_size, scale in zip(step_sizes, noises, strict=True):
        mixed = np.broadcast_to(sent.mean(1, keepdims=True), sent.shape)
        sent = mixed - step_size * (mixed - 3.5) + scale * rng.standard_normal(sent.shape)
    return ((sent.mean(1) - 3.5) ** 2).sum(-1)


def agrees(values, expected):
    error = values.std(ddof=1) / math.sqrt(len(values))
    return abs(values.mean() - expected) < 4 * error


def test_the_error_of_algorithm_1_matches_a_simulation():
    t = np.arange(1, 21.0)
    change = 2 * 5 * math.sqrt(5) / 100
    allowed = 4 / (2 + 2 * math.log(2000))
    noise = change * np.sqrt(2 / allowed * math.sqrt(20) * t**-1.5)
    errors = naive_mean(1 / t, noise)
    assert agrees(errors, gradient_descent.error_of_algorithm_1(2.0, 1e-3, 20))


def test_the_predecessor_is_biased_without_noise():
    stops, converges, decreases = gradient_descent.sentence_4()
    assert stops.holds and converges.holds and decreases.holds
    # With decay q = 0.5, the sum of ln(1 - q^t/20) over all steps is about -1/10.
    remaining = math.prod(1 - 0.5**t / 20 for t in range(60))
    assert remaining == pytest.approx(math.exp(-0.1), rel=0.005)
    # The variance is proportional to (epsilon + 2 ln(2/delta)) / epsilon^2.
    ratios = [
        (e + 2 * math.log(2000)) / e**2 / ((d + 2 * math.log(2000)) / d**2)
        for d, e in ((0.1, 0.5), (0.5, 1), (1, 4), (4, 10), (10, 100))
    ]
    assert decreases.measured == pytest.approx(max(ratios))


def test_the_bound_of_theorem_2_does_not_decrease_with_the_number_of_records():
    """With G, mu and L of the local sum, the bound grows with ln(1/delta), computed by hand."""
    values = []
    for records in (10, 1000):
        root = 2 * 5 * math.sqrt(5)  # G / mu
        over_kappa = 4 * root**2 * (4 + 2 * math.log(20 * records)) / 16
        bound = 5 * 3.5**2 / 1000 + 2 * root**2 * math.log(1000) / 1000
        bound += 2 * math.sqrt(10 * over_kappa) * root * 7 / 1000**0.25 + 10 * over_kappa
        values.append(bound)
        assert gradient_descent.bound_of_theorem_2(records) == pytest.approx(bound)
    assert values[1] > 1.3 * values[0]
    errors = [gradient_descent.error_of_algorithm_1(4.0, 1e-4, 100, n) for n in (10, 1000)]
    assert errors[0] / errors[1] == pytest.approx(1e4)  # at an equal delta


def test_stage_two_leaves_the_box_with_the_gaussian_probability():
    inside, outside = gradient_descent.sentence_7()
    assert inside.measured <= 5.0
    rng = np.random.default_rng(3)
    x = np.clip(rng.normal(3.5, 1, size=(20_000, 10, 5)), -5, 5).mean(1)
    allowed = 0.25 / (0.5 + 2 * math.log(2000))
    noise = math.sqrt(2 / allowed) * 2 * 5 * math.sqrt(5) / 100 / math.sqrt(10)
    expected = 1 - norm.cdf((5 - x) / noise).prod(1).mean()
    assert outside.measured == pytest.approx(expected, rel=0.1)


# Xiao et al.


def test_mu_of_coordinate_descent_is_that_of_its_accounted_messages():
    """Each coordinate is chosen 20 times: 280 Gaussian messages with the published variance."""
    epsilon, change, smoothness = 1.0, 0.3, 2.0
    sigma = math.sqrt(2 * 14 * change**2 * 280 / (epsilon**2 * smoothness**2 * 14))
    messages = Release("gaussian", sensitivity=change / smoothness, scale=sigma, count=280)
    counts, changes = np.full(14, 20), np.full(14, change)
    mu = float(local.mu_of_coordinate_descent(epsilon, 1.0, counts, changes))
    assert mu == pytest.approx(math.sqrt(280) * change / smoothness / sigma)
    assert account([messages], 1e-5).epsilon == pytest.approx(2.94, abs=0.01)
    assert local.sentence_1()[2].holds is False
    # The worst case: the coordinate that a record changes is chosen twice as often as on average.
    alone = np.eye(14)[0]
    assert local.mu_of_coordinate_descent(1.0, 1.0, 20 + 20 * alone - 20 / 13 * (1 - alone),
                                                  alone) == pytest.approx(1.0)  # fmt: skip


@pytest.mark.parametrize(("loss", "batch"), [(0.1, 5), (1.0, 20), (10.0, 1)])
def test_the_loss_under_record_sampling_has_its_closed_form(loss, batch):
    fraction = batch / 100
    largest_loss = local._largest_loss(loss / batch, fraction)
    closed = math.log1p(fraction * math.expm1(loss / batch))
    assert largest_loss == pytest.approx(closed) and closed >= loss / 100
    assert closed < loss / batch


# Wang et al.


def test_the_loss_is_epsilon_times_the_number_of_updates_with_changed_data():
    row, epsilon, step_sizes = np.array([1.0, -2.0]), 0.4, 2 / (np.arange(20) + 2)
    moved = [
        Release("laplace", sensitivity=step * 3 * 0.2, scale=step * 0.2 * np.abs(row).sum() / 0.4)
        for step in step_sizes
    ]
    assert account(moved, 0.0).epsilon == pytest.approx(20 * epsilon)
    assert wang.loss_of_messages(np.ones(20), epsilon) == pytest.approx(20 * epsilon)
    assert wang.loss_of_messages(np.arange(20) == 3, epsilon) == pytest.approx(epsilon)


def test_the_cost_of_noise_is_the_ratio_of_variances_per_step():
    """For slow steps, each mode has error alpha (2 (delta H/epsilon)^2 + 0.05) / (2 lambda)."""
    noisy, noiseless = wang._noisy_errors(0.6, (0.1, np.inf))
    assert noisy[-1] / noiseless[-1] == pytest.approx(1 + 2 * (0.6 / 0.1) ** 2 / 0.05, rel=0.01)
    growth = wang.remark_4_12()[0]
    ends = [2 * (0.6 / e) ** 2 + 0.05 for e in (0.1, 0.2, 0.4, 0.8)]
    slope = np.polyfit(np.log([10, 5, 2.5, 1.25]), np.log(ends), 1)[0]
    assert growth.measured == pytest.approx(slope, abs=0.002)


def test_exact_moments_equal_a_loop_over_exponential_steps():
    limit = 0.0
    for eigenvalue, first in ((0.5, 3.0), (3.0, 1.0), (5.0, 1.0)):
        error = first**2
        for t in range(1, 60):
            step, noise = 0.6 * 0.4 ** (t + 1), 0.6 * 0.4**t
            error = (1 - step * eigenvalue) ** 2 * (error + 2 * noise**2) + 0.05 * step**2
        limit += error
    noise = 0.6 * 0.4 ** np.arange(1.0, 60)
    assert wang._moments(0.4 * noise, noise)[-1] == pytest.approx(limit)


def test_one_measurement_costs_epsilon_and_steps_sum_to_the_harmonic_series():
    stream, single = wang.sentence_1()
    assert stream.holds and single.measured == pytest.approx(0.8) and not single.holds
    harmonic = sum(1 / t for t in range(1, 1_000_001)) / math.log(1_000_001)
    assert wang.remark_4_8()[0].measured == pytest.approx(harmonic)


# Ding


def test_one_attribute_changes_its_coefficients_by_at_most_the_lemmas_constant():
    """Compare all changes of one attribute in the unit box with the constant of the lemma."""
    rng, largest = np.random.default_rng(6), 0.0
    for _ in range(2000):
        x, y, z, mean = rng.integers(0, 2, 5), rng.integers(0, 2), rng.integers(0, 2), rng.random()
        changed = x.copy()
        changed[0] = 1 - x[0]
        weight = 0.5 - y + abs(z - mean)
        change = np.abs(weight * (x - changed)).sum()
        change += np.abs(np.outer(x, x) - np.outer(changed, changed)).sum() / 8
        largest = max(largest, change)
    stated = functional.attribute_loss(5, 1.0) * (25 / 4 + 15)
    assert 0.97 * stated < largest <= stated


# Gratton et al.


def test_the_iteration_count_of_noiseless_admm_matches_an_independent_run():
    """Compare with ADMM that solves every local problem by least squares."""
    count = zeroth_order.iterations_of_admm(0, 4.0, coordinator=False)
    X, y = zeroth_order._records(0)
    best = np.linalg.lstsq(X.reshape(-1, 10), y.ravel(), rcond=None)[0]
    links = [{1, 4, 2}, {0, 2}, {1, 3, 0}, {2, 4}, {3, 0}]
    models, duals, errors = np.zeros((5, 10)), np.zeros((5, 10)), []
    for _ in range(30):
        old = models.copy()
        for k, adjacent in enumerate(links):
            duals[k] += 4 * sum(old[k] - old[l] for l in adjacent)
        for k, adjacent in enumerate(links):
            # argmin ||X b - y||^2 + dual'b + 4 sum over N_k of ||b - (b_k + b_l)/2||^2
            rows = [X[k]] + [2 * np.eye(10)] * (len(adjacent) + 1)
            right = [y[k]] + [old[k] + old[l] for l in (*adjacent, k)]
            A, b = np.vstack(rows), np.concatenate(right)
            models[k] = np.linalg.solve(A.T @ A, A.T @ b - duals[k] / 2)
        errors.append(((models - best) ** 2).sum() / (5 * (best**2).sum()))
    assert count == 1 + max(i for i, error in enumerate(errors, 1) if error > 0.01)
    fewer = zeroth_order.iterations_of_admm(0, 4.0, coordinator=True)
    assert fewer < count / 2
    both, alone = zeroth_order.sentence_1()
    assert both.holds and not alone.holds


def test_the_stated_tail_of_thirty_estimates_matches_simulated_gradients():
    """Simulate gradient estimates of a linear function by the two-point formula."""
    rng = np.random.default_rng(8)
    nu = rng.standard_normal((200_000, 30))
    means = (nu * nu).mean(1)  # slope 1 along the coordinate, times nu
    exceeded = (means > 1 + norm.isf(1e-2) * math.sqrt(2 / 30)).mean()
    middle, tail, at_thousandth = zeroth_order.sentence_2()
    assert middle.holds and not tail.holds and tail.stated == 1e-6
    beyond = (means > 1 + norm.isf(1e-3) * math.sqrt(2 / 30)).mean()
    assert beyond == pytest.approx(at_thousandth.measured, rel=0.2) and exceeded > 0.012


def test_the_median_fit_is_optimal_and_its_proximal_step_has_a_closed_form():
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)

    def objective(point):
        return np.abs(X @ point - y).sum() + np.abs(point).sum()

    best = zeroth_order.centralised_median_fit(X, y)
    assert all(objective(best) <= objective(best + 1e-3 * rng.normal(size=3)) for _ in range(200))
    # One record, |x - k|: the minimiser is the kink, or 1 / curvature towards it.
    for kink, expected in ((5.0, 0.125), (-5.0, -0.125), (0.05, 0.05)):
        minimiser = zeroth_order._proximal_minimiser(np.ones(1), np.array([kink]), 8.0)
        assert minimiser == pytest.approx(expected)
