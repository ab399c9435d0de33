"""Neighbouring data sets chosen by an attacker, in the shape of a problem.

Whoever tests a guarantee may choose the data, as long as they are data that the guarantee is for:
number, weight and length of records, ridge and dimension stay as they are. One record of one agent
is replaced. Where the problem is small, all other records are its own; where it is large they carry
nothing, so that nothing hides the record but the noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidInput
from ..networks import Network, metropolis_mixing
from ..problems.base import Problem
from ..problems.fair_classification import FairClassification
from ..problems.lasso import Lasso
from ..problems.linear_observation import LinearObservation
from ..problems.logistic_regression import LogisticRegression
from ..problems.mean_estimation import MeanEstimation
from ..problems.perceptron import CLASSES, Perceptron
from .few_records import FewRecords
from .few_responses import FewResponses

CROWD = 2000
"""Records of a fair classification whose covariance is to be large beside one record's."""
SMALL = 20_000
"""Numbers in all records together up to which a problem keeps its own other records."""
ANGLES = (0.3, 0.6, 0.9)
"""Of two rows to the direction in which all other records push, in units of a right angle."""


class Attack(NamedTuple):
    """Two data sets that differ in one record of one agent, the graph that they are used on, and
    the direction, [dim], in which the records differ."""

    pair: tuple[Any, Any]
    network: Network
    direction: np.ndarray
    agent: int = 0
    name: str = "replaced record"


@singledispatch
def attacks(
    problem: Any, network: Network, change: float | None, *, nearby: bool
) -> Iterator[Attack]:
    """Extreme neighbours in the shape of ``problem``.

    Parameters
    ----------
    change : float or None
        How far a measurement may move, of algorithms whose guarantee names that.
    nearby : bool
        Whether only an agent and those who hear it are kept of the graph, since its noise depends
        on no one else: for large settings of algorithms whose scales have been set before.

    Raises
    ------
    InvalidInput
        For a problem that states no neighbours.
    """
    own = getattr(problem, "neighbours", None)
    if own is None:
        expected = "a problem with known neighbours, or a method neighbours(network)"
        raise InvalidInput("audit.problem", type(problem).__name__, expected)
    for pair, direction in own(network):
        yield Attack(pair, network, np.asarray(direction, float))


@attacks.register
def _(problem: LogisticRegression, network: Network, change, *, nearby) -> Iterator[Attack]:
    """A label that changes, which moves the gradient by exactly w z at every point; and two rows
    that differ most where all other records have pushed the iterate to: there it moves by up to 2w.
    """
    network, dim = around(network) if nearby else network, problem.dim
    diagonal = np.full(dim, dim**-0.5)
    negative = 0.0 if problem.coding == "zero_one" else -1.0
    flipped = tuple((diagonal, label) for label in (1.0, negative))
    agents = network.n_agents
    if not nearby and agents * problem.records * dim <= SMALL:
        yield Attack(_replaced(problem, flipped), network, diagonal, name="label")
    else:
        few = _few(problem, agents, flipped, None)
        yield Attack(few, network, diagonal, name="label, others empty")
    if dim < 2 or negative == 0.0:
        return
    push, across = np.eye(dim)[0], np.eye(dim)[1]
    for angle in ANGLES:
        along, aside = np.cos(angle * np.pi / 2), np.sin(angle * np.pi / 2)
        rows = tuple((-along * push + side * aside * across, 1.0) for side in (1.0, -1.0))
        few = _few(problem, agents, rows, push)
        yield Attack(few, network, across, name=f"rows at {angle:g}")


def _replaced(problem: LogisticRegression, records) -> tuple[Any, Any]:
    """The first record of agent 0 replaced in the problem's own data, those of its first run."""
    features = problem.features.reshape(-1, *problem.features.shape[-3:])[0]
    labels = problem.labels.reshape(-1, *problem.labels.shape[-2:])[0]
    tests = problem.test_features.reshape(-1, *problem.test_features.shape[-2:])[0]
    answers = problem.test_labels.reshape(-1, problem.test_labels.shape[-1])[0]

    def holding(row, label) -> LogisticRegression:
        rows, signs = np.array(features, float), np.array(labels, float)
        rows[0, 0], signs[0, 0] = row, label
        return replace(
            problem, features=rows, labels=signs, test_features=tests, test_labels=answers
        )

    one, other = (holding(*record) for record in records)
    return one, other


def _few(problem: LogisticRegression, agents: int, records, push) -> tuple[Any, Any]:
    """Agents whose other records are all ``push``, or empty."""

    def holding(row, label) -> FewRecords:
        rows = [np.zeros((agents, problem.dim))]
        rows[0][0] = row
        counts = [1.0]
        if push is not None:
            rows.append(np.tile(push, (agents, 1)))
            counts.append(problem.records - 1.0)
        labels = np.ones((agents, len(rows)))
        labels[0, 0] = label
        features = np.stack(rows, axis=1)
        constants = problem.weight, problem.ridge, problem.box
        return FewRecords(
            features, labels, features[0], labels[0], *constants,
            coding=problem.coding, counts=np.array(counts), total=problem.records,
        )  # fmt: skip

    one, other = (holding(*record) for record in records)
    return one, other


