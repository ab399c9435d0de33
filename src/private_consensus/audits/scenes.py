"""Algorithms on neighbouring data sets that are small and extreme: the replaced record goes from
one end of what is allowed to the other. Audits are made of these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .. import algorithms, networks
from ..algorithms.base import Algorithm
from ..privacy import Budget
from ..problems.fair_classification import FairClassification
from ..problems.lasso import Lasso
from ..problems.linear_observation import EXAMPLE
from ..problems.linear_observation import build as linear_observation
from ..problems.logistic_regression import LogisticRegression
from ..problems.mean_estimation import MeanEstimation
from ..randomness import Streams
from .neighbours import Measured
from .rounds import Slopes

AGENTS = 3
LATE = 6
ROUNDS = {"a0": 1.0, "e0": 1.0, "eta": 1e-3, "grid": "open"}
PURE, APPROXIMATE = Budget(4.0, 0.0), Budget(2.0, 1e-4)


@dataclass(frozen=True)
class Scene:
    """An algorithm with its noise set, on two neighbouring data sets and on two that are further
    apart than the sensitivity allows for."""

    name: str
    algorithm: Algorithm
    pair: tuple[Any, Any]
    far: tuple[Any, Any]
    network: Any
    horizon: int
    most: int = 10**6
    """Runs that its transcripts may take: some algorithms take one run after the other."""


def scenes(names: tuple[str, ...] | None = None) -> list[Scene]:
    """The representative settings."""
    builders: dict[str, Callable[[], Scene]] = {
        "gradient_descent": _descent,
        "dp_ci": _consensus,
        "dvp": lambda: _classified("dvp", PURE),
        "m_admm": lambda: _classified("m_admm", PURE),
        "r_admm": lambda: _classified("r_admm", PURE),
        "p_admm": lambda: _classified("p_admm", APPROXIMATE),
        "ldp_admm": lambda: _classified("ldp_admm", PURE),
        "ldp_gradient_descent": lambda: _classified("ldp_gradient_descent", PURE),
        "pdop": lambda: _classified("pdop", PURE),
        "pr_admm": lambda: _classified("pr_admm", APPROXIMATE, calibration="accountant"),
        "pp_admm": lambda: _classified("pp_admm", APPROXIMATE, calibration="accountant"),
        "ipp_admm": lambda: _classified(
            "ipp_admm", APPROXIMATE, calibration="accountant", c=3, tested="noised",
            threshold_noise="once", alpha=-1.0,
        ),
        "dp_admm": lambda: _regressed("dp_admm"),
        "exact_admm": lambda: _regressed("exact_admm", calibration="gaussian_dp"),
        "coordinate_descent": lambda: _classified("coordinate_descent", APPROXIMATE, spread=0.0),
        "q_dpsgd_1": lambda: _trained("q_dpsgd_1", **ROUNDS),
        "q_dpsgd_2": lambda: _trained("q_dpsgd_2", **ROUNDS, own="broadcast"),
        "sdm_dsgd": lambda: _trained("sdm_dsgd", alpha=1.0, c=0.5),
        "fair_classification": lambda: _fitted("fair_classification"),
        "pflr": lambda: _fitted("pflr"),
    }  # fmt: skip
    return [build() for name, build in builders.items() if names is None or name in names]


def _graph():
    return networks.build(Streams(0, (0,)), "complete", AGENTS)


def _descent() -> Scene:
    records, box, horizon = 20, 1.0, 5

    def problem(record: float) -> MeanEstimation:
        means = np.zeros((1, AGENTS, 2))
        means[0, 0] = record / records
        return MeanEstimation(means, records, box)

    pair, network = (problem(-box), problem(box)), _graph()
    noisy = algorithms.load("gradient_descent")(
        calibration="gaussian_dp", spending="whole"
    ).calibrate(Budget(3.0, 1e-3), pair[0], network, horizon)
    far = problem(-5 * box), problem(5 * box)
    return Scene("gradient_descent", noisy, pair, far, network, horizon)


def _consensus() -> Scene:
    parameters = {**EXAMPLE, "noise": 0.0}
    # of agent 3 the matrix is nearly the largest when the last message is made
    built = linear_observation(Streams(0, (0,)), AGENTS, **parameters)

    def problem(moved: float) -> Measured:
        parts = {field.name: getattr(built, field.name) for field in fields(built)}
        return Measured(**parts, agent=2, at=LATE, moved=moved)

    network, horizon = _graph(), LATE + 1
    noisy = algorithms.load("dp_ci")().calibrate(Budget(2.0, 0.0), built, network, horizon)
    pair = problem(0.0), problem(float(noisy.delta))
    far = problem(0.0), problem(6 * float(noisy.delta))
    return Scene("dp_ci", noisy, pair, far, network, horizon)


def _classified(name: str, budget: Budget, **options) -> Scene:
    horizon, records, network = 3, 20, _graph()

    def problem(size: float, side: float) -> LogisticRegression:
        features = np.zeros((AGENTS, records, 2))
        features[..., 1] = np.where(np.arange(records) % 2, 1.0, -1.0)
        features[0, 0] = (size * side, 0.0)
        labels = np.ones((AGENTS, records))
        return LogisticRegression(features, labels, features[0], labels[0], 1.0 / records, 1e-2)

    pair = problem(1.0, 1.0), problem(1.0, -1.0)
    noisy = algorithms.load(name)(**options).calibrate(budget, pair[0], network, horizon)
    return Scene(name, noisy, pair, (problem(12.0, 1.0), problem(12.0, -1.0)), network, horizon)


def _regressed(name: str, **options) -> Scene:
    """Huber's loss, whose gradients c1 = 1 bounds; far: a record six times as long."""
    horizon, records, network = 3, 20, _graph()

    def problem(size: float, side: float) -> Lasso:
        features = np.zeros((1, AGENTS, records, 2))
        features[..., 1] = np.where(np.arange(records) % 2, 1.0, -1.0)
        features[0, 0, 0] = (size, 0.0)
        responses = np.zeros((1, AGENTS, records))
        responses[0, 0, 0] = side * 1e3
        return Lasso(features, responses, 1.0 / records, 1e-2, 1.0, row_bound=size)

    pair = problem(1.0, 1.0), problem(1.0, -1.0)
    budget = Budget(0.9, 1e-2)
    noisy = algorithms.load(name)(**options).calibrate(budget, pair[0], network, horizon)
    return Scene(name, noisy, pair, (problem(6.0, 1.0), problem(6.0, -1.0)), network, horizon)


