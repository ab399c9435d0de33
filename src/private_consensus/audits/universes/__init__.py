"""Data sets that a guarantee covers, per kind of problem: records, and problems that hold them.

The number, weight and norm of records, the dimension and all public parameters stay those of the
problem. Data outside the bounds of a problem are never proposed. A data set is a *background*, the
records of all agents, in which one record of one agent is replaced.

Each problem of the library has a module of its name here, with a class ``UNIVERSE``. The module of
problems with streams of data has a function ``measurements`` instead. Modules are imported when a
problem is audited.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from private_consensus.common.errors import InvalidInput
from private_consensus.core import problems

STYLES = (
    "own", "equal", "empty", "random", "extreme", "small", "halves", "mixed", "isolated", "opposed",
)  # fmt: skip
"""Kinds of background: the records of the problem, copies of the first record, zeros, random
records, extreme records, records of small norm, two records in alternate places, two records in
random numbers, the same with zeros for all other agents, and one of two records per agent."""

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

    def opposites(self, angle: float) -> list[Opposites]:
        """Return records with nearly opposite gradients.

        Parameters
        ----------
        angle : float
            Half the angle between the rows of both records.
        """
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

        Parameters
        ----------
        style : str
            Kind of background.
        records : tuple of Record
            Records of the pair: an equal background repeats the first one, some repeat both.
        agent : int
            Attacked agent.
        rng : numpy.random.Generator
            Source of random records.
        """
        own = self.own()
        shape = own[-1].shape[:2]
        if style == "own":
            return own
        if style == "empty":
            return self.shortened(own, 0.0)
        if style == "small":
            return self.shortened(self.random(rng, *shape), float(10.0 ** rng.uniform(-3, 0)))
        if style == "random":
            return self.random(rng, *shape)
        if style == "extreme":
            pairs = self.extremes()
            return self.copies(pairs[rng.integers(len(pairs))][rng.integers(2)])
        first, second = map(self.copies, records)
        if style == "equal":
            return first
        agents, places = np.indices(shape)
        is_first = places < rng.integers(shape[-1] + 1)
        if style == "halves":
            is_first = places % 2 == 0
        elif style == "opposed":
            is_first = agents % 2 == agent % 2
        background = selected(is_first, first, second)
        if style == "isolated":
            background[0][np.arange(shape[0]) != agent] = 0.0
        return background

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
