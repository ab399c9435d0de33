"""Finders of neighbouring data sets, separate from the testers that compare executions on them.

A finder yields pairs that differ in one record of one agent. All data lie in the universe of the
problem: norms, box, coding of labels and sizes are those of the problem. The pairs contain extreme
and empty records, duplicates, equal labels, and other records with which gradients vanish or are
largest, so that code that branches on data takes its branches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from private_consensus.core.networks import Network
from private_consensus.core.problems.fair_classification import FairLogisticRegression
from private_consensus.core.problems.lasso import Lasso
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.problems.perceptron import CLASSES, Perceptron

REPLACED = "replaced record"
"""Kind of a pair without a further description."""
RANDOM_PAIRS = 6
"""Pairs that :meth:`Universe.random_data` yields."""
FAR_RESPONSE = 1e3
"""Response of a record at which Huber's loss has its largest gradient."""
TINY = (1e-4, 1e-6)
"""Factors of rows and of records in the box that are not 0, but smaller than a usual threshold."""

Background = tuple[np.ndarray, ...]
"""Arrays of all agents' records, such as features and labels; they depend on the universe."""
Record = tuple[Any, ...]
"""One record: one entry for each array of a background."""


class Attack(NamedTuple):
    """Two data sets that differ in one record of one agent.

    Parameters
    ----------
    network : Network
        The graph on which both are executed.
    direction : ndarray, shape (dim,)
        The direction in which the records differ.
    agent : int
        The agent whose record differs, as an index of ``network``.
    name : str
        The kind of the pair, for results.
    """

    pair: tuple[Any, Any]
    network: Network
    direction: np.ndarray
    agent: int = 0
    name: str = REPLACED
    all_records: bool = False


class Pair(NamedTuple):
    """Background data set, and the two records that distinguish the neighbouring data sets."""

    background: Background
    first: Record
    second: Record
    name: str


def _placed(background: Background, record: Record, where: Any) -> Background:
    """Return a background with a record at some positions of its arrays."""
    arrays = tuple(np.array(array, float) for array in background)
    for array, value in zip(arrays, record, strict=True):
        array[where] = value
    return arrays