def _trained(name: str, **options) -> Scene:
    """Batches of 5 of 10 records, by a deadline on average; far: a slope of 12 clipping norms."""
    horizon, records, network = 3, 10, _graph()

    def problem(size: float, side: float) -> Slopes:
        slopes = np.zeros((AGENTS, records, 2))
        slopes[..., 1] = np.where(np.arange(records) % 2, 0.5, -0.5)
        slopes[0, 0] = (size * side, 0.0)
        return Slopes(slopes, allowed=size)

    pair = problem(1.0, 1.0), problem(1.0, -1.0)
    algorithm = algorithms.load(name)(B=5, K=1.0, sigma_rule="accountant", **options)
    noisy = algorithm.calibrate(APPROXIMATE, pair[0], network, horizon)
    far = problem(12.0, 1.0), problem(12.0, -1.0)
    return Scene(name, noisy, pair, far, network, horizon, most=1000)


def _fitted(name: str) -> Scene:
    """Coefficients that are noised once; far: a record six times as long."""

    def problem(size: float, label: int) -> FairClassification:
        features = np.zeros((8, 2))
        features[:, 1] = 0.5
        features[0] = (size, 0.0)
        labels = np.array([label, 0, 1, 0, 1, 0, 1, 0])
        protected = np.array([label, 1, 1, 0, 0, 1, 0, 0])
        return FairClassification(features, labels, protected, np.array([[7]]), _no_columns)

    pair = problem(1.0, 1), problem(1.0, 0)
    noisy = algorithms.load(name)(sens="tight").calibrate(PURE, pair[0], None, 1)
    return Scene(name, noisy, pair, (problem(6.0, 1), problem(6.0, 0)), None, 1)


def _no_columns(*names: str) -> np.ndarray:
    return np.array([], int)
