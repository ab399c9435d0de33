"""Test that audits compare sampled batches with the declared sampling."""

import numpy as np
import pytest

from private_consensus.audits.sampled_batches import _hazards, _tested
from private_consensus.privacy import Sampling

ROUNDS, RUNS, AGENTS, RECORDS = 4, 200, 3, 12
SHAPE = ROUNDS, RUNS, AGENTS, RECORDS


def fixed(size, seed=0):
    """Return uniform batches of one size."""
    uniform = np.random.default_rng(seed).random(SHAPE)
    return uniform.argsort(-1).argsort(-1) < size


def poisson(rate, seed=0):
    """Return batches in which each record is sampled independently."""
    return np.random.default_rng(seed).random(SHAPE) < rate


def failed_tests(batches, kind, rate):
    """Return the texts of the tests that batches fail at the error level of an audit."""
    results = list(_tested(batches, Sampling(kind, rate)))
    return {text.split(" at the rate")[0] for text, p in results if p * len(results) <= 5e-4}


@pytest.mark.parametrize("seed", range(20))
def test_batches_that_follow_the_declared_sampling_are_no_finding(seed):
    assert failed_tests(fixed(4, seed), "fixed_size", 4 / RECORDS) == set()
    assert failed_tests(poisson(0.25, seed), "poisson", 0.25) == set()


def test_a_batch_reused_in_every_round_is_found():
    repeated_batches = np.broadcast_to(fixed(4)[:1], SHAPE)
    assert failed_tests(repeated_batches, "fixed_size", 4 / RECORDS) >= {
        "a batch depends on the preceding batch"
    }


def test_wrong_sampling_kinds_and_rates_are_found():
    assert failed_tests(fixed(3), "poisson", 0.25) == {
        "the variance of the batch size is not the declared one"
    }
    assert "records are sampled" in failed_tests(fixed(5), "fixed_size", 4 / RECORDS)
    assert "records are sampled" in failed_tests(poisson(0.3), "poisson", 0.25)


def test_a_record_sampled_too_often_is_found():
    uniform = np.random.default_rng(1).random(SHAPE)
    uniform[..., 0] *= 0.7
    preferred = uniform.argsort(-1).argsort(-1) < 4
    assert failed_tests(preferred, "fixed_size", 4 / RECORDS) == {
        "some records are sampled more often than others"
    }


def test_the_rate_of_later_batches_names_its_condition():
    first = np.array([0, 0, 3, 3])
    (of_first, _), (of_second, _), _ = _hazards(first, 0.25, 0, 3)
    assert of_first.startswith("a record is in 2 of 4 batches of iteration 1")
    assert of_second.startswith("after batches without a record, it is in 0 of 2 batches")
