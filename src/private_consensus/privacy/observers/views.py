"""Observers: the messages that they receive, and the agents whose noise they know.

An observer receives rows, linear combinations of the messages of a round, and knows some of the
noise. The mixing matrix, all schedules, the graph and the data of all agents except the target
agent are public: differential privacy is a statement about their worst case.

======================  ==========================================  =============================
observer                observes                                    also knows
======================  ==========================================  =============================
:class:`Eavesdropper`   every message                               nothing, or the noise and the
                                                                    pair secrets of some agents
:class:`Coalition`      messages to its members                     its members' data and noise
:class:`SecureSums`     in each round the weighted sum that each    its members' data and noise
                        member forms of others' messages
:class:`FinalModels`    final states, or their mean                 nothing, or the noise of the
                                                                    agents with observed states
======================  ==========================================  =============================

:func:`agent` is a coalition of one agent. Order by data processing: secure sums of v, then v, then
a coalition with v, then the eavesdropper that knows the members' secrets.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from private_consensus.common.errors import InvalidInput, require

if TYPE_CHECKING:
    from .systems import LinearSystem, Round


@dataclass(frozen=True)
class Observer(ABC):
    """Observer of a part of the messages, with the data and noise of its members.

    Parameters
    ----------
    members : tuple of int
        Distinct agents, numbered from 0.
    """

    members: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        members = whole_agents(self.members, "observer.members")
        is_valid = len(set(members)) == len(members)
        require(is_valid, "observer.members", self.members, "each agent once")
        object.__setattr__(self, "members", tuple(sorted(members)))

    @property
    def receives_last_states(self) -> bool:
        """Return True if the members also know the states of all agents after the last round."""
        return False

    def check(self, n_agents: int) -> None:
        """Raise :class:`InvalidInput` for an agent outside the graph."""
        inside = all(0 <= member < n_agents for member in self.members)
        require(inside, "observer.members", self.members, f"agents 0 to {n_agents - 1}")
        require(
            len(self.members) < n_agents,
            "observer.members",
            self.members,
            "at least one agent outside the observer, as the target agent",
        )

    @abstractmethod
    def rows(self, round_: Round) -> np.ndarray:
        """Return the observed combinations of a round's messages, [rows, messages]."""

    def final_rows(self, system: LinearSystem) -> np.ndarray:
        """Return the observed combinations of the final models, [rows, agents]; none by default."""
        return np.zeros((0, system.n_agents))

    def unknown(self, round_: Round) -> np.ndarray:
        """Return True, per noise variable of a round, if the observer does not know it."""
        return np.logical_not(round_.owners[:, list(self.members)].any(1))

    def _others(self, round_: Round) -> np.ndarray:
        # A member's own messages are functions of its received messages and of its knowledge.
        return ~np.isin(round_.senders, self.members)


@dataclass(frozen=True)
class Eavesdropper(Observer):
    """Observer of every message.

    It also knows the secrets of ``members``, by default of no agent.
    """

    def rows(self, round_: Round) -> np.ndarray:
        return np.eye(len(round_.senders))[self._others(round_)]


@dataclass(frozen=True)
class Coalition(Observer):
    """Agents that combine the messages that they receive and the data and noise that they know.

    Parameters
    ----------
    last_states : bool
        True if the final states of all agents are revealed too. They determine any number of later
        rounds without noise.
    """

    last_states: bool = False

    @property
    def receives_last_states(self) -> bool:
        return self.last_states

    def final_rows(self, system: LinearSystem) -> np.ndarray:
        if not self.last_states:
            return super().final_rows(system)
        sent = system.noised_state and _outputs_messages(system)
        expected = "False, unless agents send their state and the output is the last message"
        require(sent, "observer.last_states", True, expected)
        observed = self.rows(system.rounds[-1])
        identity_rows = np.eye(system.n_agents)[~np.isin(np.arange(system.n_agents), self.members)]
        independent = independent_rows(np.vstack([observed, identity_rows]))
        return identity_rows[independent[independent >= len(observed)] - len(observed)]

    def check(self, n_agents: int) -> None:
        super().check(n_agents)
        require(len(self.members) > 0, "observer.members", self.members, "at least one agent")

    def rows(self, round_: Round) -> np.ndarray:
        received = round_.receives[list(self.members)].any(0)
        return np.eye(len(round_.senders))[received & self._others(round_)]


