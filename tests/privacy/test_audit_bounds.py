"""Test privacy bounds from event rates: coverage, p-values, multiple tests, early stopping."""

import itertools

import numpy as np
import pytest
from scipy import stats

from private_consensus.common.errors import InvalidInput
from private_consensus.privacy import gaussian_delta, gaussian_epsilon
from private_consensus.privacy.audit.bounds import (
    Bound,
    Counts,
    clopper_pearson,
    mu_bound,
    tabled_limits,
)
from private_consensus.privacy.audit.claims import Epsilon, Mu, Profile
from private_consensus.privacy.audit.families import claim_p_value, holm
from private_consensus.privacy.audit.sequential import detectable_epsilon, planned_looks

RUNS = 12
MEASURES = [Epsilon(0.0), Epsilon(0.1), Mu()]


def test_clopper_pearson_limits_agree_with_scipy():
    low, high = clopper_pearson(np.array([0, 3, 10]), 10, 0.025)
    exact = [stats.binomtest(k, 10).proportion_ci(0.95, "exact") for k in (0, 3, 10)]
    np.testing.assert_allclose(low, [ci.low for ci in exact])
    np.testing.assert_allclose(high, [ci.high for ci in exact])


def test_tabulated_limits_equal_clopper_pearson_limits():
    hits = np.random.default_rng(0).integers(0, 501, 90)
    for runs, tail in ((500, 1e-9), (500, 0.01), (20_000, 1e-5)):
        assert np.array_equal(tabled_limits(hits, runs, tail), clopper_pearson(hits, runs, tail))


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
    assert float(Mu().value(p, q)) == pytest.approx(1.2)
    allowed = Profile([(e, gaussian_delta(1.2, e)) for e in np.linspace(0, 4, 30)]).largest(q)
    assert p <= allowed <= 1.01 * p


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("level", [0.2, 0.02])
def test_type_one_error_is_at_most_the_level_on_the_boundary_of_a_claim(measure, level):
    """Enumerate the outcomes of 12 and 12 runs with their binomial probabilities."""
    true = 0.8
    p_values = np.zeros((RUNS + 1, RUNS + 1))
    for k, m in itertools.product(range(RUNS + 1), repeat=2):
        counts = Counts(k, RUNS, m, RUNS)
        p_values[k, m] = Bound(counts, 0.0, 1 - level, 1.0, measure, True).p_value(
            **_claim(measure, true)
        )
    q = np.linspace(0.0, 1.0, 101)
    p = measure.largest(q, true)
    hits, numbers = (stats.binom.pmf(np.arange(RUNS + 1), RUNS, x[:, None]) for x in (p, q))
    for alpha in (level, level / 2):
        wrong = np.einsum("ck,km,cm->c", hits, (p_values <= alpha).astype(float), numbers)
        assert wrong.max() <= alpha
        assert wrong.max() > alpha / 50  # excludes a test that never rejects


def _claim(measure, value):
    if isinstance(measure, Mu):
        return {"mu": value}
    # a profile with one point, at the delta of the measure
    return {"profile": Profile([(value, measure.delta)])}


def event_bound(hits, runs, hits_other, runs_other, *, delta, confidence):
    """Bound epsilon by the rates of one event, in both directions."""
    counts = Counts(hits, runs, hits_other, runs_other)
    return Bound(counts, delta, confidence, 1.0, Epsilon(delta), both=True)


def test_bound_is_the_smallest_claim_that_is_not_contradicted():
    bound = event_bound(900, 1000, 300, 1000, delta=0.01, confidence=0.99)
    assert (
        bound.p_value(epsilon=bound.epsilon) <= 0.01 < bound.p_value(epsilon=bound.epsilon + 2e-3)
    )
    assert bound.contradicts(epsilon=0.9 * bound.epsilon)
    assert not bound.contradicts(epsilon=1.1 * bound.epsilon)
    assert bound.contradicts(mu=0.9 * bound.mu) and not bound.contradicts(mu=1.1 * bound.mu)


def test_bound_is_tighter_than_two_clopper_pearson_limits_and_below_the_estimate():
    for hits, neighbour_hits, delta in (
        (1000, 400, 0.01),
        (1197, 803, 0.0),
        (2000, 0, 1e-5),
        (40, 2, 0.0),
    ):
        bound = event_bound(hits, 2000, neighbour_hits, 2000, delta=delta, confidence=0.999)
        low = clopper_pearson(hits, 2000, 0.0005)[0]
        high = clopper_pearson(neighbour_hits, 2000, 0.0005)[1]
        assert bound.epsilon > float(Epsilon(delta).value(low, high))
        with np.errstate(divide="ignore"):
            assert bound.epsilon < float(Epsilon(delta).value(hits / 2000, neighbour_hits / 2000))