class Universe(ABC):
    """Data sets that a problem admits, with the sizes of the problem."""

    def __init__(self, problem: Any):
        self.problem = problem

    @property
    def has_positions(self) -> bool:
        """True if an agent has several rows, of which any may be replaced."""
        return self.problem.records > 1

    def problem_with_records(self, background: Background, record: Record, index: int) -> Any:
        """Return the problem in which ``record`` is at one position of every agent.

        Parameters
        ----------
        background : tuple of ndarray
            Records of all agents.
        record : tuple of ndarray
            Record, in the parts of a background.
        index : int
            Position of the record; a problem without rows ignores it.
        """
        return self.problem_with(_placed(background, record, np.s_[:, index]), record, 0, index)

    @abstractmethod
    def own_records(self) -> Background:
        """Return the records of all agents in the first run of the problem."""

    @abstractmethod
    def backgrounds(self, record: Record, rng: np.random.Generator) -> dict[str, Background]:
        """Return named data sets, one of them filled with ``record`` and one random."""

    @abstractmethod
    def records(self) -> dict[str, tuple[Record, Record]]:
        """Return named pairs of records, the most distant pair first."""

    @abstractmethod
    def random_records(self, rng: np.random.Generator, *shape: int) -> Background:
        """Return random records in an array of some shape, many at a bound of the universe."""

    def random_record(self, rng: np.random.Generator) -> Record:
        """Return one random record."""
        return tuple(array[0] for array in self.random_records(rng, 1))

    @abstractmethod
    def problem_with(
        self, background: Background, record: Record, agent: int, index: int = 0
    ) -> Any:
        """Return the problem with ``background``, in which ``record`` is one of the agent's.

        A problem without rows ignores ``index``, the position of the record.
        """

    def between(self, pair: Pair, agent: int, count: int) -> Background:
        """Return a background between two extreme data sets of one agent.

        ``count`` of the agent's other records equal the first record of the pair; the remaining
        ones equal its second record.
        """
        arrays = tuple(np.array(array, float) for array in pair.background)
        for array, first, second in zip(arrays, pair.first, pair.second, strict=True):
            array[agent, 1 : 1 + count], array[agent, 1 + count :] = first, second
        return arrays

    def between_all(self, pair: Pair, counts: Sequence[int]) -> Any:
        """Return the problem in which each agent has a data set between two extreme ones.

        For each agent, ``counts`` of the other records equal the first record of the pair.
        """
        for agent, count in enumerate(counts):
            pair = pair._replace(background=self.between(pair, agent, count))
        return self.problem_with_records(pair.background, pair.second, 0)

    def direction(self, first: Record, second: Record) -> np.ndarray:
        """Return the unit vector along which two records differ, or a diagonal if they do not."""
        difference = np.ravel(np.asarray(self.location(first)) - np.asarray(self.location(second)))
        length = np.linalg.norm(difference)
        dim = self.problem.dim
        return difference / length if length > 0 else np.full(dim, dim**-0.5)

    def filled(self, background: Background, record: Record, agent: int) -> Background:
        """Return a data set in which every record of one agent is ``record``."""
        return _placed(background, record, np.s_[agent])

    def second_record(self, background: Background, agent: int) -> Record | None:
        """Return the record of an agent after the replaced record, or None if it has one record."""
        rows = background[0][agent]
        if self.problem.records < 2 or len(rows) != self.problem.records:
            return None
        return tuple(array[agent, 1] for array in background)

    def resized(self, agents: int, dim: int, rng: np.random.Generator) -> Any | None:
        """Return a problem of random data with other numbers of agents and coordinates.

        The result is None if the size of the problem is fixed.
        """
        return None

    @abstractmethod
    def location(self, record: Record) -> np.ndarray:
        """Return the gradient of a record at 0 up to a factor, shape (dim,)."""

    def blend(self, first: Background, second: Background, rng: np.random.Generator) -> Background:
        """Return ``first`` with a random part of its records replaced by those of ``second``."""
        is_second = rng.random(first[0].shape[:2]) < rng.random()
        pairs = zip(first, second, strict=True)
        return tuple(np.where(is_second.reshape(is_second.shape + (1,) * (a.ndim - 2)), b, a)
                     for a, b in pairs)  # fmt: skip

    def problems(self, pair: Pair, agent: int, index: int = 0) -> tuple[Any, Any]:
        """Return the neighbouring problems of a pair, which replaces the record at ``index``."""
        first, second = (
            self.problem_with(pair.background, record, agent, index)
            for record in (pair.first, pair.second)
        )
        return first, second

    def attack(self, pair: Pair, network: Network, agent: int, index: int = 0) -> Attack:
        """Return the attack with the neighbouring problems of a pair."""
        problems = self.problems(pair, agent, index)
        direction = self.direction(pair.first, pair.second)
        return Attack(problems, network, direction, agent, pair.name)

    def record_pairs(self) -> Iterator[Pair]:
        """Yield all pairs of records on the problem's own data, the most distant pair first."""
        for name, (first, second) in self.records().items():
            yield Pair(self.own_records(), first, second, name)

    def special_data(
        self, network: Network, agent: int, rng: np.random.Generator
    ) -> Iterator[Attack]:
        """Yield pairs of special records on special data.

        They are each special pair of records on own and empty data, one pair on special data, a
        duplicate of one of the agent's records against a distant record, and tiny records.
        """
        records = self.records()
        (name, pair), *later_kinds = records.items()
        for background, data in self.backgrounds(pair[0], rng).items():
            yield self.attack(Pair(data, *pair, f"{name}, {background}"), network, agent)
        for name, of_kind in later_kinds:
            backgrounds = self.backgrounds(of_kind[0], rng)
            for background in ("own records", "empty records"):
                case = Pair(backgrounds[background], *of_kind, f"{name}, {background}")
                yield self.attack(case, network, agent)
        data = self.backgrounds(pair[0], rng)["own records"]
        duplicate = self.second_record(data, agent)
        if duplicate is not None:
            case = Pair(data, duplicate, pair[1], "duplicate of one record")
            yield self.attack(case, network, agent)
        backgrounds = self.backgrounds(pair[0], np.random.default_rng(0))
        for (name, of_tiny), background in product(
            self.tiny_records().items(), ("own records", "empty records")
        ):
            case = Pair(backgrounds[background], *of_tiny, f"{name}, {background}")
            yield self.attack(case, network, agent)

    def tiny_records(self) -> dict[str, tuple[Record, Record]]:
        """Return named pairs with a tiny row, against a distant tiny row or an empty row.

        Code that divides by the norm of a row, without a lower bound of it, changes most there.
        """
        first, second = next(iter(self.records().values()))
        pairs = {}
        for size in TINY:
            tiny, distant, empty = (
                (factor * np.asarray(row), *labels)
                for factor, (row, *labels) in ((size, first), (size, second), (0.0, first))
            )
            pairs[f"rows times {size:g}"] = tiny, distant
            pairs[f"row times {size:g} and empty row"] = tiny, empty
        return pairs

    def agent_data(
        self, network: Network, agent: int, rng: np.random.Generator
    ) -> Iterator[Attack]:
        """Yield pairs that differ in all records of the agent, to test guarantees per agent."""
        for name, pair in self.records().items():
            data = self.backgrounds(pair[0], rng)["own records"]
            problems = [
                self.problem_with(self.filled(data, record, agent), record, agent)
                for record in pair
            ]
            direction = self.direction(*pair)
            name = f"{name}, all records"
            yield Attack((problems[0], problems[1]), network, direction, agent, name, True)

    def random_data(
        self, network: Network, agent: int, rng: np.random.Generator
    ) -> Iterator[Attack]:
        """Yield pairs of random records on blends of special and random data."""
        for number in range(RANDOM_PAIRS):
            yield self.attack(self.random_pair(rng, number), network, agent)

    def random_pair(self, rng: np.random.Generator, number: int = 0) -> Pair:
        """Return two random records on a blend of two random backgrounds."""
        first, second = self.random_record(rng), self.random_record(rng)
        backgrounds = list(self.backgrounds(first, rng).values())
        background, other_background = (
            backgrounds[i] for i in rng.integers(0, len(backgrounds), 2)
        )
        blend = self.blend(background, other_background, rng)
        return Pair(blend, first, second, f"random data {number}")


