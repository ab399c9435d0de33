"""Test that audits flag copies of algorithms with a fault and no correct ones."""

import pytest

from private_consensus import algorithms
from private_consensus.audits.examples import example_names, examples

from .auditing import audited
from .faults import FAULTS, SIGNED

DELTA = 1e-2
"""At this delta, a few hundred runs can contradict a claim."""
CLAIMLESS = {
    "admm", "canary_audit", "d_zoa", "dgd", "dp_ci_moments", "logistic", "random_aggregation",
    "release_audit",
}  # fmt: skip
"""Algorithms without noise, without a guarantee or without data, and audits."""


def test_every_private_algorithm_has_an_example():
    """A missing one needs a line such as ``EXAMPLE = 'mean_estimation'`` in its module."""
    assert set(example_names()) | CLAIMLESS == set(algorithms.names())
    assert not set(example_names()) & CLAIMLESS


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.algorithm}: {fault.name}")
def test_a_broken_copy_is_flagged(fault):
    (example,) = examples(fault.algorithm)
    result = audited(example, DELTA, fault.broken(example.algorithm))
    assert result.flagged, (fault.text, result.verdict, result.lines())


@pytest.mark.parametrize("name", ["gradient_descent", "dvp", "pflr"])
def test_a_correct_algorithm_is_not_flagged(name):
    (example,) = examples(name)
    assert not audited(example, DELTA).flagged


def test_noise_with_a_sign_of_the_data_is_not_flagged():
    (example,) = examples(SIGNED.algorithm)
    assert not audited(example, DELTA, SIGNED.broken(example.algorithm)).flagged
