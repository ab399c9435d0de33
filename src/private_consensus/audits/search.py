"""Pairs of data sets that an audit tries, and the climb to the largest loss."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from inspect import signature
from itertools import chain, cycle, repeat
from typing import Any, NamedTuple

import numpy as np

from private_consensus.core.networks import Network
from private_consensus.core.randomness import Streams
from private_consensus.privacy.mechanism_sampled import OnBatches

from .universes import STYLES, Background, Record, Universe, module_of, selected

KINDS = (
    "records", "attracted", "far", "climbed", "records", "distant", "far", "climbed",
)  # fmt: skip
"""Kinds of pairs in turn: extreme or random records; opposite records, next to records of the agent
that move its model; opposite records, at outputs far from 0; the best pair so far with moved
records; two data sets that differ in all records."""
FAR_MODEL, SMALL_ANGLE = 1e3, 0.05
"""Norm of models at which gradients have their largest norms, and half the angle between two rows
of nearly opposite gradients."""
LARGEST_ANGLE = 0.8
"""Half the largest angle between two rows whose gradients the agent's other records make large."""


class Push(NamedTuple):
    """Vectors [agents, dim] that are added to the noise of an execution, so that models are large.

    With alternating signs, sums of earlier outputs change their signs in each iteration.
    """

    vectors: np.ndarray
    alternates: bool

    def at(self, t: int) -> np.ndarray:
        """Return the vectors of iteration t."""
        sign = (-1) ** t * (1 if t == 1 else 2) if self.alternates else 1
        return sign * self.vectors


class Pair(NamedTuple):
    """Two neighbouring data sets, the attacked agent, and their description.

    ``row`` is the index of the replaced record among those that sampled batches contain.
    """

    first: Any
    second: Any
    agent: int
    text: str
    row: int | None = None
    proposal: Any = None
    push: Push | None = None