def test_bound_for_perfect_distinction_agrees_with_direct_maximisation():
    r"""Hits in all and none of n runs have probability :math:`(1-e^{-\epsilon})^n` at p = 1."""
    bound = event_bound(500, 500, 0, 500, delta=0.0, confidence=0.99)
    # maximise p^n (1 - q)^n over q, with the largest rate p that epsilon allows
    q = np.geomspace(1e-6, 1 - 1e-6, 20_001)
    p = np.minimum(np.exp(bound.epsilon) * q, 1 - np.exp(-bound.epsilon) * (1 - q))
    largest = np.max(p**500 * (1 - q) ** 500)
    assert 0.9 * 0.005 < largest <= 0.005
    assert bound.epsilon == bound.ceiling


def test_epsilon_bound_is_symmetric_in_the_two_data_sets():
    forward = event_bound(90, 100, 20, 100, delta=0.0, confidence=0.9)
    backward = event_bound(20, 100, 90, 100, delta=0.0, confidence=0.9)
    assert forward.epsilon == backward.epsilon > 0.5
    assert mu_bound(20, 100, 90, 100, delta=0.0, confidence=0.9).mu > 1
    same = event_bound(50, 100, 50, 100, delta=0.0, confidence=0.9)
    assert same.epsilon == same.mu == 0.0


def test_bounds_decrease_with_confidence_and_delta():
    bounds = [
        event_bound(90, 100, 20, 100, delta=d, confidence=c).epsilon
        for c, d in ((0.9, 0.0), (0.99, 0.0), (0.99, 0.05), (0.999, 0.05))
    ]
    assert bounds == sorted(bounds, reverse=True) and len(set(bounds)) == 4


def test_missing_confidence_or_delta_and_invalid_values_are_refused():
    with pytest.raises(TypeError):
        mu_bound(1, 2, 1, 2, delta=0.0)
    with pytest.raises(TypeError):
        mu_bound(1, 2, 1, 2, confidence=0.9)
    for call in (
        lambda: mu_bound(3, 2, 0, 2, delta=0.0, confidence=0.9),
        lambda: mu_bound(1, 2, 0, 2, delta=0.0, confidence=1.0),
        lambda: Epsilon(1.0),
        lambda: mu_bound(0, 0, 0, 2, delta=0.0, confidence=0.9),
        lambda: planned_looks(10, first=11),
        lambda: holm([{"p_value": 0.5}], 1.5),
        lambda: event_bound(1, 2, 0, 2, delta=0.0, confidence=0.9).p_value(),
    ):
        with pytest.raises(InvalidInput):
            call()


def test_planned_looks_double_the_runs_and_their_error_shares_sum_to_one():
    looks = planned_looks(4000, first=500)
    assert [look.runs for look in looks] == [500, 1000, 2000, 4000]
    assert sum(look.share for look in looks) == pytest.approx(1.0)
    assert looks[-1].share > 0.5


def coin_audit(p, q, rng):
    """Return an audit of the first runs of one sample of coin flips."""
    coins = [rng.random(400) < rate for rate in (p, q)]

    def audit(runs, confidence):
        hits = [int(np.sum(coin[:runs])) for coin in coins]
        return [
            Bound(Counts(hits[0], runs, hits[1], runs), 0.0, confidence, 1.0, Epsilon(0.0), False)
        ]

    return audit


def last_look(audit, claim, *, runs, first, confidence):
    """Return the runs of the last planned look, and True if the claim is contradicted there."""
    level, looks = 1 - confidence, planned_looks(runs, first=first)
    for look in looks:
        if claim_p_value(audit(look.runs, 1 - level * look.share), claim) / look.share <= level:
            return look.runs, True
    return looks[-1].runs, False


def test_early_stopping_keeps_the_error_level_and_detects_a_false_claim_early():
    rng, claim = np.random.default_rng(1), {"epsilon": float(np.log(2))}
    true = [
        last_look(coin_audit(0.6, 0.3, rng), claim, runs=100, first=25, confidence=0.7)
        for _ in range(100)
    ]
    flagged = sum(contradicted for _, contradicted in true)
    assert 0 < flagged <= stats.binom.ppf(0.999, 100, 0.3)
    assert all(runs == 100 for runs, contradicted in true if not contradicted)
    runs, contradicted = last_look(
        coin_audit(0.9, 0.1, rng), claim, runs=400, first=50, confidence=0.99
    )
    assert contradicted and runs < 400


