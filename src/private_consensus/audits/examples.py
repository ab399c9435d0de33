"""A small setting of every private algorithm: few agents, records, iterations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from private_consensus.common.errors import InvalidInput, arguments, require
from private_consensus.core import algorithms, networks
from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.networks import Network
from private_consensus.core.problems.fair_classification import FairLogisticRegression
from private_consensus.core.problems.lasso import Lasso
from private_consensus.core.problems.linear_observation import EXAMPLE as OBSERVED
from private_consensus.core.problems.linear_observation import LinearObservation
from private_consensus.core.problems.linear_observation import build as linear_observation
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.problems.perceptron import Perceptron
from private_consensus.core.randomness import Streams, generator
from private_consensus.privacy import Budget

AGENTS, HORIZON, RECORDS = 3, 3, 20
PURE, APPROXIMATE, TWO_POINT = Budget(4.0), Budget(2.0, 1e-4), Budget(0.9, 1e-2)
ROUNDS = {"a0": 1.0, "e0": 1.0, "eta": 1e-4, "grid": "open"}
"""Settings with step sizes below 1 and a grid that is fine compared with the noise."""


@dataclass(frozen=True)
class Example:
    """Uncalibrated algorithm with its problem, network, budget and number of iterations."""

    name: str
    algorithm: Algorithm
    problem: Any
    network: Network
    budget: Budget
    horizon: int

    @property
    def setting(self) -> tuple[Algorithm, Any, Network, Budget, int]:
        """Return the arguments of :func:`.audit.audit`."""
        return self.algorithm, self.problem, self.network, self.budget, self.horizon


def examples(*names: str) -> list[Example]:
    """Return the named examples, or all examples of this package.

    The module of an algorithm without an entry in this module sets ``EXAMPLE`` to the name of one
    of :data:`PROBLEMS`, or to a mapping with the keys of :data:`EXAMPLE_KEYS`: ``problem``, such a
    name; ``agents``; ``horizon``; and ``parameters``, of the algorithm.

    Raises
    ------
    InvalidInput
        For an algorithm without an example: it is not private, or its module names no problem.
    """
    return [_built(name) for name in names or example_names()]


def _built(name: str) -> Example:
    problem, budget, horizon, options = _EXAMPLES.get(name) or _stated(name)
    built, algorithm = problem(), algorithms.load(name)(**options)
    return Example(name, algorithm, built, complete(built.n_agents), budget, horizon)


def _example_of(module: str) -> Any:
    return getattr(import_module(module), "EXAMPLE", None)


def _stated(name: str) -> Parts:
    """Return the example that the module of an algorithm states in ``EXAMPLE``."""
    example = _example_of(algorithms.module_of(name))
    stated = {"problem": example} if isinstance(example, str) else example
    if not isinstance(stated, Mapping) or stated.get("problem") not in PROBLEMS:
        expected = (
            f"a private algorithm whose module has a line such as EXAMPLE = 'mean_estimation'; "
            f"the small problems are {', '.join(PROBLEMS)}"
        )
        raise InvalidInput(f"{name}.EXAMPLE", example, expected)
    unknown = sorted(set(stated) - set(EXAMPLE_KEYS))
    expected = f"keys among {', '.join(EXAMPLE_KEYS)}"
    require(not unknown, f"{name}.EXAMPLE", ", ".join(map(str, unknown)), expected)
    agents, horizon = stated.get("agents", AGENTS), stated.get("horizon", HORIZON)
    for key, value in {"agents": agents, "horizon": horizon}.items():
        arguments.whole(f"{name}.EXAMPLE.{key}", value, 1)
    options = stated.get("parameters", {})
    expected = "a mapping from parameters of the algorithm to values"
    require(isinstance(options, Mapping), f"{name}.EXAMPLE.parameters", options, expected)
    problem = PROBLEMS[stated["problem"]]
    return _on(lambda: problem(agents), APPROXIMATE, horizon, **options)


def example_names() -> tuple[str, ...]:
    """Return the names of this package's algorithms with a privacy claim and an example.

    They are the entries of this module, then the algorithms whose modules state ``EXAMPLE``.
    """
    modules = {name: algorithms.module_of(name) for name in algorithms.names()}
    stated = [
        name
        for name, module in modules.items()
        if module.startswith("private_consensus.") and _example_of(module) is not None
    ]
    return tuple(dict.fromkeys((*_EXAMPLES, *stated)))


def mean_estimation(agents: int = AGENTS) -> MeanEstimation:
    """Return a problem of mean estimation with records in a box."""
    means = generator(1, "means").uniform(-0.2, 0.2, (1, agents, 2))
    return MeanEstimation(means, RECORDS, 1.0)


def logistic_regression(agents: int = AGENTS) -> LogisticRegression:
    """Return a logistic regression whose rows have norm 1/2."""
    random = generator(2, "rows")
    features = random.standard_normal((agents, RECORDS, 2))
    features *= 0.5 / np.linalg.norm(features, axis=-1, keepdims=True)
    labels = np.sign(features[..., 0] + 0.1 * random.standard_normal((agents, RECORDS)))
    return LogisticRegression(features, labels, features[1], labels[1], 1.0 / RECORDS, 1e-2)


def huber_regression(agents: int = AGENTS) -> Lasso:
    """Return a regression with Huber's loss, whose gradients are bounded by c1 = 1."""
    random = generator(3, "rows")
    features = random.standard_normal((1, agents, RECORDS, 2))
    features /= np.linalg.norm(features, axis=-1, keepdims=True)
    noise = 0.1 * random.standard_normal(features.shape[:-1])
    responses = features @ np.array([1.0, -0.5]) + noise
    return Lasso(features, responses, 1.0 / RECORDS, 1e-2, gradient_bound=1.0, row_bound=1.0)


