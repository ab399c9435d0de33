"""Data sets that a guarantee covers, per kind of problem: records, and problems that hold them.

The number, weight and norm of records, the dimension and all public parameters stay those of the
problem. Data outside the bounds of a problem are never proposed. A data set is a *background*, the
records of all agents, in which one record of one agent is replaced.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from private_consensus.common.errors import InvalidInput
from private_consensus.core.problems.fair_classification import FairLogisticRegression
from private_consensus.core.problems.lasso import Lasso
from private_consensus.core.problems.linear_observation import LinearObservation
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.problems.perceptron import CLASSES, Perceptron

FAR_RESPONSE = 1e3
"""Response of a regression with Huber's loss, at which the gradient has its largest norm."""
STYLES = ("own", "equal", "empty", "random", "extreme", "small")
"""Kinds of background: the records of the problem, copies of the first record, zeros, random
records, extreme records, and records of small norm."""

Record = tuple[Any, ...]
Background = tuple[np.ndarray, ...]


class Universe(ABC):
    """Records of one kind of problem.

    Parameters
    ----------
    problem : Problem
        Problem of the audited execution.
    """

    def __init__(self, problem: Any):
        self.problem = problem

    @abstractmethod
    def extremes(self) -> list[tuple[Record, Record]]:
        """Return pairs of records that change gradients by much, or in an unusual way."""

    @abstractmethod
    def own(self) -> Background:
        """Return the records of the problem, arrays [agents, records, ...]."""

    @abstractmethod
    def random(self, rng: np.random.Generator, *shape: int) -> Background:
        """Return random records, arrays [*shape, ...]."""

    @abstractmethod
    def holding(self, background: Background, record: Record, agent: int, index: int) -> Any:
        """Return the problem with a background in which one record of an agent is replaced."""

    def record(self, rng: np.random.Generator) -> Record:
        """Return a random record."""
        return tuple(array[0] for array in self.random(rng, 1))

    def background(self, style: str, record: Record, rng: np.random.Generator) -> Background:
        """Return the records of all agents, of one of :data:`STYLES`.

        Parameters
        ----------
        style : str
            Kind of background.
        record : Record
            Record that an equal background repeats.
        rng : numpy.random.Generator
            Source of random records.
        """
        given = self.own()
        shape = given[-1].shape[:2]
        if style == "own":
            return given
        if style == "equal":
            return tuple(np.broadcast_to(r, a.shape) for r, a in zip(record, given, strict=True))
        if style == "empty":
            return self.shortened(given, 0.0)
        if style == "small":
            return self.shortened(self.random(rng, *shape), float(10.0 ** rng.uniform(-3, 0)))
        if style == "extreme":
            pairs = self.extremes()
            extreme = pairs[rng.integers(len(pairs))][rng.integers(2)]
            return tuple(np.broadcast_to(r, a.shape) for r, a in zip(extreme, given, strict=True))
        return self.random(rng, *shape)

    def shortened(self, background: Background, factor: float) -> Background:
        """Return a background whose features are multiplied by a factor of at most 1."""
        return (background[0] * factor, *background[1:])

    def moved(self, record: Record, size: float, rng: np.random.Generator) -> Record:
        """Return a record between a record and a random record, at a fraction ``size``."""
        target = self.record(rng)
        features = (1 - size) * np.asarray(record[0]) + size * np.asarray(target[0])
        further = target[1:] if rng.random() < 0.3 else record[1:]
        return (features, *further)

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return self.problem.n_agents

    @property
    def count(self) -> int:
        """Number of records of an agent that can be replaced."""
        return int(self.problem.records)


class MeanUniverse(Universe):
    """Records in the box; a background has the mean of the other records of each agent."""

    def extremes(self) -> list[tuple[Record, Record]]:
        corner = np.full(self.problem.dim, self.problem.box)
        face = corner * np.eye(self.problem.dim)[0]
        pairs = (corner, -corner), (face, -face), (corner, 0.0 * corner), (0.0 * corner, face)
        return [((first,), (second,)) for first, second in pairs]

    def own(self) -> Background:
        return (self.problem.means[0],)

    def background(self, style: str, record: Record, rng: np.random.Generator) -> Background:
        (background,) = super().background(style, record, rng)
        return (np.reshape(background, self.problem.means.shape[1:]),)

    def random(self, rng: np.random.Generator, *shape: int) -> Background:
        # A background has one mean per agent; a single record has the shape [1, dim].
        size = (self.n_agents, self.problem.dim) if len(shape) > 1 else (1, self.problem.dim)
        corners = rng.choice([-1.0, 0.0, 1.0], size) * self.problem.box
        return (corners * rng.choice([1.0, rng.random()]),)

    def holding(self, background: Background, record: Record, agent: int, index: int) -> Any:
        means, records = np.array(background[0], float), self.problem.records
        means[agent] = (means[agent] * (records - 1) + record[0]) / records
        return replace(self.problem, means=means[None])