class LogisticUniverse(Universe):
    """Rows of norm at most 1 and labels in the coding of the problem."""

    def __init__(self, problem: LogisticRegression):
        super().__init__(problem)
        self.features = problem.features.reshape(-1, *problem.features.shape[-3:])[0]
        self.labels = problem.labels.reshape(-1, *problem.labels.shape[-2:])[0]
        self.negative = 0.0 if problem.coding == "zero_one" else -1.0
        self.positive_rows = problem.nonnegative

    def records(self) -> dict[str, tuple[Record, Record]]:
        dim = self.problem.dim
        diagonal, axis = np.full(dim, dim**-0.5), np.eye(dim)[0]
        opposite = np.eye(dim)[-1] if self.positive_rows else -axis
        return {
            "label": ((diagonal, 1.0), (diagonal, self.negative)),
            "distant rows": ((axis, 1.0), (opposite, 1.0)),
            "empty row": ((axis, 1.0), (0.0 * axis, 1.0)),
            "short row": ((diagonal, 1.0), (diagonal / 2, 1.0)),
        }

    def own_records(self) -> Background:
        return self.features, self.labels

    def backgrounds(self, record: Record, rng: np.random.Generator) -> dict[str, Background]:
        shape = self.features.shape
        row, label = record
        alternating = np.where(np.arange(shape[1]) % 2, 1.0, self.negative)
        same = np.broadcast_to(row, shape)
        return {
            "own records": self.own_records(),
            "empty records": (np.zeros(shape), np.ones(shape[:2])),
            "duplicates": (same, np.full(shape[:2], label)),
            "positive labels": (self.features, np.ones(shape[:2])),
            "negative labels": (self.features, np.full(shape[:2], self.negative)),
            "cancelling records": (same, np.broadcast_to(alternating, shape[:2])),
            "random records": self.random_records(rng, *shape[:2]),
        }

    def random_records(self, rng: np.random.Generator, *shape: int) -> Background:
        rows = rng.standard_normal((*shape, self.problem.dim))
        rows = np.abs(rows) if self.positive_rows else rows
        rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
        rows *= rng.choice([1.0, rng.random()], (*shape, 1))
        return rows, rng.choice([1.0, self.negative], shape)

    def resized(self, agents: int, dim: int, rng: np.random.Generator) -> Any:
        rows = rng.standard_normal((agents, self.problem.records, dim))
        rows = np.abs(rows) if self.positive_rows else rows
        rows *= 0.5 / np.linalg.norm(rows, axis=-1, keepdims=True)
        labels = rng.choice([1.0, self.negative], rows.shape[:2])
        data = {"features": rows, "labels": labels, "sizes": None}
        return replace(self.problem, **data, test_features=rows[0], test_labels=labels[0])

    def location(self, record: Record) -> np.ndarray:
        row, label = record
        return label * np.asarray(row)

    def problem_with(
        self, background: Background, record: Record, agent: int, index: int = 0
    ) -> Any:
        features, labels = (np.array(array, float) for array in background)
        counts = self.problem.record_counts
        index = min(index, int(counts[agent]) - 1)
        features[agent, index], labels[agent, index] = record
        padding = np.arange(features.shape[1]) >= counts[:, None]
        features[padding], labels[padding] = 0.0, self.negative
        test_features, test_labels = self.problem.test_features, self.problem.test_labels
        first_run = (0,) * (test_labels.ndim - 1)
        test_data = {
            "test_features": test_features[first_run],
            "test_labels": test_labels[first_run],
        }
        return replace(self.problem, features=features, labels=labels, **test_data)


