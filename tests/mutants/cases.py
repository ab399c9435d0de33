"""The small example of every private algorithm, with a neighbour of its data.

One record (or measurement) is moved from one extreme to the other, from which ``truth`` computes
the privacy loss of a fault. The audit does not receive this pair and searches for its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from private_consensus.audits.examples import Example, complete, example_names, examples
from private_consensus.audits.examples import mean_estimation as example_means
from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.problems.fair_classification import FairLogisticRegression
from private_consensus.core.problems.lasso import Lasso
from private_consensus.core.problems.linear_observation import LinearObservation
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.problems.perceptron import Perceptron
from private_consensus.privacy import Budget

CASES = example_names()
"""Cases of all algorithms of the registry that claim privacy for the data of a problem."""

EVERY = {"r_admm": 2, "muffliato_gd": 2}
"""Number of iterations from one with noise to the next, for algorithms where it is not 1."""


@dataclass(frozen=True)
class Case(Example):
    """Uncalibrated algorithm with its setting and a neighbouring data set.

    Parameters
    ----------
    neighbour : Problem
        ``problem`` with one record of agent 0 moved from one extreme to the other.
    noise_period : int
        Number of iterations from one iteration with noise to the next.
    """

    neighbour: Any
    noise_period: int = 1

    @cached_property
    def calibrated(self) -> Algorithm:
        """Algorithm with calibrated noise."""
        return self.algorithm.calibrate(self.budget, self.problem, self.network, self.horizon)


def cases(*names: str) -> list[Case]:
    """Return the cases of the named algorithms, or all cases."""
    return [case_of(name) for name in names or CASES]


@cache
def case_of(name: str) -> Case:
    """Return the case of an algorithm."""
    (example,) = examples(name)
    return _case(example, *neighbours(example.problem), EVERY.get(name, 1))


def of_means(name: str, algorithm: Algorithm, budget: Budget, horizon: int) -> Case:
    """Return the case of an algorithm for mean estimation."""
    problem = example_means()
    example = Example(name, algorithm, problem, complete(problem.n_agents), budget, horizon)
    return _case(example, *neighbours(problem))


def _case(example: Example, problem: Any, neighbour: Any, noise_period: int = 1) -> Case:
    shared_fields = {
        f.name: getattr(example, f.name) for f in fields(example) if f.name != "problem"
    }
    return Case(**shared_fields, problem=problem, neighbour=neighbour, noise_period=noise_period)


def neighbours(problem: Any) -> tuple[Any, Any]:
    """Return a pair of problems with opposite extreme records of agent 0."""
    return next(pair(problem) for kind, pair in PAIRS.items() if isinstance(problem, kind))


def _corners(problem: MeanEstimation):
    """Yield means with a record of agent 0 in opposite corners of the box."""
    for side in (-problem.box, problem.box):
        means = problem.means.copy()
        means[0, 0] = (problem.means[0, 0] * (problem.records - 1) + side) / problem.records
        yield replace(problem, means=means)


def _opposite(problem: LogisticRegression):
    """Yield data with a row of norm 1 of agent 0, and with the negative row."""
    for side in (-1.0, 1.0):
        rows, signs = problem.features.copy(), problem.labels.copy()
        rows[0, 0], signs[0, 0] = side * np.eye(rows.shape[-1])[0], 1.0
        yield replace(problem, features=rows, labels=signs)


def _far(problem: Lasso):
    """Yield data with a large positive and a large negative response of agent 0."""
    for side in (1e3, -1e3):
        responses = problem.responses.copy()
        responses[0, 0, 0] = side
        yield replace(problem, responses=responses)


def _moved(problem: LinearObservation):
    parameters = {
        field.name: getattr(problem, field.name) for field in fields(problem) if field.init
    }
    return problem, Moved(**parameters, by=0.2)


@dataclass(frozen=True)
class Moved(LinearObservation):
    """Observations with a shifted first measurement of agent 0 at time 0."""

    by: float = 0.0

    def data(self, t, unit):
        measurements = np.array(super().data(t, unit))
        if t == 0:
            measurements[..., 0, 0] += self.by
        return measurements


def _labelled(problem: Perceptron):
    """Yield data with a record of agent 0 in one of two classes without other records."""
    for label in (8, 9):
        labels = problem.labels.copy()
        labels[0] = label
        yield replace(problem, labels=labels)


def _placed(problem: FairLogisticRegression):
    """Yield data with two different rows and labels of one record."""
    for column, label in ((0, 1), (1, 0)):
        rows, outcomes = problem.features.copy(), problem.labels.copy()
        rows[0], outcomes[0] = np.eye(3)[column], label
        yield replace(problem, features=rows, labels=outcomes)


PAIRS: dict[type, Callable[[Any], Any]] = {
    MeanEstimation: _corners, LogisticRegression: _opposite, Lasso: _far,
    LinearObservation: _moved, Perceptron: _labelled, FairLogisticRegression: _placed,
}  # fmt: skip


def claimless() -> set[str]:
    """Return the algorithms of the registry that have no case.

    They are algorithms without noise (``dgd``, ``admm``, ``logistic``, ``dp_ci_moments``), without
    a guarantee (``d_zoa``), without data (``random_aggregation``), and audits.
    """
    return {
        "admm", "canary_audit", "d_zoa", "dgd", "dp_ci_moments", "logistic", "random_aggregation",
        "release_audit",
    }  # fmt: skip


def batched(problem: Any, runs: int) -> Any:
    """Return the problem with equal data in all runs, for problems with data per run."""
    for name in ("means", "test"):
        if isinstance(problem, MeanEstimation | FairLogisticRegression) and hasattr(problem, name):
            single_run = getattr(problem, name)
            return replace(
                problem, **{name: np.broadcast_to(single_run, (runs, *single_run.shape[1:]))}
            )
    return problem
