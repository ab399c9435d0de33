"""A small setting of every private algorithm: few agents, records and iterations.

A case holds a second data set, too, in which one record (or measurement) is an extreme one: it says
what a fault gives away (``truth``) and is not shown to the audit, which looks for its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from private_consensus import algorithms, networks
from private_consensus.algorithms.base import Algorithm
from private_consensus.networks import Network
from private_consensus.privacy import Budget
from private_consensus.problems.fair_classification import FairClassification
from private_consensus.problems.lasso import Lasso
from private_consensus.problems.linear_observation import EXAMPLE as OBSERVED
from private_consensus.problems.linear_observation import LinearObservation
from private_consensus.problems.linear_observation import build as linear_observation
from private_consensus.problems.logistic_regression import LogisticRegression
from private_consensus.problems.mean_estimation import MeanEstimation
from private_consensus.problems.perceptron import Perceptron
from private_consensus.randomness import Streams, generator

AGENTS, HORIZON, RECORDS = 3, 3, 20
PURE, APPROXIMATE, TWO_POINT = Budget(4.0), Budget(2.0, 1e-4), Budget(0.9, 1e-2)


@dataclass(frozen=True)
class Case:
    """An algorithm that is not calibrated yet, where it is run, and a neighbour of its data.

    Parameters
    ----------
    neighbour : Problem
        ``problem`` with one record of agent 0 moved from one extreme to the other.
    every : int
        Iterations from one that is noised to the next.
    """

    name: str
    algorithm: Algorithm
    problem: Any
    neighbour: Any
    network: Network
    budget: Budget
    horizon: int
    every: int = 1

    @cached_property
    def calibrated(self) -> Algorithm:
        """With its noise set."""
        return self.algorithm.calibrate(self.budget, self.problem, self.network, self.horizon)


def cases(*names: str) -> list[Case]:
    """Those of the names, or all."""
    return [case_of(name) for name in names or CASES]


@cache
def case_of(name: str) -> Case:
    """The case of an algorithm."""
    return CASES[name]()


def complete(agents: int = AGENTS) -> Network:
    """Everybody linked to everybody; one agent alone is linked to nobody."""
    if agents == 1:
        return networks.build(Streams(0, (0,)), "single", 1)
    return networks.build(Streams(0, (0,)), "complete", agents)


def mean_estimation(agents: int = AGENTS, dim: int = 2) -> tuple[MeanEstimation, MeanEstimation]:
    """Agent 0 has a record in one corner of the box, or in the opposite one."""
    box = 1.0
    means = generator(1, "means").uniform(-0.2, 0.2, (1, agents, dim))

    def cornered(side: float) -> MeanEstimation:
        moved = means.copy()
        moved[0, 0] = (means[0, 0] * (RECORDS - 1) + side * box) / RECORDS
        return MeanEstimation(moved, RECORDS, box)

    return cornered(-1.0), cornered(1.0)


def logistic_regression(dim: int = 2) -> tuple[LogisticRegression, LogisticRegression]:
    """A mean of losses; agent 0 has a row of length 1, or the opposite one."""
    random = generator(2, "rows")
    features = random.standard_normal((AGENTS, RECORDS, dim))
    features *= 0.5 / np.linalg.norm(features, axis=-1, keepdims=True)
    labels = np.sign(features[..., 0] + 0.1 * random.standard_normal((AGENTS, RECORDS)))

    def opposite(side: float) -> LogisticRegression:
        rows, signs = features.copy(), labels.copy()
        rows[0, 0], signs[0, 0] = side * np.eye(dim)[0], 1.0
        return LogisticRegression(rows, signs, rows[1], signs[1], 1.0 / RECORDS, 1e-2)

    return opposite(-1.0), opposite(1.0)


def huber_regression() -> tuple[Lasso, Lasso]:
    """Huber's loss, whose gradients c1 = 1 bounds; one response far to one side or the other."""
    random = generator(3, "rows")
    features = random.standard_normal((1, AGENTS, RECORDS, 2))
    features /= np.linalg.norm(features, axis=-1, keepdims=True)
    responses = features @ np.array([1.0, -0.5]) + 0.1 * random.standard_normal(features.shape[:-1])

    def far(side: float) -> Lasso:
        moved = responses.copy()
        moved[0, 0, 0] = side * 1e3
        return Lasso(features, moved, 1.0 / RECORDS, 1e-2, gradient_bound=1.0, row_bound=1.0)

    return far(1.0), far(-1.0)


@dataclass(frozen=True)
class Moved(LinearObservation):
    """One number of agent 0 at time 0 is moved."""

    by: float = 0.0

    def data(self, t, unit):
        found = np.array(super().data(t, unit))
        if t == 0:
            found[..., 0, 0] += self.by
        return found


def observations(by: float) -> tuple[LinearObservation, LinearObservation]:
    """What the example of linear observation measures."""
    built = linear_observation(Streams(0, (0,)), AGENTS, **OBSERVED)
    parts = {field.name: getattr(built, field.name) for field in fields(built)}
    return built, Moved(**parts, by=by)


