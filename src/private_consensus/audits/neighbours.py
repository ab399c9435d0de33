"""Neighbouring data sets chosen by an attacker, in the shape of an experiment's own problem.

Whoever tests a guarantee may choose the data, as long as they are data that the guarantee is for:
weight, ridge, dimension, number and length of records stay as they are. One record of one agent is
replaced; all other records carry nothing, so that nothing hides it but the noise. Only the agent
and those who hear it are kept of a graph, since its noise depends on no one else.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from ..errors import InvalidInput
from ..networks import Network, metropolis_mixing
from ..problems.fair_classification import FairClassification
from ..problems.lasso import Lasso
from ..problems.linear_observation import LinearObservation
from ..problems.logistic_regression import LogisticRegression
from ..problems.mean_estimation import MeanEstimation

HALVINGS = 60
CROWD = 2000
"""Records of a fair classification whose covariance is to be large beside one record's."""


class Neighbours(NamedTuple):
    """Two data sets, the graph that they are used on, and the direction, [dim], in which their
    records differ."""

    pair: tuple[Any, Any]
    network: Network
    direction: np.ndarray


@singledispatch
def neighbours(problem: Any, network: Network, algorithm: Any) -> Neighbours:
    """Extreme neighbours in the shape of ``problem``.

    Raises
    ------
    InvalidInput
        For a problem that nobody has chosen neighbours for.
    """
    raise InvalidInput("audits.problem", type(problem).__name__, "a problem with known neighbours")


@dataclass(frozen=True, eq=False)
class OneRecord(LogisticRegression):
    """Agents with one record of length 1 and others of length 0, ``total`` in all; whoever has none
    has a row of zeros."""

    total: int = 1

    @property
    def smoothness(self) -> float:
        return self.weight * self.total / 4 + self.ridge

    def clipped_loss(self, x, bound):
        """Of records of length 0 it is ln 2."""
        others = np.minimum(np.log(2.0), np.atleast_1d(bound)[..., 0])
        return (super().clipped_loss(x, bound) + (self.total - 1) * others) / self.total

    def proximal(self, linear, penalty, centre, start, tolerance=None):
        r"""The minimiser differs from that without a record along the record only:
        :math:`x = \frac{D_ic - a}{D_i + \lambda} + sz`, where s falls to a root between 0 and
        :math:`\frac{w}{D_i + \lambda}`."""
        curvature = np.asarray(penalty) + self.ridge
        base = (penalty * centre - linear) / curvature
        row = self._signed[..., 0, :]
        margin = (base * row).sum(-1, keepdims=True)
        low, high = np.zeros_like(margin), self.weight / curvature * np.ones_like(margin)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            below = curvature * middle < self.weight * expit(-(margin + middle))
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return base + (low + high) / 2 * row


@neighbours.register
def _(problem: LogisticRegression, network: Network, algorithm: Any) -> Neighbours:
    """A record whose label changes: the gradient changes by exactly its row, at every point."""
    network, dim = around(network), problem.dim
    direction = np.full(dim, dim**-0.5)
    features = np.zeros((network.n_agents, 1, dim))
    features[0, 0] = direction
    negative = 0.0 if problem.labels.min() >= 0 else -1.0

    def labelled(label: float) -> OneRecord:
        labels = np.ones((network.n_agents, 1))
        labels[0, 0] = label
        constants = problem.weight, problem.ridge, problem.box, problem.records
        return OneRecord(features, labels, features[0], labels[0], *constants)

    return Neighbours((labelled(1.0), labelled(negative)), network, direction)


@neighbours.register
def _(problem: Lasso, network: Network, algorithm: Any) -> Neighbours:
    """A response far to one side or the other, where Huber's loss has its largest gradients; of
    squared loss, responses whose gradient at 0 is as long as the c1 that is assumed.

    Records without features add nothing, so that they are left out.
    """
    far = 1e3 if np.isfinite(problem.gradient_bound) else algorithm.c1 / 2
    network = around(network)
    shape = 1, network.n_agents, 1
    features = np.zeros((*shape, problem.dim))
    features[0, 0, 0, 0] = 1.0

    def responding(side: float) -> Lasso:
        responses = np.zeros(shape)
        responses[0, 0, 0] = side * far
        return replace(problem, features=features, responses=responses)

    return Neighbours((responding(1.0), responding(-1.0)), network, np.eye(problem.dim)[0])


@neighbours.register
def _(problem: MeanEstimation, network: Network, algorithm: Any) -> Neighbours:
    """A record in one corner of the box or in the opposite one."""
    network, dim = around(network), problem.dim

    def cornered(side: float) -> MeanEstimation:
        means = np.zeros((1, network.n_agents, dim))
        means[0, 0] = side * problem.box / problem.records
        return replace(problem, means=means)

    return Neighbours((cornered(1.0), cornered(-1.0)), network, np.full(dim, dim**-0.5))


@dataclass(frozen=True)
class Measured(LinearObservation):
    """Observations without noise of their own, one number of ``agent`` at time ``at`` moved."""

    agent: int = 0
    row: int = 0
    at: int = 0
    moved: float = 0.0

    def data(self, t, unit):
        found = np.array(super().data(t, 0.0 * unit))
        if t == self.at:
            found[..., self.agent, self.row] += self.moved
        return found


@neighbours.register
def _(problem: LinearObservation, network: Network, algorithm: Any) -> Neighbours:
    """The first measurement of the agent whose matrix has the largest row, moved by delta.

    All agents stay: matrices are their own.
    """
    rows = np.abs(problem.matrices(0)).sum(-1)
    agent, row = np.unravel_index(rows.argmax(), rows.shape)
    parts = {field.name: getattr(problem, field.name) for field in fields(problem)}

    def measured(moved: float) -> Measured:
        return Measured(**parts, agent=int(agent), row=int(row), moved=moved)

    direction = problem.matrices(0)[agent, row]
    pair = measured(0.0), measured(float(algorithm.delta))
    return Neighbours(pair, network, direction / np.linalg.norm(direction))


@neighbours.register
def _(problem: FairClassification, network: Network, algorithm: Any) -> Neighbours:
    """One record among many whose covariance with the protected attribute is large: it changes in
    its row and its label, and not in the attribute, whose mean is public."""
    unit = np.eye(problem.dim)
    protected = np.arange(CROWD) % 2
    rows, outcomes = unit[protected], np.arange(CROWD) // 2 % 2

    def replaced(column: int, label: int) -> FairClassification:
        features, labels = rows.copy(), outcomes.copy()
        features[0], labels[0] = unit[column], label
        last = np.array([[CROWD - 1]])
        return FairClassification(features, labels, protected, last, problem.columns)

    return Neighbours((replaced(2, 1), replaced(3, 0)), network, unit[2] - unit[3])


def around(network: Network) -> Network:
    """An agent with the fewest neighbours, as agent 0, these, and the links among them.

    Fewest, because a penalty grows with their number and hides a record.
    """
    adjacency = network.adjacency.reshape(-1, *network.adjacency.shape[-2:])[0]
    agent = int(adjacency.sum(-1).argmin())
    members = [agent, *np.flatnonzero(adjacency[agent])]
    inner = adjacency[np.ix_(members, members)]
    return Network(inner, metropolis_mixing(inner))