class Distant(NamedTuple):
    """Two data sets that differ in all records, and those between them.

    With equal outputs of all mechanisms, no observer may distinguish any two data sets.
    """

    universe: Universe
    first: Background
    second: Background
    text: str
    push: Push | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of agents and of records per agent."""
        return self.first[0].shape[:2]

    def between(self, count: int) -> Any:
        """Return the problem with the first records of the second data set, else of the first."""
        index = np.arange(np.prod(self.shape)).reshape(self.shape)
        return self.universe.problem_of(selected(index < count, self.second, self.first))


class Proposal(NamedTuple):
    """Background, the two records, the attacked agent and the index of its record."""

    background: Background
    first: Record
    second: Record
    agent: int
    index: int
    text: str


def has_streams(problem: Any) -> bool:
    """Return True if the private data of a problem are streams, which it returns by iteration."""
    return hasattr(problem, "data")


def streams_of(seed: int, number: int) -> Streams:
    """Return the random streams of a pair, which no literal seed reaches.

    Noise of an algorithm's own generator cannot equal that of its mechanisms.
    """
    digest = hashlib.sha256(f"noise of audits {seed}, pair {number}".encode()).digest()
    return Streams(int.from_bytes(digest[:16], "little"), (0,))


class Search:
    """Proposals of pairs: extreme and random records first, then a climb of the loss.

    Parameters
    ----------
    algorithm : Algorithm
        Audited algorithm.
    problem : Problem
        Problem of the audited execution.
    network : Network
        Communication graph.
    horizon : int
        Number of iterations.
    pairs : int
        Number of pairs.
    seed : int
        Seed of the proposals.
    """

    def __init__(
        self,
        algorithm: Any,
        problem: Any,
        network: Network,
        horizon: int,
        pairs: int,
        seed: int,
    ):
        self.algorithm, self.problem, self.network = algorithm, problem, network
        self.horizon, self.count, self.seed = horizon, pairs, seed
        declared = algorithm.mechanisms(problem, network, horizon)
        self.sampled = [m for m in declared.values() if isinstance(m, OnBatches)]
        self.rng = np.random.default_rng([seed, 0xA0D17])
        self.best: tuple[float, Proposal] | None = None

    def pairs(self) -> Iterator[Pair | Distant]:
        """Yield the pairs; the loss of each is reported to :meth:`reached` before the next."""
        if has_streams(self.problem):
            change = float(self.algorithm.largest_change)
            moved = module_of(self.problem).measurements(
                self.problem, change, self.algorithm.relation.unit, self.rng, self.horizon
            )
            for _ in range(self.count):
                yield Pair(*next(moved))
            return
        universe = self.universe()
        if universe is None:
            yield from self._stated()
            return
        proposals = self._proposals(universe)
        for number in range(self.count):
            turn, place = divmod(number, len(KINDS))
            pair = self._of_kind(KINDS[place], 2 * turn + place // 4, universe, proposals)
            if self.sampled and isinstance(pair, Pair) and number % 2 == 0:
                agent, index = self._in_batch(number)
                proposal = pair.proposal._replace(agent=agent, index=index)
                pair = self._pair(universe, proposal)._replace(push=pair.push)
            yield pair

    def universe(self) -> Universe | None:
        """Return the records that a guarantee covers; None for streams, or stated neighbours."""
        if has_streams(self.problem) or hasattr(self.problem, "neighbours"):
            return None
        return module_of(self.problem).UNIVERSE(self.problem)

    def ends(self) -> Iterator[tuple[Any, Any, str]]:
        """Yield pairs of data sets, which differ in all records if possible, and their texts."""
        universe = self.universe()
        if universe is None:
            yield from ((pair.first, pair.second, pair.text) for pair in self.neighbours())
            return
        for number in range(self.count):
            pair = self._distant(universe, number)
            yield pair.between(0), pair.between(int(np.prod(pair.shape))), pair.text

    def neighbours(self) -> Iterator[Pair]:
        """Yield the pairs of neighbouring data sets."""
        return (pair for pair in self.pairs() if isinstance(pair, Pair))

    def _of_kind(
        self, kind: str, number: int, universe: Universe, proposals: Iterator[Proposal]
    ) -> Pair | Distant:
        if kind == "distant":
            return self._distant(universe, number // 2)
        if kind == "climbed" and self.best is not None:
            return self._pair(universe, self._climbed(universe, self.best[1]))
        if kind == "far" and (opposites := universe.opposites(SMALL_ANGLE)):
            return self._far_pair(universe, next(proposals), opposites, number)
        if kind == "attracted" and universe.opposites(SMALL_ANGLE):
            return self._pair(universe, self._attracted(universe, next(proposals), number // 2))
        return self._pair(universe, next(proposals))

    def _in_batch(self, number: int) -> tuple[int, int]:
        """Return the agent and the index of a record of the smallest batch that a pair samples."""
        mechanism, *_ = self.sampled
        units = mechanism.units(self.problem, streams_of(self.seed, number))
        used = [mechanism.public(next(units)) for _ in range(max(1, self.horizon - 1))]
        sizes = np.stack([batch.sizes[0, 0] for batch in used])
        t, agent = np.unravel_index(np.where(sizes > 0, sizes, np.inf).argmin(), sizes.shape)
        is_first = self.problem.rows_of(0)[agent] == used[t].rows[0, agent, 0]
        return int(agent), int(is_first.argmax())

    def _pair(self, universe: Universe, proposal: Proposal) -> Pair:
        agent, index = proposal.agent, proposal.index
        first, second = (
            universe.problem_of(
                universe.replaced(
                    self._background(universe, proposal, record), record, agent, index
                )
            )
            for record in (proposal.first, proposal.second)
        )
        row = None
        if self.algorithm.relation.unit == "record" and hasattr(first, "rows_of"):
            row = int(first.rows_of(0)[agent, index])
        return Pair(first, second, agent, proposal.text, row, proposal)

    def _far_pair(
        self, universe: Universe, proposal: Proposal, opposites: list, number: int
    ) -> Pair:
        """Return opposite records at models that are far from 0."""
        opposite = opposites[number % len(opposites)]
        text = f"opposite records of agent {proposal.agent}, outputs far from 0"
        proposal = proposal._replace(first=opposite.first, second=opposite.second, text=text)
        vector = FAR_MODEL * opposite.direction
        push = self._push(universe, vector, proposal.agent, number)
        return self._pair(universe, proposal)._replace(push=push)

    def _push(self, universe: Universe, vector: np.ndarray, agent: int, number: int) -> Push:
        """Return a vector of all agents, with the signs of a number."""
        signs = np.full(universe.n_agents, (-1.0) ** (number + number // 2))
        if number // 2 % 2:
            # With opposite signs, mixing changes the models of all agents.
            signs[np.arange(len(signs)) != agent] *= -1
        return Push(signs[:, None] * vector, number % 3 != 2)

    def _attracted(self, universe: Universe, proposal: Proposal, number: int) -> Proposal:
        """Return opposite records, next to records of the agent that attract its model."""
        opposites = universe.opposites(float(self.rng.uniform(SMALL_ANGLE, LARGEST_ANGLE)))
        opposite = opposites[number % len(opposites)]
        text = f"opposite records of agent {proposal.agent} next to records that attract its model"
        return proposal._replace(
            background=universe.copies(opposite.attracting),
            first=opposite.first, second=opposite.second, text=text,
        )  # fmt: skip

    def _distant(self, universe: Universe, number: int) -> Distant:
        """Return two data sets that differ in all records; in every second one, at far outputs."""
        agent = int(self.rng.integers(universe.n_agents))
        extremes, opposites = universe.extremes(), universe.opposites(SMALL_ANGLE)
        records, push = extremes[number // 2 % len(extremes)], None
        if number % 2 and opposites:
            opposite = opposites[number // 2 % len(opposites)]
            records = opposite.attracting, opposite.second
            size = FAR_MODEL ** float(self.rng.random())
            push = self._push(universe, size * opposite.direction, agent, number // 2)
        style = str(self.rng.choice(("empty", "opposed", "own", "random")))
        styles = ("equal", style) if number // 4 % 2 else (style, "equal")
        first, second = (universe.background(style, records, agent, self.rng) for style in styles)
        text = f"between equal and {style} records of all agents"
        return Distant(universe, first, second, text, push)

    def _background(self, universe: Universe, proposal: Proposal, record: Record) -> Background:
        """Return the background; if all records of an agent may change, they are copies of one."""
        if self.algorithm.relation.unit != "agent":
            return proposal.background
        agents = np.arange(universe.n_agents)[:, None]
        return selected(agents == proposal.agent, universe.copies(record), proposal.background)

    def reached(self, pair: Pair, ratio: float) -> None:
        """Report the ratio of cost and declared loss that a pair reached."""
        if pair.proposal is not None and (self.best is None or ratio > self.best[0]):
            self.best = ratio, pair.proposal

    def _stated(self) -> Iterator[Pair]:
        """Yield the pairs that the problem states by a method ``neighbours``."""
        stated = self.problem.neighbours
        for number in range(self.count):
            agent = number % self.network.n_agents
            options = {"agent": agent} if "agent" in signature(stated).parameters else {}
            if number >= self.network.n_agents or (not options and number):
                return
            for (first, second), _ in stated(self.network, **options):
                for pair in ((first, second), (second, first)):
                    yield Pair(*pair, agent if options else 0, "neighbours that the problem states")

    def _proposals(self, universe: Universe) -> Iterator[Proposal]:
        """Yield proposals without end: every agent, every style, extreme and random records."""
        rng, extremes = self.rng, cycle(universe.extremes())
        order = np.arange(universe.n_agents)
        agents = chain(order, (agent for _ in repeat(None) for agent in rng.permutation(order)))
        styles = (str(style) for _ in repeat(None) for style in rng.permutation(STYLES))
        number = 0
        while True:
            if number % 3 == 2:
                records, text = (universe.record(rng), universe.record(rng)), "random records"
            else:
                records, text = next(extremes), "extreme records"
            if rng.random() < 0.5:
                records = records[::-1]
            agent, style = int(next(agents)), next(styles)
            index = int(rng.integers(universe.counts[agent])) if number % 2 else 0
            background = universe.background(style, records, agent, rng)
            described = f"{text} of agent {agent}, {style} other records"
            yield Proposal(background, *records, agent, index, described)
            number += 1

    def _climbed(self, universe: Universe, proposal: Proposal) -> Proposal:
        """Return the best proposal so far with moved records or a moved background."""
        rng, size = self.rng, float(10.0 ** self.rng.uniform(-2, 0))
        choice = rng.integers(3)
        if choice == 0:
            proposal = proposal._replace(first=universe.moved(proposal.first, size, rng))
        elif choice == 1:
            proposal = proposal._replace(second=universe.moved(proposal.second, size, rng))
        else:
            background = universe.shortened(proposal.background, 1.0 - 0.5 * size)
            proposal = proposal._replace(background=background)
        return proposal._replace(text=f"records of agent {proposal.agent} by local search")
