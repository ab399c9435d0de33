"""Test the sparse vector technique: exact output probabilities and two faulty variants."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from private_consensus.common.errors import InvalidInput
from private_consensus.core.lower_bounds.approximate_admm import capped_binomial, least_answers
from private_consensus.privacy import (
    sparse_vector_scales,
)
from private_consensus.privacy.sparse_vector import (
    REDRAWS,
    sparse_vector_release,
)

GRID = np.linspace(-60, 60, 24_001)


def patterns(queries, scales, count):
    """Return the probability of each sequence of answers, integrated over the noisy threshold."""
    threshold_scale, query_scale = scales
    weight = stats.laplace.pdf(GRID, scale=threshold_scale) * (GRID[1] - GRID[0])
    above = [stats.laplace.sf(GRID - query, scale=query_scale) for query in queries]
    return {
        answers: float(np.sum(weight * _likelihood(answers, above)))
        for answers in _sequences(len(queries), count)
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


def loss(queries, neighbour, scales, count):
    probabilities = patterns(queries, scales, count)
    neighbour_probabilities = patterns(neighbour, scales, count)
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
@pytest.mark.parametrize(("queries", "neighbour"), NEIGHBOURS)
def test_no_answer_sequence_exceeds_the_claimed_privacy_loss(count, queries, neighbour):
    scales = sparse_vector_scales(1.2, sensitivity=1.0, count=count)
    assert loss(queries, neighbour, scales, count) <= 1.2 + 1e-6


def test_claim_is_tight_and_half_the_query_noise_violates_it():
    threshold, query = sparse_vector_scales(1.2, sensitivity=1.0, count=1)
    assert 0.99 * 1.2 < loss(*WORST, (threshold, query), 1) <= 1.2 + 1e-6
    assert loss(*WORST, (threshold, query / 2), 1) > 1.2 * 1.2


def test_split_minimises_the_noise_variance():
    def variance(threshold_epsilon):
        return (1 / threshold_epsilon) ** 2 + (8 / (1 - threshold_epsilon)) ** 2

    threshold, query = sparse_vector_scales(1.0, sensitivity=1.0, count=4)
    best = 1 / threshold
    assert query == pytest.approx(8 / (1 - best))
    assert all(variance(best * factor) > variance(best) for factor in (0.9, 1.1))


@pytest.mark.parametrize("wrong", [{"sensitivity": 0}, {"count": 0}, {"epsilon": 0}])
def test_errors_name_the_invalid_argument(wrong):
    parameters = {"epsilon": 1.0, "sensitivity": 1.0, "count": 1}
    with pytest.raises(InvalidInput, match=rf"sparse_vector\.{next(iter(wrong))}"):
        sparse_vector_scales(**(parameters | wrong))


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
    scales = 2.0, 12.0  # each costs 0.5: 1/2 for one threshold, and 2 * 3/12 for three answers
    answers = ([False] * 12 + [True]) * 3
    queries = np.array(([15.0] * 12 + [-30.0]) * 3)
    neighbour = queries + np.where(answers, 1.0, -1.0)
    probability, neighbour_probability = (
        likelihood(answers, q, scales, "after_release") for q in (queries, neighbour)
    )
    privacy_loss = abs(math.log(probability / neighbour_probability))
    bound = cost(scales, "after_release", count=3, tests=39)
    assert bound == pytest.approx(3 * 0.5 + 0.5)
    assert 1.9 < privacy_loss <= bound
    # with the larger noise that the paper sets, the loss is at most that of a single draw
    louder = 3 * scales[0], scales[1]
    probability, neighbour_probability = (
        likelihood(answers, q, louder, "after_release") for q in (queries, neighbour)
    )
    assert abs(math.log(probability / neighbour_probability)) <= 1.0
    assert cost(louder, "after_release", count=3, tests=39) == pytest.approx(1.0)


def test_privacy_loss_is_linear_in_tests_if_each_test_resamples_the_threshold():
    scales = 2.0, 4.0  # one test with one threshold costs 1
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
    assert privacy_losses[-1] > 3
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


def test_without_query_noise_an_answer_is_above_if_the_threshold_is_at_most_zero():
    law = least_answers(-1.0, 2.0, 0.0, count=1, tests=1, redrawn="once")
    assert law[1] == pytest.approx(stats.laplace.cdf(1 / 2), abs=5e-3)


def test_capped_binomial_has_binomial_probabilities_with_a_merged_tail():
    heads = stats.binom(5, 0.5)
    law = capped_binomial(0.5, 3, 5)
    assert law == pytest.approx([*heads.pmf([0, 1, 2]), heads.sf(2)])


def test_release_at_the_split_scales_has_the_claimed_epsilon():
    scales = sparse_vector_scales(1.3, sensitivity=0.2, count=4)
    release = sparse_vector_release(0.2, *scales, count=4, tests=50, redrawn="once")
    assert release.epsilon == pytest.approx(1.3) and release.proven


def test_noiseless_tests_have_infinite_epsilon_and_unknown_redraws_are_refused():
    parameters = {"count": 2, "tests": 5}
    for scales in ((0.0, 1.0), (1.0, 0.0)):
        assert math.isinf(sparse_vector_release(1.0, *scales, redrawn="once", **parameters).epsilon)
    assert sparse_vector_release(1.0, 0.0, 4.0, redrawn="each", **parameters).epsilon == 0.25
    with pytest.raises(InvalidInput, match=r"sparse_vector\.redrawn"):
        sparse_vector_release(1.0, 1.0, 1.0, redrawn="never", **parameters)
