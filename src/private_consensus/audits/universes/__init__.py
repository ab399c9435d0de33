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
from typing import Any

import numpy as np

from private_consensus.common.errors import InvalidInput
from private_consensus.core import problems

STYLES = (
    "own", "equal", "empty", "random", "extreme", "small", "halves", "mixed", "isolated", "opposed",
)  # fmt: skip
"""Kinds of background: the records of the problem, copies of the first record, zeros, random
records, extreme records, records of small norm, two records in alternate places, two records in
random numbers, the same with zeros for all other agents, and one of two records per agent."""
FAR_MODEL, SMALL_ANGLE = 1e3, 0.05
"""Norm of models at which gradients have their largest norms, and half the angle between two rows
of nearly opposite gradients."""

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

    def opposites(self) -> list[tuple[Record, Record, np.ndarray]]:
        """Return pairs of records with nearly opposite gradients at models far along a vector.

        Returns
        -------
        list of tuple
            Two records, and a vector of models at which gradients have their largest norms.
        """
        return []

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
        given = self.own()
        shape = given[-1].shape[:2]
        if style == "own":
            return given
        if style == "equal":
            return tuple(
                np.broadcast_to(r, a.shape) for r, a in zip(records[0], given, strict=True)
            )
        if style == "empty":
            return self.shortened(given, 0.0)
        if style == "small":
            return self.shortened(self.random(rng, *shape), float(10.0 ** rng.uniform(-3, 0)))
        if style in ("halves", "mixed", "isolated", "opposed"):
            agents, places = np.indices(shape)
            number = rng.integers(shape[-1] + 1)
            is_first = {"halves": places % 2 == 0, "opposed": agents % 2 == agent % 2}.get(
                style, places < number
            )
            copies = [self.background("equal", (r, r), agent, rng) for r in records]
            background = tuple(
                np.where(is_first.reshape(*shape, *(1,) * (both[0].ndim - len(shape))), *both)
                for both in zip(*copies, strict=True)
            )
            if style == "isolated":
                background[0][np.arange(shape[0]) != agent] = 0.0
            return background
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