class MeanUniverse(Universe):
    """Records in the box; a background has the mean of each agent's other records."""

    has_positions = False

    def problem_with_records(self, background: Background, record: Record, index: int) -> Any:
        records = self.problem.records
        means = (np.asarray(background[0]) * (records - 1) + record[0]) / records
        return replace(self.problem, means=means[None])

    def records(self) -> dict[str, tuple[Record, Record]]:
        corner = np.full(self.problem.dim, self.problem.box)
        face = corner * np.eye(self.problem.dim)[0]
        return {
            "opposite corners": ((corner,), (-corner,)),
            "opposite faces": ((face,), (-face,)),
            "corner and centre": ((corner,), (0.0 * corner,)),
        }

    def own_records(self) -> Background:
        return (self.problem.means[0],)

    def backgrounds(self, record: Record, rng: np.random.Generator) -> dict[str, Background]:
        shape = self.problem.means.shape[-2:]
        box = self.problem.box
        return {
            "own records": self.own_records(),
            "empty records": (np.zeros(shape),),
            "duplicates": (np.broadcast_to(record[0], shape),),
            "all in one corner": (np.full(shape, box),),
            "all in the opposite corner": (np.full(shape, -box),),
            "random records": (rng.uniform(-box, box, shape),),
        }

    def random_records(self, rng: np.random.Generator, *shape: int) -> Background:
        corners = rng.choice([-1.0, 0.0, 1.0], (*shape, self.problem.dim)) * self.problem.box
        return (corners * rng.choice([1.0, rng.random()]),)

    def between(self, pair: Pair, agent: int, count: int) -> Background:
        means, other_records = np.array(pair.background[0], float), max(1, self.problem.records - 1)
        first, second = pair.first[0], pair.second[0]
        means[agent] = (count * first + (other_records - count) * second) / other_records
        return (means,)

    def second_record(self, background: Background, agent: int) -> Record | None:
        return None

    def resized(self, agents: int, dim: int, rng: np.random.Generator) -> Any:
        means = 0.2 * self.problem.box * rng.uniform(-1.0, 1.0, (1, agents, dim))
        return replace(self.problem, means=means)

    def location(self, record: Record) -> np.ndarray:
        return record[0]

    def blend(self, first: Background, second: Background, rng: np.random.Generator) -> Background:
        share = rng.random((len(first[0]), 1))
        return ((1.0 - share) * first[0] + share * second[0],)

    def problem_with(
        self, background: Background, record: Record, agent: int, index: int = 0
    ) -> Any:
        means, records = np.array(background[0], float), self.problem.records
        means[agent] = (means[agent] * (records - 1) + record[0]) / records
        return replace(self.problem, means=means[None])


class LassoUniverse(Universe):
    """Rows within the bound; responses of any size, since Huber's loss bounds gradients."""

    def __init__(self, problem: Lasso):
        super().__init__(problem)
        self.length = float(min(1.0, problem.row_bound))

    def records(self) -> dict[str, tuple[Record, Record]]:
        row = self.length * np.eye(self.problem.dim)[0]
        return {
            "opposite responses": ((row, FAR_RESPONSE), (row, -FAR_RESPONSE)),
            "empty record": ((row, FAR_RESPONSE), (0.0 * row, 0.0)),
        }

    def own_records(self) -> Background:
        return self.problem.features[0], self.problem.responses[0]

    def backgrounds(self, record: Record, rng: np.random.Generator) -> dict[str, Background]:
        features, responses = self.own_records()
        return {
            "own records": (features, responses),
            "empty records": (np.zeros(features.shape), np.zeros(responses.shape)),
            "duplicates": (
                np.broadcast_to(record[0], features.shape), np.full(responses.shape, record[1])
            ),
            "random records": self.random_records(rng, *responses.shape),
        }  # fmt: skip

    def random_records(self, rng: np.random.Generator, *shape: int) -> Background:
        rows = rng.standard_normal((*shape, self.problem.dim))
        rows *= self.length / np.linalg.norm(rows, axis=-1, keepdims=True)
        sides = rng.choice([-1.0, 1.0], shape)
        return rows, sides * rng.choice([0.0, 1.0, FAR_RESPONSE], shape)

    def location(self, record: Record) -> np.ndarray:
        return np.sign(record[1]) * np.asarray(record[0])

    def problem_with(
        self, background: Background, record: Record, agent: int, index: int = 0
    ) -> Any:
        features, responses = (np.array(array, float) for array in background)
        features[agent, index], responses[agent, index] = record
        return replace(self.problem, features=features[None], responses=responses[None])