def test_detectable_epsilon_grows_with_log_runs_and_falls_with_confidence():
    few, many = (detectable_epsilon(n, delta=1e-5, confidence=0.999) for n in (400, 4000))
    assert many - few == pytest.approx(np.log(10), abs=0.02)
    assert detectable_epsilon(4000, delta=1e-5, confidence=0.95) > many


def test_family_wise_error_of_a_table_is_at_most_its_level():
    """Tables have 10 true claims, tested with coins that attain the claimed epsilon."""
    rng, numbers = np.random.default_rng(2), np.arange(21)
    p = np.array(
        [
            Bound(Counts(k, 20, m, 20), 0.0, 0.8, 1.0, Epsilon(0.0), False).p_value(
                epsilon=float(np.log(1.5))
            )
            for k, m in itertools.product(numbers, numbers)
        ]
    )
    chances = np.outer(*(stats.binom.pmf(numbers, 20, rate) for rate in (0.525, 0.35)))
    tables = rng.choice(p, size=(500, 10), p=chances.ravel())
    wrong = [
        any(row["contradicted"] for row in holm([{"p_value": v} for v in table], 0.3))
        for table in tables
    ]
    assert 0.01 < np.mean(wrong) <= 0.3


def test_holm_excludes_computed_bounds_and_compares_them_with_the_claim():
    rows = [
        {"p_value": 0.004},
        {"p_value": None, "bound": 2.0, "claimed": 1.0},
        {"p_value": float("nan"), "bound": 0.5, "claimed": 1.0},
        {"p_value": 0.006},
    ]
    adjusted_rows = holm(rows, 0.01)
    assert [row["contradicted"] for row in adjusted_rows] == [True, True, False, True]
    assert [row["adjusted"] for row in adjusted_rows] == pytest.approx([0.008, 0.0, 1.0, 0.008])


def test_audit_p_value_is_corrected_for_the_error_share_of_each_bound():
    strong, weak = Counts(90, 100, 20, 100), Counts(50, 100, 50, 100)
    bounds = [
        Bound(counts, 0.0, 0.99, share, Epsilon(0.0), False)
        for counts, share in ((strong, 0.2), (weak, 0.8))
    ]
    alone = Bound(strong, 0.0, 0.998, 1.0, Epsilon(0.0), False).p_value(epsilon=0.5)
    assert claim_p_value(bounds, {"epsilon": 0.5}) == pytest.approx(5 * alone, rel=1e-6)


def test_privacy_profile_of_a_refuted_mu_is_refuted():
    bound = mu_bound(1704, 2000, 1032, 2000, delta=0.01, confidence=0.999)
    profile = Profile([(gaussian_epsilon(0.5, d), d) for d in (0.2, 0.1, 0.05, 0.01, 1e-3)])
    assert bound.p_value(profile=profile) <= 1e-3


def drawn_bounds(measure):
    rng = np.random.default_rng(8)
    return [
        Bound(Counts(*map(int, (p, 200, q, 200))), 0.1, 0.95, 1 / 15, measure, both=bool(i % 2))
        for i, (p, q) in enumerate(rng.integers(0, 201, (15, 2)))
    ]


@pytest.mark.parametrize("measure", [Epsilon(0.1), Mu()])
@pytest.mark.parametrize("claim", [{"epsilon": 0.2}, {"epsilon": 2.0}, {"mu": 0.5}, {"mu": 1.5}])
def test_claim_p_value_is_the_minimum_and_no_lower_bound_exceeds_its_p_value(measure, claim):
    """Use a new list per repetition, since computed p-values are cached."""
    p_values = [bound.p_value(**claim) for bound in drawn_bounds(measure)]
    lower_bounds = [bound.p_value_lower_bound(**claim) for bound in drawn_bounds(measure)]
    assert all(lower_p <= exact_p for lower_p, exact_p in zip(lower_bounds, p_values, strict=True))
    assert any(
        0 < lower_p < exact_p for lower_p, exact_p in zip(lower_bounds, p_values, strict=True)
    )
    assert claim_p_value(drawn_bounds(measure), claim) == min(p_values)
    assert claim_p_value(reversed(drawn_bounds(measure)), claim) == min(p_values)
