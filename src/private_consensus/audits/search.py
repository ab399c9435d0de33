"""Pairs of neighbouring data sets that an audit tries, and the climb to the largest loss."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from itertools import cycle, repeat
from typing import Any, NamedTuple

import numpy as np

from private_consensus.core.networks import Network

from .universes import STYLES, Background, Record, Universe, module_of


class Pair(NamedTuple):
    """Two neighbouring data sets, the attacked agent, and their description.

    ``push`` [agents, dim] is added to the noise of the recorded execution, if any.
    """

    first: Any
    second: Any
    agent: int
    text: str
    proposal: Any = None
    push: np.ndarray | None = None


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
        self.horizon, self.count = horizon, pairs
        self.rng = np.random.default_rng([seed, 0xA0D17])
        self.best: tuple[float, Proposal] | None = None

    def pairs(self) -> Iterator[Pair]:
        """Yield the pairs; the loss of each is reported to :meth:`reached` before the next."""
        if has_streams(self.problem):
            change = float(self.algorithm.largest_change)
            moved = module_of(self.problem).measurements(
                self.problem, change, self.algorithm.relation.unit, self.rng, self.horizon
            )
            for _ in range(self.count):
                yield Pair(*next(moved))
            return
        if hasattr(self.problem, "neighbours"):
            yield from self._stated()
            return
        universe = module_of(self.problem).UNIVERSE(self.problem)
        proposals, opposites = self._proposals(universe), universe.opposites()
        ordinary = self.count - self.count // 4
        for number in range(self.count):
            if number >= ordinary and opposites:
                yield self._far_pair(universe, next(proposals), opposites, number - ordinary)
            elif number >= ordinary // 2 and self.best is not None and number % 2:
                yield self._pair(universe, self._climbed(universe, self.best[1]))
            else:
                yield self._pair(universe, next(proposals))

    def _pair(self, universe: Universe, proposal: Proposal) -> Pair:
        first, second = (
            universe.holding(
                self._background(universe, proposal, record),
                record,
                proposal.agent,
                proposal.index,
            )
            for record in (proposal.first, proposal.second)
        )
        return Pair(first, second, proposal.agent, proposal.text, proposal)

    def _far_pair(
        self, universe: Universe, proposal: Proposal, opposites: list, number: int
    ) -> Pair:
        """Return a pair for models that are far from 0, and the vectors that make them large.

        Two of three pairs have records with opposite gradients, the others those of the proposal
        between copies of both, so that statistics of the agent cross thresholds.
        """
        turn, remainder = divmod(number, 3)
        of_kind = turn if remainder == 2 else 2 * turn + remainder
        first, second, push = opposites[of_kind % len(opposites)]
        agent = proposal.agent
        if remainder == 2:
            style = str(self.rng.choice(("mixed", "isolated", "opposed")))
            text = f"records of agent {agent}, {style} other records"
            records = proposal.first, proposal.second
            background = universe.background(style, records, agent, self.rng)
            proposal = proposal._replace(background=background)
        else:
            text = f"opposite records of agent {agent}"
            proposal = proposal._replace(first=first, second=second)
        proposal = proposal._replace(text=f"{text}, outputs far from 0")
        signs = np.full(universe.n_agents, (-1.0) ** (of_kind + of_kind // len(opposites)))
        if turn % 2:
            # With opposite signs, mixing changes the models of all agents.
            signs[np.arange(len(signs)) != agent] *= -1
        return self._pair(universe, proposal)._replace(push=signs[:, None] * push)

    def _background(self, universe: Universe, proposal: Proposal, record: Record) -> Background:
        """Return the background; if all records of an agent may change, they are copies of one."""
        if self.algorithm.relation.unit != "agent":
            return proposal.background
        copies = universe.background("equal", (record, record), proposal.agent, self.rng)
        background = tuple(np.array(array) for array in proposal.background)
        for array, copied in zip(background, copies, strict=True):
            array[proposal.agent] = copied[proposal.agent]
        return background

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
        agents = cycle(range(universe.n_agents))
        styles = (str(style) for _ in repeat(None) for style in rng.permutation(STYLES))
        number = 0
        while True:
            if number % 3 == 2:
                records, text = (universe.record(rng), universe.record(rng)), "random records"
            else:
                records, text = next(extremes), "extreme records"
            if rng.random() < 0.5:
                records = records[::-1]
            agent, style = next(agents), next(styles)
            index = int(rng.integers(universe.count)) if number % 2 else 0
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