class ClassifiedUniverse(Universe):
    """Rows with the index of a class, which a row of zeros has, too."""

    def backgrounds(self, record: Record, rng: np.random.Generator) -> dict[str, Background]:
        features, labels = self.own_records()
        return {
            "own records": (features, labels),
            "empty records": (np.zeros(features.shape), labels),
            "duplicates": (
                np.broadcast_to(record[0], features.shape), np.full(labels.shape, record[1])
            ),
            "equal labels": (features, np.zeros_like(labels)),
            "random records": self.random_records(rng, *labels.shape),
        }  # fmt: skip


class PerceptronUniverse(ClassifiedUniverse):
    """Images with entries in [0, 1] and one of the classes."""

    def records(self) -> dict[str, tuple[Record, Record]]:
        bright = np.ones(self.problem.inputs)
        return {
            "class": ((bright, 0), (bright, CLASSES - 1)),
            "dark image": ((bright, 0), (0.0 * bright, 0)),
        }

    def own_records(self) -> Background:
        rows = self.problem.agent_rows[0]
        return self.problem.features[rows], self.problem.labels[rows]

    def random_records(self, rng: np.random.Generator, *shape: int) -> Background:
        images = rng.random((*shape, self.problem.inputs)) ** rng.choice([0.0, 1.0])
        return images, rng.integers(0, CLASSES, shape)

    def location(self, record: Record) -> np.ndarray:
        bias = np.zeros(self.problem.dim)
        bias[self.problem.dim - CLASSES + int(record[1])] = 1.0
        return bias

    def problem_with(
        self, background: Background, record: Record, agent: int, index: int = 0
    ) -> Any:
        problem, rows = self.problem, self.problem.agent_rows[:1]
        features, labels = problem.features.copy(), problem.labels.copy()
        features[rows[0]], labels[rows[0]] = background
        row = rows[0, agent, index]
        features[row], labels[row] = record
        return replace(problem, features=features, labels=labels, agent_rows=rows)


class FairUniverse(ClassifiedUniverse):
    """Rows without negative entries, of norm at most 1. Protected attributes are public."""

    def __init__(self, problem: FairLogisticRegression):
        super().__init__(problem)
        self.training = np.setdiff1d(np.arange(len(problem.features)), problem.test[0])

    def records(self) -> dict[str, tuple[Record, Record]]:
        unit = np.eye(self.problem.dim)
        return {
            "row and label": ((unit[0], 1), (unit[-1], 0)),
            "empty row": ((unit[0], 1), (0.0 * unit[0], 0)),
        }

    def own_records(self) -> Background:
        features, labels = self.problem.features, self.problem.labels
        return features[self.training][None], labels[self.training][None]

    def random_records(self, rng: np.random.Generator, *shape: int) -> Background:
        rows = rng.random((*shape, self.problem.dim))
        rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
        return rows, rng.integers(0, 2, shape)

    def location(self, record: Record) -> np.ndarray:
        return (0.5 - record[1]) * np.asarray(record[0])

    def problem_with(
        self, background: Background, record: Record, agent: int, index: int = 0
    ) -> Any:
        problem = self.problem
        features, labels = np.array(problem.features, float), np.array(problem.labels)
        features[self.training], labels[self.training] = (array[0] for array in background)
        row = self.training[index]
        features[row], labels[row] = record
        arguments = features, labels, problem.protected, problem.test[:1], problem.columns
        return FairLogisticRegression(*arguments)


UNIVERSES: dict[type, Callable[[Any], Universe]] = {
    LogisticRegression: LogisticUniverse,
    MeanEstimation: MeanUniverse,
    Lasso: LassoUniverse,
    Perceptron: PerceptronUniverse,
    FairLogisticRegression: FairUniverse,
}


def universe_of(problem: Any) -> Universe | None:
    """Return the universe of a problem, or None for a problem whose universe is not known.

    Squared loss has no universe: its gradients have no bound.
    """
    if isinstance(problem, Lasso) and not np.isfinite(problem.gradient_bound):
        return None
    return next((make(problem) for kind, make in UNIVERSES.items() if isinstance(problem, kind)),
                None)  # fmt: skip