class LogisticUniverse(Universe):
    """Rows of norm at most 1 and labels in the coding of the problem."""

    def __init__(self, problem: LogisticRegression):
        super().__init__(problem)
        self.negative = 0.0 if problem.coding == "zero_one" else -1.0

    def extremes(self) -> list[tuple[Record, Record]]:
        dim = self.problem.dim
        diagonal, axis = np.full(dim, dim**-0.5), np.eye(dim)[0]
        opposite = np.eye(dim)[-1] if self.problem.nonnegative else -axis
        return [
            ((diagonal, 1.0), (diagonal, self.negative)),
            ((axis, 1.0), (opposite, 1.0)),
            ((axis, self.negative), (opposite, 1.0)),
            ((axis, 1.0), (0.0 * axis, 1.0)),
            ((diagonal, 1.0), (diagonal / 2, 1.0)),
        ]

    def own(self) -> Background:
        features = self.problem.features.reshape(-1, *self.problem.features.shape[-3:])[0]
        return features, self.problem.labels.reshape(-1, *self.problem.labels.shape[-2:])[0]

    def random(self, rng: np.random.Generator, *shape: int) -> Background:
        rows = rng.standard_normal((*shape, self.problem.dim))
        rows = np.abs(rows) if self.problem.nonnegative else rows
        rows /= (1 + 1e-12) * np.linalg.norm(rows, axis=-1, keepdims=True)
        rows *= rng.choice([1.0, rng.random()], (*shape, 1))
        return rows, rng.choice([1.0, self.negative], shape)

    def holding(self, background: Background, record: Record, agent: int, index: int) -> Any:
        features, labels = (np.array(array, float) for array in background)
        counts = self.problem.record_counts
        features[agent, min(index, int(counts[agent]) - 1)] = record[0]
        labels[agent, min(index, int(counts[agent]) - 1)] = record[1]
        padding = np.arange(features.shape[1]) >= counts[:, None]
        features[padding], labels[padding] = 0.0, self.negative
        first_run = (0,) * (self.problem.test_labels.ndim - 1)
        return replace(
            self.problem, features=features, labels=labels,
            test_features=self.problem.test_features[first_run],
            test_labels=self.problem.test_labels[first_run],
        )  # fmt: skip


class LassoUniverse(Universe):
    """Rows within the bound; responses of any size, since Huber's loss bounds gradients."""

    def __init__(self, problem: Lasso):
        super().__init__(problem)
        self.length = float(min(1.0, problem.row_bound))
        self.far = FAR_RESPONSE if np.isfinite(problem.gradient_bound) else 0.5

    def extremes(self) -> list[tuple[Record, Record]]:
        row = self.length * np.eye(self.problem.dim)[0]
        return [((row, self.far), (row, -self.far)), ((row, self.far), (0.0 * row, 0.0))]

    def own(self) -> Background:
        return self.problem.features[0], self.problem.responses[0]

    def random(self, rng: np.random.Generator, *shape: int) -> Background:
        rows = rng.standard_normal((*shape, self.problem.dim))
        rows *= self.length / ((1 + 1e-12) * np.linalg.norm(rows, axis=-1, keepdims=True))
        return rows, rng.choice([-1.0, 1.0], shape) * rng.choice([0.0, 1.0, self.far], shape)

    def holding(self, background: Background, record: Record, agent: int, index: int) -> Any:
        features, responses = (np.array(array, float) for array in background)
        features[agent, index], responses[agent, index] = record
        return replace(self.problem, features=features[None], responses=responses[None])


class PerceptronUniverse(Universe):
    """Images with entries in [0, 1] and one of the classes."""

    def extremes(self) -> list[tuple[Record, Record]]:
        bright = np.ones(self.problem.inputs)
        pairs = ((bright, 0), (bright, CLASSES - 1)), ((bright, 0), (0.0 * bright, 0))
        return list(pairs)

    def own(self) -> Background:
        rows = self.problem.agent_rows[0]
        return self.problem.features[rows], self.problem.labels[rows]

    def random(self, rng: np.random.Generator, *shape: int) -> Background:
        images = rng.random((*shape, self.problem.inputs)) ** rng.choice([0.0, 1.0])
        return images, rng.integers(0, CLASSES, shape)

    def holding(self, background: Background, record: Record, agent: int, index: int) -> Any:
        rows = self.problem.agent_rows[:1]
        features, labels = self.problem.features.copy(), self.problem.labels.copy()
        features[rows[0]], labels[rows[0]] = background
        features[rows[0, agent, index]], labels[rows[0, agent, index]] = record
        return replace(self.problem, features=features, labels=labels, agent_rows=rows)


