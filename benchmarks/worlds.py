"""A world of any size for every algorithm that iterates over a network: made data, one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from private_consensus import algorithms, networks
from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.problems.lasso import Lasso
from private_consensus.core.problems.linear_observation import LinearObservation
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.problems.perceptron import Perceptron
from private_consensus.core.randomness import Streams, generator
from private_consensus.privacy import Budget

PURE, APPROXIMATE, TWO_POINT = Budget(4.0), Budget(2.0, 1e-4), Budget(0.9, 1e-2)
NONE = Budget(np.inf)
RING = {"name": "ring", "weights": "metropolis"}
RANDOM_REGULAR = {"name": "random_regular", "degree": 6, "weights": "metropolis"}


@dataclass(frozen=True)
class World:
    """An algorithm that is not calibrated yet, what it may spend and where it runs.

    ``kind`` says which target it has: ``linear`` for steps of means and gradients, ``local`` for
    minimisations in every iteration.
    """

    name: str
    algorithm: Algorithm
    problem: Any
    budget: Budget
    kind: str


def means(agents: int, dim: int, records: int, runs: int) -> MeanEstimation:
    """Means of records within a box."""
    drawn = generator(1, "means").uniform(-0.2, 0.2, (runs, agents, dim))
    return MeanEstimation(drawn, records, 1.0)


def classified(agents: int, dim: int, records: int, runs: int) -> LogisticRegression:
    """A mean of losses of rows of length 1/2, the same in all runs."""
    random = generator(2, "rows")
    features = random.standard_normal((agents, records, dim))
    features *= 0.5 / np.linalg.norm(features, axis=-1, keepdims=True)
    labels = np.sign(features[..., 0] + 0.1 * random.standard_normal((agents, records)))
    return LogisticRegression(features, labels, features[1], labels[1], 1.0 / records, 1e-2)


def regressed(agents: int, dim: int, records: int, runs: int) -> Lasso:
    """Huber's loss, whose gradients c1 = 1 bounds."""
    random = generator(3, "rows")
    features = random.standard_normal((runs, agents, records, dim))
    features /= np.linalg.norm(features, axis=-1, keepdims=True)
    noise = 0.1 * random.standard_normal(features.shape[:-1])
    responses = features[..., 0] + noise
    return Lasso(features, responses, 1.0 / records, 1e-2, gradient_bound=1.0, row_bound=1.0)


def observed(agents: int, dim: int, records: int, runs: int) -> LinearObservation:
    """Every agent sees one number at each time, of a direction that turns; five directions."""
    directions = generator(4, "directions").standard_normal((3, 5, 1, dim))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    constant, sine, cosine = directions[:, np.arange(agents) % 5]
    start = np.zeros((agents, dim))
    return LinearObservation(np.ones(dim), constant, sine, cosine, start, 0.2)


def trained(agents: int, dim: int, records: int, runs: int) -> Perceptron:
    """``dim`` inputs and one hidden unit: dim + 21 parameters."""
    rows = agents * records
    features = generator(5, "images").uniform(0.2, 1.0, (rows + 5, dim)).astype(np.float32)
    agent_rows = np.broadcast_to(
        np.arange(rows).reshape(1, agents, records), (runs, agents, records)
    )
    return Perceptron(
        features, np.arange(len(features)) % 2, agent_rows, np.arange(rows, rows + 5), 1
    )


def _of(make, budget: Budget, kind: str = "linear", **options) -> tuple:
    return make, budget, kind, options


_TRAINED = {"B": 5, "K": 0.05, "sigma_rule": "accountant"}
_ROUNDS = {"a0": 1.0, "e0": 1.0, "eta": 1e-4, "grid": "open"}
WORLDS: dict[str, tuple[Callable[..., Any], Budget, str, dict[str, Any]]] = {
    "gradient_descent": _of(means, Budget(3.0, 1e-3), calibration="gaussian_dp"),
    "muffliato": _of(means, APPROXIMATE),
    "dp_ci": _of(observed, PURE),
    "dgd": _of(classified, NONE),
    "ldp_gradient_descent": _of(classified, PURE),
    "ldp_subgradient": _of(classified, PURE),
    "pdop": _of(classified, PURE),
    "muffliato_gd": _of(classified, APPROXIMATE, rounds=2),
    "mafalda_sgd": _of(classified, APPROXIMATE),
    "decor": _of(classified, APPROXIMATE),
    "zip_dl": _of(classified, APPROXIMATE),
    "secure_aggregation": _of(classified, APPROXIMATE),
    "local_training": _of(classified, APPROXIMATE),
    "one_shot_averaging": _of(classified, APPROXIMATE),
    "coordinate_descent": _of(classified, APPROXIMATE),
    "dsgd": _of(trained, APPROXIMATE, gradients="private", **_TRAINED),
    "q_dpsgd_1": _of(trained, APPROXIMATE, **_TRAINED, **_ROUNDS),
    "q_dpsgd_2": _of(trained, APPROXIMATE, **_TRAINED, **_ROUNDS, own="broadcast"),
    "sdm_dsgd": _of(trained, APPROXIMATE, **_TRAINED, c=0.5),
    "admm": _of(classified, NONE, "local"),
    "dvp": _of(classified, PURE, "local"),
    "m_admm": _of(classified, PURE, "local"),
    "r_admm": _of(classified, PURE, "local"),
    "p_admm": _of(classified, APPROXIMATE, "local"),
    "ldp_admm": _of(classified, PURE, "local", minimisation="exact"),
    "pr_admm": _of(classified, APPROXIMATE, "local", calibration="accountant"),
    "pp_admm": _of(classified, APPROXIMATE, "local", perturbed="output"),
    "pp_admm_renyi": _of(classified, APPROXIMATE, "local"),
    "ipp_admm": _of(
        classified, APPROXIMATE, "local", perturbed="output", c=3, tested="noised",
        threshold_drawn="once", threshold_scale="standard", alpha=-1.0,
    ),
    "dp_admm": _of(regressed, TWO_POINT, "local"),
    "exact_admm": _of(regressed, TWO_POINT, "local", calibration="gaussian_dp"),
    "d_zoa": _of(regressed, TWO_POINT, "local"),
}  # fmt: skip

PAIRWISE = {"decor", "dp_ci", "mafalda_sgd", "pr_admm", "zip_dl"}
"""Algorithms that store a number per pair of agents, for at most 4,096 agents."""

INAPPLICABLE = {
    "canary_audit": "an audit of one agent in a run of q_dpsgd_1",
    "dp_ci_moments": "the covariance of all estimates has (N d)^2 numbers",
    "fair_classification": "one agent, one release",
    "logistic": "one agent, one minimisation",
    "pflr": "one agent, one release",
    "random_aggregation": "one output, nothing is iterated",
    "release_audit": "an audit of one agent in one iteration of d_zoa",
}
"""Algorithms that do not iterate over a network of many agents, and why."""


def world(name: str, agents: int, *, dim: int = 10, records: int = 10, runs: int = 1) -> World:
    """The world of an algorithm at a size."""
    make, budget, kind, options = WORLDS[name]
    algorithm = algorithms.load(name)(**options)
    return World(name, algorithm, make(agents, dim, records, runs), budget, kind)


def network(agents: int, graph: Mapping[str, Any]):
    """One graph for all runs."""
    return networks.build(Streams(0, (0,)), agents=agents, **graph).of_run(0)
