"""Data sets that a guarantee covers, per kind of problem: records, and problems that hold them.

The number, weight and norm of records, the dimension and all public parameters stay those of the
problem. Data outside the bounds of a problem are never proposed. A data set is a *background*, the
records of all agents, in which one record of one agent is replaced.

Each problem of the library has a module of its name here, with a class ``UNIVERSE``. The module of
problems with streams of data has a function ``measurements`` instead. Modules are imported when a
problem is audited.
"""

from abc import ABC, abstractmethod
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from private_consensus.common.errors import InvalidInput
from private_consensus.core import problems

STYLES = {
    "own": ("own", "own", "halves", ""),
    "equal": ("first", "first", "halves", ""),
    "empty": ("empty", "empty", "halves", ""),
    "random": ("random", "random", "halves", ""),
    "repeated": ("repeated", "repeated", "halves", ""),
    "extreme": ("extreme", "extreme", "halves", ""),
    "small": ("small", "small", "halves", ""),
    "halves": ("first", "second", "halves", ""),
    "mixed": ("first", "second", "number", ""),
    "opposed": ("first", "second", "agents", ""),
    "isolated": ("first", "second", "number", "empty"),
    "embedded": ("first", "second", "number", "own"),
}
"""Kinds of background: two sources of records, their places, and the source of all other agents.

The places are those of the first source: every second record, a random number of records, or every
second agent."""

Record = tuple[Any, ...]
Background = tuple[np.ndarray, ...]
"""Arrays [agents, records, ...] of the parts of all records."""


class Opposites(NamedTuple):
    """Two records with nearly opposite gradients at models far along a unit vector.

    Copies of the record ``attracting`` move a model in this direction.
    """

    first: Record
    second: Record
    direction: np.ndarray
    attracting: Record


class Universe(ABC):
    """Records of one kind of problem, that of the audited execution."""

    def __init__(self, problem: Any):
        self.problem = problem

    @abstractmethod
    def extremes(self) -> list[tuple[Record, Record]]:
        """Return pairs of records that change gradients by much, or in an unusual way."""

    def opposites(self, angle: float) -> list[Opposites]:
        """Return records with nearly opposite gradients; ``angle`` is half that of their rows."""
        return []

    @abstractmethod
    def own(self) -> Background:
        """Return the records of the problem."""

    @abstractmethod
    def random(self, rng: np.random.Generator, *shape: int) -> Background:
        """Return random records, arrays [*shape, ...]."""

    @abstractmethod
    def problem_of(self, background: Background) -> Any:
        """Return the problem with the records of a background."""

    def replaced(
        self, background: Background, record: Record, agent: int, index: int
    ) -> Background:
        """Return a background in which one record of one agent is replaced."""
        copies = tuple(np.array(array) for array in background)
        for array, value in zip(copies, record, strict=True):
            array[agent, index] = value
        return copies

    def record(self, rng: np.random.Generator) -> Record:
        """Return a random record."""
        return tuple(array[0] for array in self.random(rng, 1))

    def background(
        self, style: str, records: tuple[Record, Record], agent: int, rng: np.random.Generator
    ) -> Background:
        """Return the records of all agents, of one of :data:`STYLES`.

        ``records`` are those of the sources ``first`` and ``second``, and ``agent`` is attacked.
        """
        first, second, places, environment = STYLES[style]
        shape = self.own()[-1].shape[:2]
        agents, indices = np.indices(shape)
        is_first = {
            "halves": indices % 2 == 0,
            "number": indices < rng.integers(shape[1] + 1),
            "agents": agents % 2 == agent % 2,
        }[places]
        sources = (self._source(name, records, rng) for name in (first, second))
        background = selected(is_first, *sources)
        if environment:
            surrounding = self._source(environment, records, rng)
            background = selected(agents == agent, background, surrounding)
        return background

    def _source(
        self, name: str, records: tuple[Record, Record], rng: np.random.Generator
    ) -> Background:
        own = self.own()
        shape = own[-1].shape[:2]
        if name == "own":
            return own
        if name == "empty":
            return self.shortened(own, 0.0)
        if name == "random":
            return self.random(rng, *shape)
        if name == "repeated":
            return self.copies(self.record(rng))
        if name == "small":
            return self.shortened(self.random(rng, *shape), float(10.0 ** rng.uniform(-3, 0)))
        if name == "extreme":
            pairs = self.extremes()
            return self.copies(pairs[rng.integers(len(pairs))][rng.integers(2)])
        return self.copies(records[("first", "second").index(name)])

    def copies(self, record: Record) -> Background:
        """Return a background of copies of one record."""
        arrays = zip(record, self.own(), strict=True)
        return tuple(np.broadcast_to(value, array.shape) for value, array in arrays)

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
    def counts(self) -> np.ndarray:
        """Number of records of each agent that can be replaced."""
        return np.full(self.n_agents, self.problem.records)


def selected(is_first: np.ndarray, first: Background, second: Background) -> Background:
    """Return the records of the first background where a mask is True, else of the second."""
    return tuple(
        np.where(np.expand_dims(is_first, tuple(range(2, a.ndim))), a, b)
        for a, b in zip(first, second, strict=True)
    )


def module_name(problem: str) -> str:
    """Return the dotted name of the module with the data sets of a problem."""
    return f"{__name__}.{problem}"


def module_of(problem: Any) -> ModuleType:
    """Import and return the module with the data sets of a problem.

    Raises
    ------
    InvalidInput
        For a problem of another kind without a method ``neighbours``.
    """
    name = problems.name_of(problem)
    if name is None:
        expected = "a problem of the library, or one with a method neighbours(network)"
        raise InvalidInput("audit.problem", type(problem).__name__, expected)
    return import_module(module_name(name))