class FairUniverse(Universe):
    """Rows without negative entries, of norm at most 1. Protected attributes are public."""

    def __init__(self, problem: FairLogisticRegression):
        super().__init__(problem)
        self.training = np.setdiff1d(np.arange(len(problem.features)), problem.test[0])

    def extremes(self) -> list[tuple[Record, Record]]:
        unit = np.eye(self.problem.dim)
        return [((unit[0], 1), (unit[-1], 0)), ((unit[0], 1), (0.0 * unit[0], 0))]

    def own(self) -> Background:
        features, labels = self.problem.features, self.problem.labels
        return features[self.training][None], labels[self.training][None]

    def random(self, rng: np.random.Generator, *shape: int) -> Background:
        rows = rng.random((*shape, self.problem.dim))
        rows /= (1 + 1e-12) * np.linalg.norm(rows, axis=-1, keepdims=True)
        return rows, rng.integers(0, 2, shape)

    def holding(self, background: Background, record: Record, agent: int, index: int) -> Any:
        features, labels = np.array(self.problem.features, float), np.array(self.problem.labels)
        features[self.training], labels[self.training] = (array[0] for array in background)
        features[self.training[index]], labels[self.training[index]] = record
        data = features, labels, self.problem.protected, self.problem.test[:1]
        return FairLogisticRegression(*data, self.problem.columns)

    @property
    def count(self) -> int:
        return len(self.training)


@dataclass(frozen=True)
class Measured(LinearObservation):
    """Observations whose measurements of one agent are moved, at one time or at all times."""

    agent: int = 0
    at: int | None = None
    moved: Any = 0.0

    def data(self, t: float, unit: np.ndarray) -> np.ndarray:
        values = np.array(super().data(t, unit))
        if self.at is None or self.at == t:
            values[..., self.agent, :] += self.moved
        return values


def measurements(
    problem: LinearObservation, change: float, unit: str, rng: np.random.Generator, horizon: int
) -> Iterator[tuple[Any, Any, int, str]]:
    """Yield pairs of measurements that differ by the largest change, without end.

    Parameters
    ----------
    problem : LinearObservation
        Problem of the audited execution.
    change : float
        Largest change of a measurement in the l1 norm.
    unit : {"measurement", "stream"}
        Whether one measurement or all measurements of the agent differ.
    rng : numpy.random.Generator
        Source of agents, times and directions.
    horizon : int
        Number of iterations.
    """
    constants = {f.name: getattr(problem, f.name) for f in fields(LinearObservation) if f.init}
    number = 0
    while True:
        agent = number % problem.n_agents
        at = None if unit == "stream" else int(rng.integers(0, horizon))
        rows = np.abs(problem.matrices(0 if at is None else at))[agent].sum(-1)
        moved = np.zeros(len(rows))
        moved[int(rows.argmax()) if number < 4 * problem.n_agents else rng.integers(len(rows))] = 1
        sign = rng.choice([-1.0, 1.0])
        first, second = (
            Measured(**constants, agent=agent, at=at, moved=factor * change * sign * moved)
            for factor in (0.0, 1.0)
        )
        where = "all measurements" if at is None else f"measurement {at}"
        yield first, second, agent, f"{where} of agent {agent}"
        number += 1


UNIVERSES: dict[type, Callable[[Any], Universe]] = {
    LogisticRegression: LogisticUniverse,
    MeanEstimation: MeanUniverse,
    Lasso: LassoUniverse,
    Perceptron: PerceptronUniverse,
    FairLogisticRegression: FairUniverse,
}
"""Universe of each kind of problem."""


def universe_of(problem: Any) -> Universe:
    """Return the universe of a problem.

    Raises
    ------
    InvalidInput
        For a problem of another kind without a method ``neighbours``.
    """
    for kind, universe in UNIVERSES.items():
        if isinstance(problem, kind):
            return universe(problem)
    expected = "a problem of the library, or one with a method neighbours(network)"
    raise InvalidInput("audit.problem", type(problem).__name__, expected)