def perceptron(agents: int = AGENTS, records: int = 10) -> Perceptron:
    """Return a perceptron with two inputs and one hidden unit."""
    features = generator(4, "images").uniform(0.2, 1.0, (agents * records + 5, 2))
    labels = np.arange(len(features)) % 3
    agent_rows = np.arange(agents * records).reshape(1, agents, records)
    return Perceptron(features, labels, agent_rows, np.arange(agents * records, len(features)), 1)


def census() -> FairLogisticRegression:
    """Return a fair logistic regression: rows of one agent with a protected attribute."""
    random = generator(5, "census")
    features = random.dirichlet(np.ones(3), 40)
    labels, protected = random.integers(0, 2, 40), np.arange(40) % 2
    return FairLogisticRegression(features, labels, protected, np.array([[36, 37, 38, 39]]), _none)


def observations() -> LinearObservation:
    """Return the measurements of the example of linear observation."""
    measured: dict[str, Any] = OBSERVED
    return linear_observation(Streams(0, (0,)), AGENTS, **measured)


def _none(*names: str) -> np.ndarray:
    return np.array([], int)


def complete(agents: int) -> Network:
    """Build the complete graph; a single agent has no edges."""
    return networks.build(Streams(0, (0,)), "single" if agents == 1 else "complete", agents)


Parts = tuple[Callable[[], Any], Budget, int, dict[str, Any]]
"""Problem, budget, number of iterations and parameters of an example."""


def _on(problem: Callable[[], Any], budget: Budget, horizon: int = HORIZON, **options) -> Parts:
    return problem, budget, horizon, options


def _trained(**options) -> Parts:
    trained: dict[str, Any] = {"B": 5, "K": 0.05, "sigma_rule": "accountant", **options}
    return _on(perceptron, APPROXIMATE, **trained)


EXAMPLE_KEYS = ("problem", "agents", "horizon", "parameters")
"""Keys of a mapping ``EXAMPLE`` of a module."""

PROBLEMS: dict[str, Callable[..., Any]] = {
    "mean_estimation": mean_estimation,
    "logistic_regression": logistic_regression,
    "huber_regression": huber_regression,
    "perceptron": perceptron,
}
"""Small problems with synthetic data."""

_EXAMPLES: dict[str, Parts] = {
    "gradient_descent": _on(
        mean_estimation, Budget(3.0, 1e-3), calibration="gaussian_dp", spending="whole"
    ),
    "dp_ci": _on(observations, Budget(2.0)),
    **dict.fromkeys(("dvp", "m_admm", "r_admm"), _on(logistic_regression, PURE)),
    "p_admm": _on(logistic_regression, APPROXIMATE),
    **dict.fromkeys(
        ("ldp_admm", "ldp_gradient_descent", "ldp_subgradient", "pdop"),
        _on(logistic_regression, PURE),
    ),
    "pr_admm": _on(logistic_regression, APPROXIMATE, calibration="accountant"),
    "pp_admm": _on(logistic_regression, APPROXIMATE, perturbed="output"),
    "pp_admm_renyi": _on(logistic_regression, APPROXIMATE),
    "ipp_admm": _on(
        logistic_regression, APPROXIMATE, perturbed="output", c=3, tested="noised",
        threshold_drawn="once", threshold_scale="standard", alpha=-1.0,
    ),
    "dp_admm": _on(huber_regression, TWO_POINT),
    "d_zoa": _on(
        lambda: replace(huber_regression(), gradient_bound=np.inf), TWO_POINT, horizon=2
    ),
    "exact_admm": _on(huber_regression, TWO_POINT, calibration="gaussian_dp"),
    "coordinate_descent": _on(logistic_regression, APPROXIMATE),
    "dsgd": _trained(gradients="private"),
    "q_dpsgd_1": _trained(**ROUNDS),
    "q_dpsgd_2": _trained(**ROUNDS, own="broadcast"),
    "sdm_dsgd": _trained(c=0.5),
    "muffliato": _on(mean_estimation, APPROXIMATE, horizon=2),
    "muffliato_gd": _on(logistic_regression, APPROXIMATE, rounds=2),
    **dict.fromkeys(
        ("mafalda_sgd", "decor", "zip_dl", "secure_aggregation", "local_training"),
        _on(logistic_regression, APPROXIMATE),
    ),
    "one_shot_averaging": _on(logistic_regression, APPROXIMATE, horizon=2),
    "random_aggregation": _on(mean_estimation, APPROXIMATE, horizon=1),
    **dict.fromkeys(
        ("fair_classification", "pflr"), _on(census, PURE, horizon=1, sens="tight")
    ),
}  # fmt: skip
