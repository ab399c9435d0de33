"""Neighbouring data sets with extreme records, chosen by an attacker, with the sizes of a problem.

An audit may choose any data that the guarantee covers. The number, weight and norm of records, the
ridge and the dimension stay unchanged. One record of one agent is replaced. A small problem
keeps its other records. In a large problem the other records are empty, so that only the noise
hides the replaced record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import singledispatch
from inspect import signature
from typing import Any

import numpy as np

from private_consensus.common.errors import InvalidInput, require
from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.networks import Network, metropolis_mixing
from private_consensus.core.problems.fair_classification import FairLogisticRegression
from private_consensus.core.problems.lasso import Lasso
from private_consensus.core.problems.linear_observation import LinearObservation
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.problems.perceptron import Perceptron

from .few_records import FewRecords
from .few_responses import FewResponses
from .finders import (
    REPLACED,
    Attack,
    FairUniverse,
    LogisticUniverse,
    Pair,
    PerceptronUniverse,
    Record,
)

CROWD = 2000
"""Number of records of a fair classification; their covariance exceeds that of one record."""
SMALL = 20_000
"""Largest number of features in all records for which a problem keeps its other records."""
ANGLES = (0.3, 0.6, 0.9)
"""Angles of two rows to the direction of all other records, in units of a right angle."""


def attacks(
    problem: Any,
    network: Network,
    algorithm: Algorithm | None,
    *,
    nearby: bool,
    agents: Sequence[int] | None = None,
    compressed: bool = True,
) -> Iterator[Attack]:
    """Yield neighbouring data sets with extreme records, with the sizes of ``problem``.

    Parameters
    ----------
    problem, network
        Problem and graph of the audited algorithm.
    algorithm : Algorithm or None
        Audited algorithm; linear observations require its largest change of a measurement. If its
        relation hides a stream, all measurements of the agent differ.
    nearby : bool
        Whether to keep only the attacked agent and its neighbours, since the agent's noise depends
        on no other agent. The attacked agent is then agent 0 of ``Attack.network``.
    agents : sequence of int, optional
        Agents of ``network`` to attack, in order. Default: agent 0; with ``nearby`` the agent with
        the fewest neighbours; for linear observations the agent whose matrix has the largest row.
    compressed : bool, default True
        Whether repeated records may be stored once with a count. Code from outside of this package
        may read the rows of a problem, so its audits pass False.

    Raises
    ------
    InvalidInput
        For a problem that states no neighbours, or an agent that the network does not have.
    """
    for graph, agent in _located(problem, network, agents, nearby):
        yield from _attacks_on(
            problem, graph, agent, algorithm=algorithm, nearby=nearby, compressed=compressed
        )


@singledispatch
def _attacks_on(problem: Any, graph: Network, agent: int, **_: Any) -> Iterator[Attack]:
    """Yield the pairs of an agent of a graph that the problem itself states."""
    neighbours = getattr(problem, "neighbours", None)
    if neighbours is None:
        expected = "a problem of the library, or one with a method neighbours(network)"
        raise InvalidInput("audit.problem", type(problem).__name__, expected)
    if "agent" in signature(neighbours).parameters:
        pairs = neighbours(graph, agent=agent)
    else:
        pairs = neighbours(graph) if agent == 0 else ()
    for pair, direction in pairs:
        yield Attack(pair, graph, np.asarray(direction, float), agent)


def _attacked(network: Network, agents: Sequence[int] | None) -> list[int]:
    """Return the agents to attack; agent 0 by default."""
    selected = [0] if agents is None else [int(agent) for agent in agents]
    for agent in selected:
        expected = f"agents 0 to {network.n_agents - 1}"
        require(0 <= agent < network.n_agents, "audit.agents", agent, expected)
    return selected


def _located(
    problem: Any, network: Network, agents: Sequence[int] | None, nearby: bool
) -> list[tuple[Network, Any]]:
    """Return, for each attacked agent, the graph to execute on and the agent's index in it.

    The index is None for the default agent of linear observations.
    """
    if nearby and isinstance(problem, LogisticRegression | Lasso | MeanEstimation):
        centres = [None] if agents is None else _attacked(network, agents)
        return [(around(network, centre), 0) for centre in centres]
    if agents is None and isinstance(problem, LinearObservation):
        return [(network, None)]
    return [(network, agent) for agent in _attacked(network, agents)]


@_attacks_on.register
def _(
    problem: LogisticRegression, graph: Network, agent: int, *, nearby, compressed, **_: Any
) -> Iterator[Attack]:
    """Yield pairs of labels, and pairs of rows.

    A replaced label changes the gradient by exactly w z at every point. Two rows at an angle to all
    other records change the gradient by up to 2w at the iterate to which these records lead.
    """
    dim = problem.dim
    diagonal = np.full(dim, dim**-0.5)
    universe = LogisticUniverse(problem)
    negative = universe.negative
    labels = (diagonal, 1.0), (diagonal, negative)
    count = graph.n_agents
    small = count * problem.records * dim <= SMALL
    if not nearby and (small or not compressed):
        pair = universe.problems(Pair(universe.own_records(), *labels, "label"), agent)
        yield Attack(pair, graph, diagonal, agent, "label")
    else:
        pair = _few(problem, count, labels, None, agent, compressed)
        yield Attack(pair, graph, diagonal, agent, "label, others empty")
    if dim < 2 or negative == 0.0 or problem.nonnegative:
        return
    push, across = np.eye(dim)[0], np.eye(dim)[1]
    for angle in ANGLES:
        along, aside = np.cos(angle * np.pi / 2), np.sin(angle * np.pi / 2)
        rows = [(-along * push + side * aside * across, 1.0) for side in (1.0, -1.0)]
        pair = _few(problem, count, rows, push, agent, compressed)
        yield Attack(pair, graph, across, agent, f"rows at {angle:g}")


def _few(
    problem: LogisticRegression,
    count: int,
    records: Sequence[Record],
    push: np.ndarray | None,
    agent: int,
    compressed: bool,
) -> tuple[Any, Any]:
    """Build ``count`` agents whose other records all equal ``push``, or are rows of zeros."""
    shape = count, problem.records if not compressed else 1 + (push is not None)

    def holding(row, label) -> LogisticRegression:
        features, labels = np.zeros((*shape, problem.dim)), np.ones(shape)
        if push is not None:
            features[:, 1:] = push
        features[agent, 0], labels[agent, 0] = row, label
        arrays: dict[str, Any] = {
            "features": features, "labels": labels,
            "test_features": features[agent], "test_labels": labels[agent], "sizes": None,
        }  # fmt: skip
        if not compressed:
            return replace(problem, **arrays)
        counts = np.array([1.0] if push is None else [1.0, problem.records - 1.0])
        constants = {f.name: getattr(problem, f.name) for f in fields(LogisticRegression)}
        return FewRecords(**(constants | arrays), counts=counts, total=problem.records)

    first, second = (holding(*record) for record in records)
    return first, second


@_attacks_on.register
def _(problem: Lasso, graph: Network, agent: int, *, compressed, **_: Any) -> Iterator[Attack]:
    """Yield a pair of distant responses, where Huber's loss has its largest gradients.

    Gradients of squared loss have no bound; the gradients of its responses at 0 have norm 1. The
    row is a unit vector; other records have no features.
    """
    far = 1e3 if np.isfinite(problem.gradient_bound) else 0.5
    shape = 1, graph.n_agents, 1 if compressed else problem.records
    features = np.zeros((*shape, problem.dim))
    features[0, agent, 0, 0] = min(1.0, problem.row_bound)

    def holding(response: float) -> Lasso:
        responses = np.zeros(shape)
        responses[0, agent, 0] = response
        data: dict[str, Any] = {"features": features, "responses": responses}
        if not compressed:
            return replace(problem, **data)
        constants = {f.name: getattr(problem, f.name) for f in fields(Lasso)}
        return FewResponses(**(constants | data), total=problem.records, agent=agent)

    yield Attack((holding(far), holding(-far)), graph, np.eye(problem.dim)[0], agent)


@_attacks_on.register
def _(problem: MeanEstimation, graph: Network, agent: int, *, nearby, **_: Any) -> Iterator[Attack]:
    """Yield a pair of records in opposite corners of the box; the other records stay."""
    dim = problem.dim
    means = np.zeros((1, graph.n_agents, dim)) if nearby else np.array(problem.means[:1])
    means[0, agent] *= (problem.records - 1) / problem.records

    def holding(record: float) -> MeanEstimation:
        moved = means.copy()
        moved[0, agent] += record / problem.records
        return replace(problem, means=moved)

    pair = holding(problem.box), holding(-problem.box)
    yield Attack(pair, graph, np.full(dim, dim**-0.5), agent)


@dataclass(frozen=True)
class Measured(LinearObservation):
    """Observations without observation noise; measurements of an agent are changed by ``moved``.

    ``at`` is the time of the changed measurement; None for all times. The changed number is that
    with the largest row of the matrix.
    """

    agent: int = 0
    at: int | None = 0
    moved: float = 0.0

    def data(self, t: float, unit: np.ndarray) -> np.ndarray:
        values = np.array(super().data(t, 0.0 * unit))
        if self.at in (None, t):
            row = np.abs(self.matrices(t)[self.agent]).sum(-1).argmax()
            values[..., self.agent, row] += self.moved
        return values


@_attacks_on.register
def _(
    problem: LinearObservation, graph: Network, agent: int | None, *, algorithm, **_: Any
) -> Iterator[Attack]:
    """Yield pairs of a measurement, or of all measurements, that differ by the largest change.

    The default agent is that whose matrix has the largest row.

    All agents stay, since each has its own matrices.
    """
    change: Any = None if algorithm is None else algorithm.largest_change
    expected = "an algorithm with a declared change of one measurement"
    require(change is not None, "largest_change", change, expected)
    constants = {f.name: getattr(problem, f.name) for f in fields(LinearObservation) if f.init}
    all_times = algorithm.relation.unit == "stream"
    for at in range(3):
        rows = np.abs(problem.matrices(at)).sum(-1)
        attacked = int(rows.max(-1).argmax()) if agent is None else agent
        row = int(rows[attacked].argmax())
        length = np.linalg.norm(problem.matrices(at)[attacked, row])
        if length == 0.0:
            continue
        first, second = (
            Measured(**constants, agent=attacked, at=None if all_times else at, moved=moved)
            for moved in (0.0, float(change))
        )
        direction = problem.matrices(at)[attacked, row] / length
        name = "all measurements" if all_times else f"measurement at {at}"
        yield Attack((first, second), graph, direction, attacked, name)
        if all_times:
            return


@_attacks_on.register
def _(
    problem: FairLogisticRegression, graph: Network, agent: int, *, nearby, **_: Any
) -> Iterator[Attack]:
    """Yield a pair of records with different rows and labels and the same protected attribute.

    The record is a training row of the first run, or one of many records whose covariance with
    the attribute is large.
    """
    unit = np.eye(problem.dim)
    first, second = unit[2 % problem.dim], unit[3 % problem.dim]
    if nearby:
        problem = FairLogisticRegression(*_crowd(problem.dim), problem.columns)
    universe = FairUniverse(problem)
    pair = Pair(universe.own_records(), (first, 1), (second, 0), "row and label")
    yield Attack(universe.problems(pair, agent), graph, first - second, agent)


def _crowd(dim: int) -> tuple[np.ndarray, ...]:
    """Return rows, labels, protected attributes and test rows of :data:`CROWD` records."""
    protected = np.arange(CROWD) % 2
    return np.eye(dim)[protected], np.arange(CROWD) // 2 % 2, protected, np.array([[CROWD - 1]])


@_attacks_on.register
def _(problem: Perceptron, graph: Network, agent: int, **_: Any) -> Iterator[Attack]:
    """Yield a pair of bright images, of the first and the last class, as first record."""
    universe = PerceptronUniverse(problem)
    pair = next(universe.record_pairs())
    yield universe.attack(pair._replace(name=REPLACED), graph, agent)


def one_graph(network: Network) -> Network:
    """Return the graph of the first run."""
    return network.of_run(0)


def around(network: Network, agent: int | None = None) -> Network:
    """Return an agent, its neighbours and the edges among them; the agent becomes agent 0.

    The default is the agent with the fewest neighbours, because a penalty grows with their number
    and hides a record.
    """
    graph = one_graph(network)
    centre = int(graph.degrees.argmin()) if agent is None else agent
    inner = graph.links_among([centre, *graph.neighbours_of(centre)])
    return Network(inner, metropolis_mixing(inner))
