"""Test neighbouring data sets: attacks on any agent, and compressed problems."""

import numpy as np
import pytest

from private_consensus import algorithms
from private_consensus.audits import examples
from private_consensus.audits.neighbours import attacks
from private_consensus.common.errors import InvalidInput
from private_consensus.core.problems.perceptron import Perceptron

MEASURED = algorithms.load("dp_ci")(delta=0.2)
"""Algorithm with a largest change of a measurement, which linear observations require."""


def made(name):
    problem = getattr(examples, name)()
    return problem, examples.complete(problem.n_agents)


def difference(pair):
    """Return the l2 change of gradients or measurements per agent; shape (agents,)."""
    first, second = pair
    if hasattr(first, "observation_noise"):
        unit = np.full((1, *first.constant.shape[:2]), 0.5)
        measurement_change = sum(abs(first.data(t, unit) - second.data(t, unit)) for t in range(4))
        return measurement_change.sum((0, 2))
    if isinstance(first, Perceptron):
        records = first.agent_rows[0]
        features = abs(first.features - second.features)[records].sum((1, 2))
        return features + abs(first.labels - second.labels)[records].sum(1)
    points = np.random.default_rng(0).standard_normal((5, 1, first.n_agents, first.dim))
    return abs(first.gradient(points) - second.gradient(points)).sum((0, 1, 3))


NAMES = (
    "mean_estimation", "logistic_regression", "huber_regression", "perceptron", "census",
    "observations",
)  # fmt: skip


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_neighbouring_data_sets_differ_in_the_attacked_agent_only(name, compressed):
    problem, network = made(name)
    for agent in range(problem.n_agents):
        options = {"nearby": False, "agents": [agent], "compressed": compressed}
        candidates = list(attacks(problem, network, MEASURED, **options))
        assert candidates
        for attack in candidates:
            assert attack.agent == agent
            assert np.flatnonzero(difference(attack.pair)).tolist() == [agent]


@pytest.mark.parametrize("name", ["mean_estimation", "logistic_regression", "huber_regression"])
def test_the_attacked_agent_is_the_first_agent_of_its_subgraph(name):
    problem, _ = made(name)
    star = examples.networks.build(examples.Streams(0, (0,)), "star", 3)
    centre = int(star.degrees.argmax())
    (first, *_) = attacks(problem, star, None, nearby=True, agents=[centre])
    assert first.network.n_agents == 3
    assert np.flatnonzero(difference(first.pair)).tolist() == [0]
    (first, *_) = attacks(problem, star, None, nearby=True)
    assert first.network.n_agents == 2


@pytest.mark.parametrize("agent", [0, 1, 2])
@pytest.mark.parametrize("nearby", [True, False])
@pytest.mark.parametrize("name", ["logistic_regression", "huber_regression"])
def test_compressed_and_full_attack_problems_have_equal_gradients(name, nearby, agent):
    problem, network = made(name)
    options = {"nearby": nearby, "agents": [agent]}
    compressed = attacks(problem, network, None, **options)
    full = list(attacks(problem, network, None, compressed=False, **options))
    points = np.random.default_rng(1).standard_normal((4, 1, 3, problem.dim))
    for counted, listed in zip(compressed, full, strict=True):
        assert counted.name == listed.name
        for ours, theirs in zip(counted.pair, listed.pair, strict=True):
            assert type(theirs) is type(problem)
            assert theirs.features.shape[-3:] == problem.features.shape[-3:]
            assert np.allclose(ours.gradient(points), theirs.gradient(points), atol=1e-12)


def test_attacks_on_a_stream_change_every_measurement_of_the_agent():
    problem, network = made("observations")
    stream = algorithms.load("dp_ci")(delta=0.2, unit="stream")
    (attack,) = attacks(problem, network, stream, nearby=False, agents=[1])
    unit = np.full((1, *problem.constant.shape[:2]), 0.5)
    for t in range(6):
        first, second = (side.data(t, unit) for side in attack.pair)
        assert np.abs(first - second).sum((0, 2)) == pytest.approx([0.0, 0.2, 0.0])


def test_an_agent_outside_the_network_is_refused():
    problem, network = made("mean_estimation")
    with pytest.raises(InvalidInput, match=r"audit\.agents.*3.*0 to 2"):
        list(attacks(problem, network, None, nearby=False, agents=[3]))


class Stated:
    """Problem of another package that states neighbouring data sets of one agent."""

    n_agents, dim = 3, 2

    def neighbours(self, network):
        yield (self, self), np.ones(2)


class StatedForEach(Stated):
    """Problem of another package that states neighbouring data sets of each agent."""

    def neighbours(self, network, agent):
        yield (self, self), np.ones(2)


def test_a_foreign_problem_states_neighbours_of_agent_0_or_of_each_agent():
    network = examples.complete(3)

    def attacked(problem):
        candidates = attacks(problem, network, None, nearby=False, agents=[0, 1, 2])
        return [attack.agent for attack in candidates]

    assert attacked(Stated()) == [0]
    assert attacked(StatedForEach()) == [0, 1, 2]