def perceptron(records: int = 10) -> tuple[Perceptron, Perceptron]:
    """Two inputs, one hidden unit; one record of agent 0 is of another class."""
    random = generator(4, "images")
    features = random.uniform(0.2, 1.0, (AGENTS * records + 5, 2))
    labels = np.arange(len(features)) % 3
    dealt = np.arange(AGENTS * records).reshape(1, AGENTS, records)

    def labelled(label: int) -> Perceptron:
        other = labels.copy()
        other[0] = label
        return Perceptron(features, other, dealt, np.arange(AGENTS * records, len(features)), 1)

    return labelled(8), labelled(9)


def census() -> tuple[FairClassification, FairClassification]:
    """Rows of one agent; the first changes place and label."""
    random = generator(5, "census")
    features = random.dirichlet(np.ones(3), 40)
    labels, protected = random.integers(0, 2, 40), np.arange(40) % 2

    def placed(column: int, label: int) -> FairClassification:
        rows, outcomes = features.copy(), labels.copy()
        rows[0], outcomes[0] = np.eye(3)[column], label
        return FairClassification(rows, outcomes, protected, np.array([[36, 37, 38, 39]]), _none)

    return placed(0, 1), placed(1, 0)


def _none(*names: str) -> np.ndarray:
    return np.array([], int)


def _case(name: str, problems: tuple, budget: Budget, *, horizon=HORIZON, every=1, **options):
    network = complete(problems[0].n_agents)
    algorithm = algorithms.load(name)(**options)
    return Case(name, algorithm, *problems, network, budget, horizon, every)


def _classified(name: str, budget: Budget, **options) -> Callable[[], Case]:
    return lambda: _case(name, logistic_regression(), budget, **options)


def _trained(name: str, **options) -> Callable[[], Case]:
    options = {"B": 5, "K": 0.05, "sigma_rule": "accountant", **options}
    return lambda: _case(name, perceptron(), APPROXIMATE, **options)


ROUNDS = {"a0": 1.0, "e0": 1.0, "eta": 1e-4, "grid": "open"}
"""Steps below 1, and a grid that is fine beside the noise."""

CASES: dict[str, Callable[[], Case]] = {
    "gradient_descent": lambda: _case(
        "gradient_descent", mean_estimation(), Budget(3.0, 1e-3),
        calibration="gaussian_dp", spending="whole",
    ),
    "dp_ci": lambda: _case("dp_ci", observations(0.2), Budget(2.0)),
    "dvp": _classified("dvp", PURE),
    "m_admm": _classified("m_admm", PURE),
    "r_admm": _classified("r_admm", PURE, every=2),
    "p_admm": _classified("p_admm", APPROXIMATE),
    "ldp_admm": _classified("ldp_admm", PURE),
    "ldp_gradient_descent": _classified("ldp_gradient_descent", PURE),
    "pdop": _classified("pdop", PURE),
    "pr_admm": _classified("pr_admm", APPROXIMATE, calibration="accountant"),
    "pp_admm": _classified("pp_admm", APPROXIMATE, perturbed="output"),
    "ipp_admm": _classified(
        "ipp_admm", APPROXIMATE, perturbed="output", c=3, tested="noised",
        threshold_noise="once", threshold_scale="standard", alpha=-1.0,
    ),
    "dp_admm": lambda: _case("dp_admm", huber_regression(), TWO_POINT),
    "exact_admm": lambda: _case(
        "exact_admm", huber_regression(), TWO_POINT, calibration="gaussian_dp"
    ),
    "coordinate_descent": _classified("coordinate_descent", APPROXIMATE),
    "dsgd": _trained("dsgd", gradients="private"),
    "q_dpsgd_1": _trained("q_dpsgd_1", **ROUNDS),
    "q_dpsgd_2": _trained("q_dpsgd_2", **ROUNDS, own="broadcast"),
    "sdm_dsgd": _trained("sdm_dsgd", c=0.5),
    "fair_classification": lambda: _case(
        "fair_classification", census(), PURE, horizon=1, sens="tight"
    ),
    "pflr": lambda: _case("pflr", census(), PURE, horizon=1, sens="tight"),
}  # fmt: skip
"""Of every algorithm of the registry for which anything is claimed of data that it is given."""


def claimless() -> set[str]:
    """Algorithms of the registry that have no case: without noise (``dgd``, ``admm``, ``logistic``,
    ``dp_ci_moments``), without a guarantee (``d_zoa``), without data (``random_aggregation``), and
    audits themselves."""
    return {
        "admm", "canary_audit", "d_zoa", "dgd", "dp_ci_moments", "logistic", "random_aggregation",
        "release_audit",
    }  # fmt: skip


def batched(problem: Any, runs: int) -> Any:
    """The same data in each run, where a problem keeps those of each."""
    for name in ("means", "test"):
        if isinstance(problem, MeanEstimation | FairClassification) and hasattr(problem, name):
            one = getattr(problem, name)
            return replace(problem, **{name: np.broadcast_to(one, (runs, *one.shape[1:]))})
    return problem
