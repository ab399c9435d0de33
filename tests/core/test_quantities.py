"""What algorithms are said to show is what they show when they run."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from private_consensus import algorithms
from private_consensus.algorithms.base import stack
from private_consensus.audits import examples as made
from private_consensus.experiments.quantities import SHOWN, quantities_of
from private_consensus.privacy import Budget
from private_consensus.randomness import Streams

NOT_PRIVATE = Budget(np.inf)
PAIR = Budget(0.9, 1e-2)
CLIPPED = {"B": 5, "K": 0.05, "sigma_rule": "accountant"}
MORE = {
    "admm": (made.logistic_regression, NOT_PRIVATE, 2, {}),
    "canary_audit": (
        lambda: made.perceptron(records=8), NOT_PRIVATE, 2,
        {**CLIPPED, **made.ROUNDS, "guesses": 2, "confidence": 0.9}),
    "d_zoa": (made.huber_regression, PAIR, 2, {}),
    "dgd": (made.logistic_regression, NOT_PRIVATE, 2, {}),
    "dp_ci_moments": (
        made.observations, Budget(2.0), 3,
        {"schedule": "exponential", "c": 1.0, "q": 0.4, "p": 0.8, "initial_noise": True}),
    "logistic": (made.census, NOT_PRIVATE, 1, {}),
    "pp_admm_renyi": (made.logistic_regression, Budget(2.0, 1e-2), 2, {}),
    "q_dpsgd_1": (made.perceptron, NOT_PRIVATE, 2, {**CLIPPED, **made.ROUNDS}),
    "random_aggregation": (
        made.mean_estimation, NOT_PRIVATE, 1, {"omega": 2.0, "beta": 1.0, "change": 1.0}),
    "release_audit": (
        made.huber_regression, PAIR, 1,
        {"mechanism": "gaussian", "noise": 0.5, "confidence": 0.9, "replicates": 40}),
}  # fmt: skip
"""Of algorithms that have no example for audits, or one that is slow to calibrate."""


def shown(name: str) -> set[str]:
    """All that an algorithm shows in a small setting."""
    if name in MORE:
        build, budget, horizon, options = MORE[name]
        algorithm, problem = algorithms.load(name)(**options), build()
        network = made.complete(problem.n_agents)
    else:
        algorithm, problem, network, budget, horizon = made.examples(name)[0].world
    found: set[str] = set()
    stack([algorithm.calibrate(budget, problem, network, horizon)]).run(
        problem, network, Streams(1, (0,)), np.array([horizon]),
        lambda t, active, seen: found.update(seen),
    )  # fmt: skip
    return found


@pytest.mark.parametrize("name", algorithms.names())
def test_what_is_declared_is_what_an_algorithm_shows_when_it_runs(name):
    assert sorted(quantities_of(name)) == sorted(shown(name))


def test_no_other_algorithm_is_declared():
    assert sorted(SHOWN) == algorithms.names()


@dataclass
class Elsewhere:
    """Of another package."""


def test_an_algorithm_of_another_package_declares_what_it_shows(monkeypatch):
    monkeypatch.setattr(algorithms, "import_module", lambda _: SimpleNamespace(ALGORITHM=Elsewhere))
    monkeypatch.setattr(algorithms, "_elsewhere", lambda: {"mine": "theirs.mine"})
    assert quantities_of("mine") == ("internal", "released")
    monkeypatch.setattr(Elsewhere, "quantities", ("released", "steps"), raising=False)
    assert quantities_of("mine") == ("released", "steps")
