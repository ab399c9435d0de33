"""Small setting of every algorithm of the registry, private or not."""

import numpy as np

from conformance import CalibratedRun, world_of
from private_consensus import algorithms
from private_consensus.audits import examples as made
from private_consensus.privacy import Budget

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
    "ldp_subgradient": (made.logistic_regression, Budget(2.0), 2, {}),
    "logistic": (made.census, NOT_PRIVATE, 1, {}),
    "observer_losses": (made.mean_estimation, Budget(2.0, 1e-4), 2, {}),
    "pp_admm_renyi": (made.logistic_regression, Budget(2.0, 1e-2), 2, {}),
    "q_dpsgd_1": (made.perceptron, NOT_PRIVATE, 2, {**CLIPPED, **made.ROUNDS}),
    "random_aggregation": (
        made.mean_estimation, NOT_PRIVATE, 1, {"omega": 2.0, "beta": 1.0, "change": 1.0}),
    "release_audit": (
        made.huber_regression, PAIR, 1,
        {"mechanism": "gaussian", "noise": 0.5, "confidence": 0.9, "replicates": 40}),
    "walk_losses": (made.mean_estimation, Budget(2.0, 1e-4), 2, {}),
}  # fmt: skip
"""Of algorithms that have no example for audits, or one that is slow to calibrate."""


def world(name: str) -> CalibratedRun:
    """Return the calibrated run of an algorithm by its name."""
    if name not in MORE:
        return world_of(name)
    build, budget, horizon, options = MORE[name]
    problem = build()
    network = made.complete(problem.n_agents)
    algorithm = algorithms.load(name)(**options).calibrate(budget, problem, network, horizon)
    return CalibratedRun(algorithm, problem, network, horizon)
