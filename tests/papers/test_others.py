"""Test that the budgets of ``config/papers/others.yaml`` give each single agent epsilon = 1."""

from pathlib import Path

import numpy as np
import pytest

import private_consensus as pc
from private_consensus.privacy import gaussian_mu
from private_consensus.privacy.random_walks import walk_epsilon, walk_renyi_epsilon
from private_consensus.reproduction.configuration import plan
from private_consensus.reproduction.configuration.schema import read_yaml

CONFIG = Path(__file__).parents[2] / "config"
PLAN = plan.load({**read_yaml(CONFIG / "config.yaml"), "papers": ["others"]}, CONFIG)
AGENTS, DELTA = 16, 1e-5


def setting(experiment, algorithm, variant):
    """Return an algorithm without noise, and the epsilon of its budget."""
    settings = PLAN.cell(experiment, algorithm)["settings"]
    (found,) = (item for item in settings if item["variant"] == variant)
    return pc.algorithms.load(algorithm)(**found["algorithm"]), found["budget"]["epsilon"]


def network(name="ring", **parameters):
    streams = pc.Streams(0, (0,))
    return pc.networks.build(streams, name, AGENTS, weights="metropolis", **parameters).of_run(0)


@pytest.mark.parametrize(
    ("experiment", "name", "variant", "graph", "horizon"),
    [
        ("others_extra_descent", "muffliato_gd", "neighbour", {}, 20),
        ("others_extra_averaging", "inca", "ring", {}, 40),
        ("others_extra_averaging", "inca", "grid", {"name": "grid", "rows": 4}, 40),
    ],
)
def test_the_largest_loss_to_one_agent_is_one(experiment, name, variant, graph, horizon):
    algorithm, epsilon = setting(experiment, name, variant)
    problem = pc.problems.load("mean_estimation").build(
        pc.Streams(0, (0,)), AGENTS, records=100, dim=1, box=1.0
    )
    budget = pc.Budget(epsilon, DELTA)
    result = pc.observe(algorithm, problem, network(**graph), budget, horizon)
    assert max(loss.epsilon for loss in result.losses) == pytest.approx(1.0, rel=1e-4)
    assert {loss.rule for loss in result.losses} == {"exact"}


@pytest.mark.parametrize("variant", ["f_dp", "renyi"])
def test_the_largest_loss_of_the_walk_is_one(variant):
    _, epsilon = setting("others_extra_utility", "local_random_walk", variant)
    mu, mixing = float(gaussian_mu(epsilon, DELTA)), network().mixing
    table = {
        "f_dp": walk_epsilon(mixing, 0, mu, DELTA),
        "renyi": walk_renyi_epsilon(mixing, 40, mu, DELTA)[0],
    }
    assert np.delete(table[variant], 0).max() == pytest.approx(1.0, rel=1e-9)
