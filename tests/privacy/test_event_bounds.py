"""Test lower bounds from event rates: coverage, p-values, and selection of the event."""

import itertools

import numpy as np
import pytest
from scipy import stats

from private_consensus.common.errors import InvalidInput
from private_consensus.privacy import gaussian_delta, gaussian_epsilon
from private_consensus.privacy.event_bounds import (
    Bound,
    Counts,
    Epsilon,
    clopper_pearson,
    selected_bound,
)

RUNS = 12
MEASURES = [Epsilon(0.0), Epsilon(0.1)]


def test_clopper_pearson_limits_agree_with_scipy():
    low, high = clopper_pearson(np.array([0, 3, 10]), 10, 0.025)
    exact = [stats.binomtest(k, 10).proportion_ci(0.95, "exact") for k in (0, 3, 10)]
    np.testing.assert_allclose(low, [ci.low for ci in exact])
    np.testing.assert_allclose(high, [ci.high for ci in exact])


@pytest.mark.parametrize("measure", MEASURES)
def test_largest_rate_allowed_by_a_claim_attains_the_claimed_value(measure):
    for value in (0.3, 1.0, 2.5):
        q = np.linspace(0.01, 0.8, 40)
        p = measure.largest(q, value)
        inner = p < 1
        np.testing.assert_allclose(measure.value(p, q)[inner], value, rtol=1e-9)
        np.testing.assert_allclose(measure.reached(p, value)[inner], q[inner], rtol=1e-9)


def test_gaussian_rates_lie_just_inside_the_region_of_their_privacy_profile():
    """The event {x >= t} of N(mu, 1) against N(0, 1) has likelihood ratio e^epsilon at t."""
    epsilon = 0.7
    t = epsilon / 1.2 + 0.6
    p, q = stats.norm.sf(t - 1.2), stats.norm.sf(t)
    delta = gaussian_delta(1.2, epsilon)
    assert float(Epsilon(delta).value(p, q)) == pytest.approx(epsilon, rel=1e-9)
    points = [(e, gaussian_delta(1.2, e)) for e in np.linspace(0, 4, 30)]
    allowed = min(float(Epsilon(d).largest(q, e)) for e, d in points)
    assert p <= allowed <= 1.01 * p


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("level", [0.2, 0.02])
def test_type_one_error_is_at_most_the_level_on_the_boundary_of_a_claim(measure, level):
    """Enumerate the outcomes of 12 and 12 runs with their binomial probabilities."""
    true = 0.8
    p_values = np.zeros((RUNS + 1, RUNS + 1))
    for k, m in itertools.product(range(RUNS + 1), repeat=2):
        counts = Counts(k, RUNS, m, RUNS)
        p_values[k, m] = Bound(counts, measure.delta, 1 - level).p_value(true)
    q = np.linspace(0.0, 1.0, 101)
    p = measure.largest(q, true)
    hits, numbers = (stats.binom.pmf(np.arange(RUNS + 1), RUNS, x[:, None]) for x in (p, q))
    for alpha in (level, level / 2):
        wrong = np.einsum("ck,km,cm->c", hits, (p_values <= alpha).astype(float), numbers)
        assert wrong.max() <= alpha
        assert wrong.max() > alpha / 50  # excludes a test that never rejects


def event_bound(hits, runs, hits_other, runs_other, *, delta, confidence):
    """Bound epsilon by the rates of one event that is more likely on the first data set."""
    return Bound(Counts(hits, runs, hits_other, runs_other), delta, confidence)


def test_bound_is_the_smallest_claim_that_is_not_contradicted():
    bound = event_bound(900, 1000, 300, 1000, delta=0.01, confidence=0.99)
    value = bound.epsilon
    assert bound.p_value(value) <= 0.01 < bound.p_value(value + 2e-3)
    assert bound.p_value(0.9 * value) <= 0.01 < bound.p_value(1.1 * value)


def test_bound_for_perfect_distinction_agrees_with_direct_maximisation():
    r"""Hits in all and none of n runs have probability :math:`(1-e^{-\epsilon})^n` at p = 1."""
    bound = event_bound(500, 500, 0, 500, delta=0.0, confidence=0.99)
    # maximise p^n (1 - q)^n over q, with the largest rate p that epsilon allows
    q = np.geomspace(1e-6, 1 - 1e-6, 20_001)
    p = np.minimum(np.exp(bound.epsilon) * q, 1 - np.exp(-bound.epsilon) * (1 - q))
    largest = np.max(p**500 * (1 - q) ** 500)
    assert 0.9 * 0.01 < largest <= 0.01


def test_equal_rates_give_no_bound():
    same = event_bound(50, 100, 50, 100, delta=0.0, confidence=0.9)
    assert same.epsilon == 0.0


def test_invalid_values_are_refused():
    outcomes = np.arange(8.0)
    for wrong in (outcomes[:3], np.full(8, np.nan), outcomes.reshape(2, 4)):
        with pytest.raises(InvalidInput):
            selected_bound(wrong, outcomes, delta=0.0, confidence=0.9)


# --- Selection of the event ---------------------------------------------------------------------

DELTA = 0.01
MAPS = {"itself": lambda x: x, "tanh": np.tanh, "cube": lambda x: x**3, "exp": lambda x: np.exp(-x)}


def gaussians(rng, mu, runs):
    sample, neighbour_sample = rng.standard_normal((2, runs))
    return sample + mu, neighbour_sample


def bound_of(sample, neighbour_sample, *, delta=DELTA, confidence=0.999):
    return selected_bound(sample, neighbour_sample, delta=delta, confidence=confidence)


@pytest.mark.parametrize("shape", MAPS)
@pytest.mark.parametrize("mu", [1.0, 3.0])
def test_false_contradictions_of_a_transformed_gaussian_pair_stay_within_the_level(shape, mu):
    """The pair is exactly mu-GDP; a fit of normal distributions would flag nearly all."""
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(60):
        bound = bound_of(*(MAPS[shape](x) for x in gaussians(rng, mu, 300)), confidence=0.7)
        wrong += bound.p_value(gaussian_epsilon(mu, DELTA)) <= 0.3
    assert wrong <= stats.binom.ppf(0.999, 60, 0.3)


def test_a_statistic_detects_twice_the_claimed_mu_in_4000_runs():
    rng, detections = np.random.default_rng(3), 0
    epsilon = gaussian_epsilon(0.25, DELTA)
    for _ in range(25):
        detections += bound_of(*gaussians(rng, 0.5, 4000)).p_value(epsilon) <= 1e-3
    assert detections >= 19


def test_bound_for_a_biased_coin_is_close_to_its_true_epsilon():
    rng = np.random.default_rng(6)
    truth = 1 / (1 + np.exp(-2.0))
    sample, other = ((rng.random(4000) < share).astype(float) for share in (truth, 1 - truth))
    for pair in ((sample, other), (other, sample), (-sample, -other)):
        assert 1.6 < bound_of(*pair, delta=0.0).epsilon < 2.0


def test_infinite_statistics_are_counted_as_ordinary_outcomes():
    bound = bound_of(np.full(2000, np.inf), np.full(2000, -np.inf))
    perfect = event_bound(1000, 1000, 0, 1000, delta=DELTA, confidence=0.999)
    assert bound.epsilon == perfect.epsilon > 5
    mixed = np.where(np.arange(2000) < 20, np.inf, 0.0)
    # an event with a rate of 1 % is within delta
    assert bound_of(mixed, np.zeros(2000)).epsilon == 0
    assert bound_of(mixed, np.zeros(2000), delta=0.0, confidence=0.9).epsilon > 0.5
