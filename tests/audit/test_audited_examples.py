"""Test the audit of every algorithm of the registry at its small example."""

from dataclasses import replace

import numpy as np
import pytest

from private_consensus import Budget, Streams, algorithms, networks
from private_consensus.audits.auditing import audit, audit_calibrated
from private_consensus.audits.examples import example_names, examples, logistic_regression
from private_consensus.audits.universes import module_of
from private_consensus.core.algorithms.base import parameters
from private_consensus.core.problems.logistic_regression import LogisticRegression

NOT_AUDITED = {"admm", "dgd", "logistic", *algorithms.ANALYSES}
"""Algorithms without noise, and analyses of other algorithms."""
UNPROVEN = {"d_zoa": "no finite guarantee"}
PAIRS = 8


@pytest.mark.parametrize("name", example_names())
def test_the_verdict_on_an_example(name):
    (example,) = examples(name)
    result = audit(*example.setting, pairs=PAIRS)
    assert result.verdict == UNPROVEN.get(name, "not contradicted"), result
    assert result.reached and max(result.reached.values()) <= 1 + 1e-6
    assert "without a message" not in str(result)


@pytest.mark.parametrize("name", ["ldp_admm", "ldp_subgradient"])
def test_secret_sharing_passes_through_the_network(name):
    (example,) = examples(name)
    shared = replace(example.algorithm, exchange="secret_sharing", weights="fixed")
    result = audit(shared, *example.setting[1:], pairs=PAIRS)
    assert result.verdict == "not contradicted" and "without a message" not in str(result)


@pytest.mark.parametrize("name", ["decor", "muffliato_gd", "secure_aggregation", "zip_dl"])
def test_a_graph_with_pairs_of_agents_without_an_edge(name):
    problem, ring = logistic_regression(5), networks.build(Streams(0, (0,)), "ring", 5)
    result = audit(algorithms.load(name)(), problem, ring, Budget(2.0, 1e-4), 3, pairs=PAIRS)
    assert result.verdict == "not contradicted", result


def test_every_algorithm_is_audited_or_not_private():
    assert sorted([*example_names(), *NOT_AUDITED]) == algorithms.names()


HALVED = {name: PAIRS for name in ("decor", "dvp", "local_training", "p_admm", "pp_admm", "zip_dl")}
HALVED |= {"one_shot_averaging": 5 * PAIRS, "q_dpsgd_2": 5 * PAIRS}
"""Algorithms and numbers of pairs."""


@pytest.mark.parametrize("name", HALVED)
def test_half_of_the_sensitivity_of_logistic_regression_is_named(name):
    (example,) = examples(name)
    problem, horizon = logistic_regression(), example.horizon
    noisy = example.algorithm.calibrate(example.budget, problem, example.network, horizon)

    class Halved(type(noisy)):
        def mechanisms(self, *arguments):
            return {n: halved(m) for n, m in super().mechanisms(*arguments).items()}

    arguments = Halved(**parameters(noisy)), problem, example.network, horizon, 1e-5
    result = audit_calibrated(*arguments, pairs=HALVED[name])
    assert result.verdict == "understated", result


def halved(mechanism):
    values = mechanism.sensitivity
    half = [0.5 * value for value in values] if isinstance(values, list) else 0.5 * values
    return replace(mechanism, sensitivity=half)


@pytest.mark.parametrize("dim", [2, 5])
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("coding", ["signed", "zero_one"])
def test_opposite_records_attain_the_change_of_the_gradient(coding, nonnegative, dim):
    rows, labels = np.zeros((1, 1, dim)), np.ones((1, 1))
    options = {"coding": coding, "nonnegative": nonnegative}
    problem = LogisticRegression(rows, labels, rows[0], labels[0], 0.5, 0.1, **options)
    universe = module_of(problem).UNIVERSE(problem)
    for first, second, direction, _ in universe.opposites(0.05):
        gradients = [
            universe.problem_of(universe.copies(record)).gradient(1e3 * direction[None])
            for record in (first, second)
        ]
        change = np.linalg.norm(gradients[0] - gradients[1]) / problem.record_change("l2")
        assert 0.99 < change <= 1 + 1e-9