@dataclass(frozen=True)
class SecureSums(Coalition):
    r"""Coalition whose members receive only weighted sums of messages.

    In a round member v receives :math:`\sum_j w_{vj} m_j`, one per message kind.

    Terms of the members themselves are known and are removed from the sum. Two members whose
    neighbourhoods differ in one agent know that agent's message. Linearly dependent rows are
    omitted, by exact arithmetic.
    """

    def rows(self, round_: Round) -> np.ndarray:
        weights = np.where(self._others(round_), round_.uses[list(self.members)], 0.0)
        if round_.kinds is not None:
            kinds = np.unique(round_.kinds)
            weights = np.vstack([np.where(round_.kinds == kind, weights, 0.0) for kind in kinds])
        return weights[independent_rows(weights)]


@dataclass(frozen=True)
class FinalModels(Observer):
    """Observer of models after the last round only.

    Parameters
    ----------
    of : tuple of int, optional
        Agents whose models are observed; all agents if not given.
    mean : bool
        True if only the mean of these models is observed.
    """

    of: tuple[int, ...] | None = None
    mean: bool = False

    def check(self, n_agents: int) -> None:
        super().check(n_agents)
        observed_agents = whole_agents(self.of, "observer.of") if self.of is not None else (0,)
        inside = len(observed_agents) > 0 and all(
            0 <= agent < n_agents for agent in observed_agents
        )
        require(inside, "observer.of", self.of, f"agents 0 to {n_agents - 1}, at least one")

    def rows(self, round_: Round) -> np.ndarray:
        return np.zeros((0, len(round_.senders)))

    def final_rows(self, system: LinearSystem) -> np.ndarray:
        rows = np.eye(system.n_agents)
        rows = rows if self.of is None else rows[list(self.of)]
        return rows.mean(0, keepdims=True) if self.mean else rows


def _outputs_messages(system: LinearSystem) -> bool:
    """Return True if the last models are the last messages."""
    message, output = system.rounds[-1].message_transition, system.output
    if output is None or output.shape[0] != message.shape[0]:
        return False
    identity = np.eye(*output.shape)
    return bool((np.asarray(csr_array(output).todense()) == identity).all())


def whole_agents(agents: Iterable[int], key: str) -> tuple[int, ...]:
    """Convert agents to a tuple of agent numbers.

    Parameters
    ----------
    agents : iterable of int
        Agents, numbered from 0.
    key : str
        Name of the parameter, for the error message.

    Returns
    -------
    tuple of int

    Raises
    ------
    InvalidInput
        If an entry is not an integer.
    """
    try:
        return tuple(operator.index(member) for member in agents)
    except TypeError:
        raise InvalidInput(key, agents, "whole numbers >= 0, the indices of agents") from None


def agent(v: int) -> Coalition:
    """Build the observer that is one agent, with its received messages and its own noise.

    Parameters
    ----------
    v : int
        The agent, numbered from 0.

    Returns
    -------
    Coalition
    """
    return Coalition((v,))


def secure_agent(v: int) -> SecureSums:
    """Build the observer that receives only the weighted sum over the neighbours of one agent.

    Parameters
    ----------
    v : int
        The agent, numbered from 0.

    Returns
    -------
    SecureSums
    """
    return SecureSums((v,))


def independent_rows(rows: np.ndarray) -> np.ndarray:
    """Return the indices of the first rows that span all rows, by exact rational arithmetic."""
    rows = np.ascontiguousarray(rows, dtype=float)
    return _independent(rows.tobytes(), rows.shape)


@lru_cache(maxsize=1024)
def _independent(content: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """Compute :func:`independent_rows`, cached because rounds and settings repeat the rows."""
    from .rational import rational

    rows = np.frombuffer(content).reshape(shape)
    pivots: list[tuple[int, np.ndarray]] = []
    indices = []
    for index, row in enumerate(rational(rows)):
        reduced = _reduced(row, pivots)
        nonzero = np.flatnonzero(reduced)
        if len(nonzero):
            pivots.append((nonzero[0], reduced * (Fraction(1) / reduced[nonzero[0]])))
            indices.append(index)
    independent = np.array(indices, dtype=int)
    independent.flags.writeable = False
    return independent


def _reduced(row: np.ndarray, pivots: Iterable[tuple[int, np.ndarray]]) -> np.ndarray:
    for column, pivot in pivots:
        if row[column]:
            row = row - pivot * row[column]
    return row
