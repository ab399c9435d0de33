"""Sparse vector: exact output probabilities on neighbours, and two broken variants."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from private_consensus.errors import InvalidInput
from private_consensus.privacy import SparseVector, account

GRID = np.linspace(-60, 60, 24_001)


def patterns(queries, svt):
    """Probability of each sequence of answers, integrated over the noisy threshold at 0."""
    weight = stats.laplace.pdf(GRID, scale=svt.threshold_scale) * (GRID[1] - GRID[0])
    above = [stats.laplace.sf(GRID - query, scale=svt.query_scale) for query in queries]
    return {
        answers: float(np.sum(weight * _likelihood(answers, above)))
        for answers in _sequences(len(queries), svt.count)
    }


def _sequences(length, count):
    cut = set()
    for answers in product((False, True), repeat=length):
        tops = np.flatnonzero(answers)
        cut.add(answers[: tops[count - 1] + 1] if tops.size >= count else answers)
    return sorted(cut)


def _likelihood(answers, above):
    terms = [p if top else 1 - p for top, p in zip(answers, above, strict=False)]
    return math.prod(terms)


def loss(queries, neighbour, svt):
    one, other = patterns(queries, svt), patterns(neighbour, svt)
    assert sum(one.values()) == pytest.approx(1, abs=1e-6)
    return max(abs(math.log(one[answers] / other[answers])) for answers in one)


NEIGHBOURS = [
    ([0.0, 0, 0, 0, 0], [1.0, 1, 1, 1, 1]),
    ([0.0, 1, 0, 1, 0], [1.0, 0, 1, 0, 1]),
    ([-1.0, -1, -1, -1, 2], [0.0, 0, 0, 0, 1]),
    ([3.0, 3, -4, -4, 3], [2.0, 2, -3, -3, 2]),
]
# "below" wants a high threshold, "above" then a large draw, and both change against the claim
WORST = ([10.0] * 5 + [-20.0], [9.0] * 5 + [-19.0])


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize(("queries", "neighbour"), NEIGHBOURS)
def test_no_sequence_of_answers_costs_more_than_claimed(count, equal, queries, neighbour):
    svt = SparseVector.split(1.2, sensitivity=1.0, count=count, equal=equal)
    assert loss(queries, neighbour, svt) <= svt.epsilon + 1e-6


def test_the_claim_is_tight_and_half_the_noise_would_break_it():
    svt = SparseVector.split(1.2, sensitivity=1.0, count=1)
    assert 0.99 * svt.epsilon < loss(*WORST, svt) <= svt.epsilon + 1e-6
    first, second = svt.epsilon_threshold, svt.epsilon_queries
    half = SparseVector(1.0, 1, first, second, monotonic=True)
    assert half.query_scale == svt.query_scale / 2
    assert loss(*WORST, half) > 1.2 * svt.epsilon


@pytest.mark.parametrize("level", [-20.0, 0.0, 3.0])
def test_half_the_noise_is_enough_where_all_queries_move_alike(level):
    half = SparseVector.split(1.2, sensitivity=1.0, count=2, monotonic=True)
    assert loss([level] * 5, [level + 1] * 5, half) <= half.epsilon + 1e-6


class Broken(SparseVector):
    """Query noise that does not grow with the number of answers "above"."""

    @property
    def query_scale(self):
        return 2 * self.sensitivity / self.epsilon_queries


def test_noise_that_ignores_the_count_is_caught():
    pair = [10.0] * 5 + [-20.0] * 3, [9.0] * 5 + [-19.0] * 3
    broken = Broken(1.0, 3, 0.5, 0.5)
    assert loss(*pair, broken) > 1.9 * broken.epsilon
    correct = SparseVector(1.0, 3, 0.5, 0.5)
    assert loss(*pair, correct) <= correct.epsilon + 1e-6


def test_a_threshold_noised_anew_at_every_query_is_not_free():
    """Then "below" costs at each query: the loss grows with their number (paper 004, IPP-ADMM)."""
    svt = SparseVector.split(1.0, sensitivity=1.0, count=1, equal=True)
    weight = stats.laplace.pdf(GRID, scale=svt.threshold_scale) * (GRID[1] - GRID[0])

    def below(query):
        return float(np.sum(weight * stats.laplace.cdf(GRID - query, scale=svt.query_scale)))

    refreshed = 20 * abs(math.log(below(1.0) / below(0.0)))
    assert refreshed > svt.epsilon
    once = [
        math.fsum(weight * stats.laplace.cdf(GRID - q, scale=svt.query_scale) ** 20)
        for q in (0.0, 1.0)
    ]
    assert abs(math.log(once[1] / once[0])) <= svt.epsilon


def test_simulated_answers_have_the_exact_probabilities():
    svt = SparseVector.split(2.0, sensitivity=1.0, count=2)
    queries = np.array([0.5, -1.0, 2.0, 0.0])
    rng = np.random.default_rng(9)
    runs = 20_000
    answers = svt.run(queries, 0.0, rng.laplace(size=runs), rng.laplace(size=(runs, 4)))
    expected = patterns(queries, svt)
    seen = dict.fromkeys(expected, 0)
    for above, answered in zip(answers.above, answers.answered, strict=True):
        seen[tuple(bool(top) for top in above[answered])] += 1
    counts = np.array([seen[key] for key in expected])
    law = np.array(list(expected.values()))
    assert stats.chisquare(counts, law / law.sum() * runs).pvalue > 1e-3
    other = np.array(list(patterns(queries + 0.3, svt).values()))
    assert stats.chisquare(counts, other / other.sum() * runs).pvalue < 1e-6


def test_it_stops_after_the_last_allowed_answer_and_numbers_are_paid_for():
    svt = SparseVector(1.0, 2, 1.0, 1.0, epsilon_numbers=0.5)
    queries = np.array([9.0, -9, 9, 9])
    quiet = np.zeros(4)
    answers = svt.run(queries, 0.0, np.zeros(()), quiet, unit_numbers=np.full(4, 1.0))
    assert answers.answered.tolist() == [True, True, True, False]
    assert answers.above.tolist() == [True, False, True, False]
    assert svt.number_scale == 4.0
    np.testing.assert_allclose(answers.values, [13.0, np.nan, 13.0, np.nan])
    assert svt.epsilon == 2.5 == account([svt.release()], 0).epsilon


def test_the_split_has_the_least_noise():
    def variance(svt):
        return 2 * (svt.threshold_scale**2 + svt.query_scale**2)

    best = SparseVector.split(1.0, sensitivity=1.0, count=4)
    assert best.epsilon_queries / best.epsilon_threshold == pytest.approx(8 ** (2 / 3))
    for share in (0.9, 1.1):
        first = best.epsilon_threshold * share
        assert variance(SparseVector(1.0, 4, first, 1 - first)) > variance(best)
    assert SparseVector.split(1.0, sensitivity=1, count=4, equal=True).epsilon_queries == 0.5


@pytest.mark.parametrize(
    "wrong",
    [
        {"sensitivity": 0},
        {"count": 0},
        {"epsilon_threshold": 0},
        {"epsilon_queries": -1},
        {"epsilon_numbers": -1},
    ],
)
def test_wrong_input_is_named(wrong):
    given = {"sensitivity": 1.0, "count": 1, "epsilon_threshold": 1.0, "epsilon_queries": 1.0}
    with pytest.raises(InvalidInput, match=rf"sparse_vector\.{next(iter(wrong))}"):
        SparseVector(**(given | wrong))
