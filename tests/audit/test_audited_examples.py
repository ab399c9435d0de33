"""Test the audit of every algorithm of the registry at its small example."""

import pytest

from private_consensus import Budget, Streams, algorithms, networks
from private_consensus.audits.auditing import audit
from private_consensus.audits.examples import example_names, examples, logistic_regression

NOT_AUDITED = {"admm", "dgd", "logistic", *algorithms.ANALYSES}
"""Algorithms without noise, and analyses of other algorithms."""
UNPROVEN = {"d_zoa": "no finite guarantee"}
PAIRS = 8


@pytest.mark.parametrize("name", example_names())
def test_the_verdict_on_an_example(name):
    (example,) = examples(name)
    result = audit(*example.world, pairs=PAIRS)
    assert result.verdict == UNPROVEN.get(name, "not contradicted"), result
    assert result.reached and max(result.reached.values()) <= 1 + 1e-6


@pytest.mark.parametrize("name", ["decor", "muffliato_gd", "secure_aggregation", "zip_dl"])
def test_a_graph_with_pairs_of_agents_without_an_edge(name):
    problem, ring = logistic_regression(5), networks.build(Streams(0, (0,)), "ring", 5)
    result = audit(algorithms.load(name)(), problem, ring, Budget(2.0, 1e-4), 3, pairs=PAIRS)
    assert result.verdict == "not contradicted", result


def test_every_algorithm_is_audited_or_not_private():
    assert sorted([*example_names(), *NOT_AUDITED]) == algorithms.names()