@attacks.register
def _(problem: Lasso, network: Network, change, *, nearby) -> Iterator[Attack]:
    """A response far to one side or the other, where Huber's loss has its largest gradients; of
    squared loss, whose gradients have no bound, responses whose gradient at 0 has length 1.

    The row is a unit vector; other records have no features.
    """
    network = around(network) if nearby else network
    far = 1e3 if np.isfinite(problem.gradient_bound) else 0.5
    shape = 1, network.n_agents, 1
    features = np.zeros((*shape, problem.dim))
    features[0, 0, 0, 0] = 1.0
    constants = problem.weight, problem.penalty, problem.gradient_bound, problem.row_bound

    def responding(side: float) -> FewResponses:
        responses = np.zeros(shape)
        responses[0, 0, 0] = side * far
        return FewResponses(features, responses, *constants, total=problem.records)

    yield Attack((responding(1.0), responding(-1.0)), network, np.eye(problem.dim)[0])


@attacks.register
def _(problem: MeanEstimation, network: Network, change, *, nearby) -> Iterator[Attack]:
    """A record in one corner of the box or in the opposite one; all others are its own."""
    network, dim = around(network) if nearby else network, problem.dim
    means = None if nearby else np.array(problem.means[:1])

    def cornered(side: float) -> MeanEstimation:
        of_agents = np.zeros((1, network.n_agents, dim)) if means is None else means.copy()
        of_agents[0, 0] *= (problem.records - 1) / problem.records
        of_agents[0, 0] += side * problem.box / problem.records
        return replace(problem, means=of_agents)

    yield Attack((cornered(1.0), cornered(-1.0)), network, np.full(dim, dim**-0.5))


@dataclass(frozen=True)
class Measured(LinearObservation):
    """Observations without noise of their own, one number of ``agent`` at time ``at`` moved."""

    agent: int = 0
    row: int = 0
    at: int = 0
    moved: float = 0.0

    def data(self, t: float, unit: np.ndarray) -> np.ndarray:
        found = np.array(super().data(t, 0.0 * unit))
        if t == self.at:
            found[..., self.agent, self.row] += self.moved
        return found


@attacks.register
def _(problem: LinearObservation, network: Network, change, *, nearby) -> Iterator[Attack]:
    """A measurement of the agent whose matrix has the largest row, moved by ``change``.

    All agents stay: matrices are their own.
    """
    parts = {field.name: getattr(problem, field.name) for field in fields(problem)}
    for at in range(3):
        rows = np.abs(problem.matrices(at)).sum(-1)
        agent, row = map(int, np.unravel_index(rows.argmax(), rows.shape))
        one, other = (
            Measured(**parts, agent=agent, row=row, at=at, moved=moved)
            for moved in (0.0, float(change))
        )
        direction = problem.matrices(at)[agent, row]
        direction = direction / np.linalg.norm(direction)
        yield Attack((one, other), network, direction, agent, f"measurement at {at}")


@attacks.register
def _(problem: FairClassification, network: Network, change, *, nearby) -> Iterator[Attack]:
    """A record that changes in its row and its label, and not in the protected attribute, whose
    mean is public: a training row of the first run, or one among many whose covariance with that
    attribute is large."""
    unit = np.eye(problem.dim)
    first, second = 2 % problem.dim, 3 % problem.dim
    row, features, labels, protected, test = 0, *_crowd(problem.dim)
    if not nearby:
        features, labels, protected = problem.features, problem.labels, problem.protected
        test = problem.test[:1]
        row = int(np.setdiff1d(np.arange(len(features)), test)[0])

    def replaced(column: int, label: int) -> FairClassification:
        rows, outcomes = np.array(features, float), np.array(labels)
        rows[row], outcomes[row] = unit[column], label
        return FairClassification(rows, outcomes, protected, test, problem.columns)

    pair = replaced(first, 1), replaced(second, 0)
    yield Attack(pair, network, unit[first] - unit[second])


def _crowd(dim: int) -> tuple[np.ndarray, ...]:
    """Rows, labels, protected attribute and test rows."""
    protected = np.arange(CROWD) % 2
    return np.eye(dim)[protected], np.arange(CROWD) // 2 % 2, protected, np.array([[CROWD - 1]])


@attacks.register
def _(problem: Perceptron, network: Network, change, *, nearby) -> Iterator[Attack]:
    """The first record of agent 0 of the first run: a bright image of the first or last class."""
    row = int(problem.rows_of(0)[0, 0])

    def shown(label: int) -> Perceptron:
        features, labels = problem.features.copy(), problem.labels.copy()
        features[row], labels[row] = 1.0, label
        shares = problem.agent_rows[:1]
        return replace(problem, features=features, labels=labels, agent_rows=shares)

    direction = np.zeros(problem.dim)
    direction[-CLASSES], direction[-1] = 1.0, -1.0
    yield Attack((shown(0), shown(CLASSES - 1)), network, direction / np.sqrt(2.0))


@attacks.register
def _(problem: Problem, network: Network, change, *, nearby) -> Iterator[Attack]:
    yield from attacks.dispatch(object)(problem, network, change, nearby=nearby)


def one_graph(network: Network) -> Network:
    """The graph of the first run, where each run has its own."""
    return network.of_run(0)


def around(network: Network) -> Network:
    """An agent with the fewest neighbours, as agent 0, these, and the links among them.

    Fewest, because a penalty grows with their number and hides a record.
    """
    graph = one_graph(network)
    agent = int(graph.degrees.argmin())
    inner = graph.links_among([agent, *graph.neighbours_of(agent)])
    return Network(inner, metropolis_mixing(inner))
