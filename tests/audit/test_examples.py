"""Test that no algorithm of the registry is contradicted at its small example."""

import pytest

from private_consensus import algorithms
from private_consensus.audits import audit
from private_consensus.audits.examples import example_names, examples

NOT_AUDITED = {"admm", "d_zoa", "dgd", "logistic", "random_aggregation", *algorithms.ANALYSES}
"""Algorithms without noise or proof, and analyses of other algorithms."""
PAIRS = 8


@pytest.mark.parametrize("name", example_names())
def test_an_example_is_not_contradicted(name):
    (example,) = examples(name)
    result = audit(*example.world, pairs=PAIRS)
    assert result.verdict == "not contradicted", result
    assert result.reached and max(result.reached.values()) <= 1 + 1e-6


def test_every_algorithm_is_audited_or_not_private():
    assert sorted([*example_names(), *NOT_AUDITED]) == algorithms.names()
