"""Test noise that is correlated over rounds or over the receivers of one message.

The audit recovers the independent draws and measures the effect of a record in their unit.
"""

from dataclasses import replace

import numpy as np
import pytest

from private_consensus import algorithms, networks
from private_consensus.audits.checks import sensitivity_reached
from private_consensus.audits.evidence import observed
from private_consensus.audits.execution import execute
from private_consensus.audits.judging import declaration
from private_consensus.audits.neighbours import attacks
from private_consensus.audits.probing import strongest
from private_consensus.audits.streams import AuditStreams
from private_consensus.core.algorithms.mafalda_sgd import batch_of
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget

RUNS, HORIZON = 2000, 5
BUDGET = Budget(1.0, 1e-3)
CASES = {
    "filtered": ("mafalda_sgd", {}, "ring"),
    "filtered, in batches": ("mafalda_sgd", {"batches": 3}, "ring"),
    "of differences": ("mafalda_sgd", {"correlation": "anti_pgd"}, "star"),
    "cancelling": ("zip_dl", {"eta": 0.05}, "ring"),
    "cancelling, unequal degrees": ("zip_dl", {"eta": 0.05}, "star"),
}


def regression(records=6, dim=2):
    rng = np.random.default_rng(1)
    features = rng.standard_normal((4, records, dim))
    features /= np.linalg.norm(features, axis=-1, keepdims=True)
    labels = np.where(rng.random((4, records)) < 0.5, -1.0, 1.0)
    return LogisticRegression(features, labels, features[0], labels[0], 0.5, 0.3)


def audited(case, weigh=1.0, runs=RUNS):
    """Calibrate a method for records of ``1 / weigh`` times the weight and audit both data sets."""
    name, parameters, graph = CASES[case]
    problem = regression()
    network = networks.build(Streams(0, (0,)), graph, 4)
    algorithm = algorithms.load(name)(**parameters).calibrate(BUDGET, problem, network, HORIZON)
    heavier = replace(problem, weight=weigh * problem.weight)
    attack = strongest(algorithm, attacks(heavier, network, None, nearby=False), HORIZON)
    both = [observed(algorithm, attack, HORIZON, 0, runs, world, 5) for world in (0, 1)]
    declared = declaration(algorithm.releases(problem, network, HORIZON), BUDGET.delta).epsilon
    sites = algorithm.noise_sites(problem, network, HORIZON)
    return both, sensitivity_reached(sites, *both, declared, BUDGET.delta)[1], algorithm, attack


@pytest.mark.parametrize("case", CASES)
def test_likelihood_ratios_have_mean_one_and_recovered_draws_are_white(case):
    (evidence, neighbour_evidence), findings, _, _ = audited(case)
    assert not findings
    for weights in (np.exp(neighbour_evidence.ratio), np.exp(-evidence.ratio)):
        error = weights.std() / np.sqrt(RUNS)
        assert error < 0.3
        assert abs(weights.mean() - 1.0) < 4 * error
    (unit,) = evidence.noise.values()
    flat = unit.reshape(len(unit), -1)
    flat = flat[:, np.isfinite(flat).all(0)]
    covariance = flat.T @ flat / len(flat)
    assert np.abs(covariance - np.eye(len(covariance))).max() < 5.5 * np.sqrt(2 / len(flat))


@pytest.mark.parametrize("case", CASES)
def test_a_record_with_twice_the_declared_weight_is_found(case):
    _, findings, _, _ = audited(case, weigh=2.0, runs=60)
    assert findings


def test_the_effect_of_a_record_is_its_gradient_change_times_the_factor():
    """A sampled record takes part in some rounds and changes the noise of later ones."""
    (evidence, _), _, algorithm, attack = audited("filtered, in batches", runs=60)
    C = np.linalg.inv(algorithm.filter_of(HORIZON))
    feature_change = np.abs(attack.pair[0].features - attack.pair[1].features)[attack.agent].sum(-1)
    differ = attack.pair[0].labels[attack.agent] != attack.pair[1].labels[attack.agent]
    (first,) = np.flatnonzero((feature_change > 0) | differ)
    takes_part = np.arange(HORIZON) % 3 == first % 3
    reached = np.linalg.solve(C, evidence.together) * takes_part
    assert evidence.together == pytest.approx(np.abs(C @ reached), rel=0.05)
    bound = algorithm.losses(attack.pair[0], attack.network, HORIZON)[0] / algorithm.noise.scale
    assert 0.5 * bound < np.linalg.norm(evidence.together) <= bound * (1 + 1e-6)


def test_batches_of_compressed_and_full_problems_have_equal_gradients():
    network = networks.build(Streams(0, (0,)), "ring", 4)
    few = [a.pair[0] for a in attacks(regression(), network, None, nearby=False)][-1]
    rows = np.repeat(few.features, [1, 5], axis=1)
    labels = np.repeat(few.labels, [1, 5], axis=1)
    all_of_them = replace(regression(), features=rows, labels=labels)
    x = np.random.default_rng(3).standard_normal((4, 2))
    for t in range(1, 7):
        compressed_gradient, full_gradient = (
            batch_of(problem, t, 3).gradient(x) for problem in (few, all_of_them)
        )
        assert compressed_gradient == pytest.approx(full_gradient)


def test_messages_on_edges_average_to_the_released_values():
    network = networks.build(Streams(0, (0,)), "star", 4)
    algorithm = algorithms.load("zip_dl")(noise=1.0, eta=0.05)
    streams = AuditStreams.labelled("links", 7)
    execution = execute(algorithm, regression(), network, streams, 2)
    assert execution.links.shape == (7, 2, 4, 4, 2)
    assert not execution.links[..., network.adjacency == 0, :].any()
    neighbour_weights = network.mixing * ~np.eye(4, dtype=bool)
    means = (
        np.einsum("av,rtavd->rtad", neighbour_weights, execution.links)
        / neighbour_weights.sum(1)[:, None]
    )
    assert means == pytest.approx(execution.sent)


def test_messages_to_each_of_eight_receivers_are_recorded_as_unannounced():
    network = networks.build(Streams(0, (0,)), "ring", 8)
    problem = MeanEstimation(np.zeros((1, 8, 2)), 10, 1.0)
    algorithm = algorithms.load("zip_dl")(noise=1.0, eta=0.05)
    execution = execute(algorithm, problem, network, AuditStreams.labelled("links", 3), 2)
    for t in range(2):
        for receiver in range(8):
            received = execution.links[:, t, :, receiver]
            assert (execution.unannounced == received[:, None]).all((0, 2, 3)).any(), receiver
