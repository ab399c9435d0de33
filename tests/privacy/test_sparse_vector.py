"""Test the sparse vector technique: exact output probabilities and two faulty variants."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from private_consensus.common.errors import InvalidInput
from private_consensus.privacy import SparseVector, account, sparse_vector_release
from private_consensus.privacy.sparse_vector import REDRAWS, capped_binomial, least_answers

GRID = np.linspace(-60, 60, 24_001)


def patterns(queries, svt):
    """Return the probability of each sequence of answers, integrated over the noisy threshold."""
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
    probabilities, neighbour_probabilities = patterns(queries, svt), patterns(neighbour, svt)
    assert sum(probabilities.values()) == pytest.approx(1, abs=1e-6)
    return max(
        abs(math.log(probabilities[answers] / neighbour_probabilities[answers]))
        for answers in probabilities
    )


NEIGHBOURS = [
    ([0.0, 0, 0, 0, 0], [1.0, 1, 1, 1, 1]),
    ([0.0, 1, 0, 1, 0], [1.0, 0, 1, 0, 1]),
    ([-1.0, -1, -1, -1, 2], [0.0, 0, 0, 0, 1]),
    ([3.0, 3, -4, -4, 3], [2.0, 2, -3, -3, 2]),
]
# Pair of queries whose loss is close to the claimed epsilon.
WORST = ([10.0] * 5 + [-20.0], [9.0] * 5 + [-19.0])


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize(("queries", "neighbour"), NEIGHBOURS)
def test_no_answer_sequence_exceeds_the_claimed_privacy_loss(count, equal, queries, neighbour):
    svt = SparseVector.split(1.2, sensitivity=1.0, count=count, equal=equal)
    assert loss(queries, neighbour, svt) <= svt.epsilon + 1e-6


def test_claim_is_tight_and_half_the_query_noise_violates_it():
    svt = SparseVector.split(1.2, sensitivity=1.0, count=1)
    assert 0.99 * svt.epsilon < loss(*WORST, svt) <= svt.epsilon + 1e-6
    first, second = svt.epsilon_threshold, svt.epsilon_queries
    half = SparseVector(1.0, 1, first, second, monotonic=True)
    assert half.query_scale == svt.query_scale / 2
    assert loss(*WORST, half) > 1.2 * svt.epsilon


@pytest.mark.parametrize("level", [-20.0, 0.0, 3.0])
def test_half_the_query_noise_meets_the_claim_for_monotonic_queries(level):
    half = SparseVector.split(1.2, sensitivity=1.0, count=2, monotonic=True)
    assert loss([level] * 5, [level + 1] * 5, half) <= half.epsilon + 1e-6


def test_simulated_answers_have_the_exact_probabilities():
    svt = SparseVector.split(2.0, sensitivity=1.0, count=2)
    queries = np.array([0.5, -1.0, 2.0, 0.0])
    rng = np.random.default_rng(9)
    runs = 20_000
    answers = svt.run(queries, 0.0, rng.laplace(size=runs), rng.laplace(size=(runs, 4)))
    expected = patterns(queries, svt)
    observed_counts = dict.fromkeys(expected, 0)
    for above, answered in zip(answers.above, answers.answered, strict=True):
        observed_counts[tuple(bool(top) for top in above[answered])] += 1
    counts = np.array([observed_counts[key] for key in expected])
    law = np.array(list(expected.values()))
    assert stats.chisquare(counts, law / law.sum() * runs).pvalue > 1e-3
    shifted_probabilities = np.array(list(patterns(queries + 0.3, svt).values()))
    assert (
        stats.chisquare(counts, shifted_probabilities / shifted_probabilities.sum() * runs).pvalue
        < 1e-6
    )


def test_run_stops_after_the_last_allowed_answer_and_counts_numeric_answers():
    svt = SparseVector(1.0, 2, 1.0, 1.0, epsilon_numbers=0.5)
    queries = np.array([9.0, -9, 9, 9])
    quiet = np.zeros(4)
    answers = svt.run(queries, 0.0, np.zeros(()), quiet, unit_numbers=np.full(4, 1.0))
    assert answers.answered.tolist() == [True, True, True, False]
    assert answers.above.tolist() == [True, False, True, False]
    assert svt.number_scale == 4.0
    np.testing.assert_allclose(answers.values, [13.0, np.nan, 13.0, np.nan])
    assert svt.epsilon == 2.5 == account([svt.release()], 0).epsilon


def test_split_minimises_the_noise_variance():
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
def test_errors_name_the_invalid_argument(wrong):
    parameters = {"sensitivity": 1.0, "count": 1, "epsilon_threshold": 1.0, "epsilon_queries": 1.0}
    with pytest.raises(InvalidInput, match=rf"sparse_vector\.{next(iter(wrong))}"):
        SparseVector(**(parameters | wrong))


# --- Resampled thresholds at arbitrary scales ----------------------------------------------------


COARSE = np.linspace(-200, 200, 4001)


def likelihood(answers, queries, scales, redrawn):
    """Return the exact probability of a sequence of answers.

    The threshold noise is integrated out on a grid between two draws. A shift by 1 has the same
    privacy loss on this grid as on the real line.
    """
    threshold, query = scales
    pieces, open_ = [], []
    for answer, value in zip(answers, queries, strict=True):
        tail = stats.laplace.sf(COARSE - value, scale=query)
        open_.append(tail if answer else 1 - tail)
        if redrawn == "each" or (redrawn == "after_release" and answer):
            pieces, open_ = [*pieces, open_], []
    pieces += [open_] if open_ else []
    weight = stats.laplace.pdf(COARSE, scale=threshold)
    weight /= weight.sum()
    return math.prod(float(weight @ math.prod(piece)) for piece in pieces)


def cost(scales, redrawn, *, count, tests):
    release = sparse_vector_release(1.0, *scales, count=count, tests=tests, redrawn=redrawn)
    return release.count * release.epsilon


@pytest.mark.parametrize("redrawn", REDRAWS)
@pytest.mark.parametrize("scales", [(2.0, 8.0), (8.0, 2.0), (3.0, 3.0)])
def test_privacy_loss_of_answer_sequences_is_at_most_that_of_the_release(redrawn, scales):
    count, length = 2, 5
    rng = np.random.default_rng(0)
    pairs = [
        *NEIGHBOURS,
        *((q := rng.normal(0, 4, 5), q + rng.uniform(-1, 1, 5)) for _ in "abcdef"),
    ]
    pairs += [(q, q + rng.choice([-1.0, 1.0], 5)) for q in rng.normal(0, 8, (6, 5))]
    bound = cost(scales, redrawn, count=count, tests=length)
    for queries, neighbour in pairs:
        for answers in _sequences(length, count):
            answer_count = len(answers)
            probability, neighbour_probability = (
                likelihood(answers, values[:answer_count], scales, redrawn)
                for values in (queries, neighbour)
            )
            assert abs(math.log(probability / neighbour_probability)) <= bound + 1e-6


def test_threshold_epsilon_is_counted_per_release_if_resampled_after_each_release():
    """The bound c epsilon_1 + epsilon_2 exceeds that of one draw and is nearly attained."""
    svt = SparseVector(1.0, 3, epsilon_threshold=0.5, epsilon_queries=0.5)
    scales = svt.threshold_scale, svt.query_scale
    answers = ([False] * 12 + [True]) * 3
    queries = np.array(([15.0] * 12 + [-30.0]) * 3)
    neighbour = queries + np.where(answers, 1.0, -1.0)
    probability, neighbour_probability = (
        likelihood(answers, q, scales, "after_release") for q in (queries, neighbour)
    )
    privacy_loss = abs(math.log(probability / neighbour_probability))
    bound = cost(scales, "after_release", count=3, tests=39)
    assert bound == pytest.approx(3 * 0.5 + 0.5)
    assert 1.9 * svt.epsilon < privacy_loss <= bound
    # with the larger noise that the paper sets, the loss is at most that of a single draw
    louder = 3 * svt.threshold_scale, svt.query_scale
    probability, neighbour_probability = (
        likelihood(answers, q, louder, "after_release") for q in (queries, neighbour)
    )
    assert abs(math.log(probability / neighbour_probability)) <= svt.epsilon
    assert cost(louder, "after_release", count=3, tests=39) == pytest.approx(svt.epsilon)


def test_privacy_loss_is_linear_in_tests_if_each_test_resamples_the_threshold():
    svt = SparseVector(1.0, 1, epsilon_threshold=0.5, epsilon_queries=0.5)
    scales = svt.threshold_scale, svt.query_scale
    privacy_losses = [
        abs(math.log(
            likelihood([False] * tests, [12.0] * tests, scales, "each")
            / likelihood([False] * tests, [11.0] * tests, scales, "each")
        ))
        for tests in (1, 4, 16)
    ]  # fmt: skip
    assert privacy_losses == pytest.approx(
        [privacy_losses[0], 4 * privacy_losses[0], 16 * privacy_losses[0]]
    )
    assert privacy_losses[-1] > 3 * svt.epsilon
    assert privacy_losses[-1] <= cost(scales, "each", count=1, tests=16) <= 1.3 * privacy_losses[-1]


@pytest.mark.parametrize("redrawn", REDRAWS)
@pytest.mark.parametrize(("level", "scales"), [(0.5, (2.0, 4.0)), (-3.0, (5.0, 1.0))])
def test_lower_bound_on_the_number_of_answers_above_is_valid_and_tight(redrawn, level, scales):
    """Compare with the exact probability of every sequence of answers."""
    count, tests = 2, 6
    bound_distribution = least_answers(level, *scales, count=count, tests=tests, redrawn=redrawn)
    exact = np.zeros(count + 1)
    for answers in _sequences(tests, count):
        queries = np.full(len(answers), -level)
        exact[sum(answers)] += likelihood(answers, queries, scales, redrawn)
    assert bound_distribution.sum() == pytest.approx(1) == pytest.approx(exact.sum())
    at_least, truly = np.cumsum(bound_distribution[::-1]), np.cumsum(exact[::-1])
    assert (at_least <= truly + 2e-4).all()  # error of the integration grid
    assert (at_least >= truly - 5e-3).all()


def test_capped_binomial_has_binomial_probabilities_with_a_merged_tail():
    heads = stats.binom(5, 0.5)
    law = capped_binomial(0.5, 3, 5)
    assert law == pytest.approx([*heads.pmf([0, 1, 2]), heads.sf(2)])


def test_release_at_the_split_scales_has_the_claimed_epsilon():
    svt = SparseVector.split(1.3, sensitivity=0.2, count=4)
    release = sparse_vector_release(
        0.2, svt.threshold_scale, svt.query_scale, count=4, tests=50, redrawn="once"
    )
    assert release.epsilon == pytest.approx(svt.epsilon) and release.proven


def test_noiseless_tests_have_infinite_epsilon_and_unknown_redraws_are_refused():
    parameters = {"count": 2, "tests": 5}
    for scales in ((0.0, 1.0), (1.0, 0.0)):
        assert math.isinf(sparse_vector_release(1.0, *scales, redrawn="once", **parameters).epsilon)
    assert sparse_vector_release(1.0, 0.0, 4.0, redrawn="each", **parameters).epsilon == 0.25
    with pytest.raises(InvalidInput, match=r"sparse_vector\.redrawn"):
        sparse_vector_release(1.0, 1.0, 1.0, redrawn="never", **parameters)
