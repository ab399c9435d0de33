"""Pairs of data sets that an audit tries, and the climb to the largest loss."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from inspect import signature
from itertools import count, cycle
from typing import Any, NamedTuple

import numpy as np

from private_consensus.common.errors import arguments
from private_consensus.core.networks import Network
from private_consensus.core.randomness import Streams

from .universes import STYLES, Background, Record, Universe, module_of, selected

KINDS = (
    "records", "attracted", "far", "climbed", "records", "path", "far", "climbed", "path",
)  # fmt: skip
"""Kinds of pairs in turn: extreme or random records; opposite records, next to records of the agent
that move its model; opposite records, at outputs far from 0; the best pair so far with moved
records; two neighbours on a path between data sets that differ in many records."""
ENDS = "own", "equal", "equal", "empty", "halves", "random"
"""Kinds of background at the second end of a path."""
FAR_MODEL, SMALL_ANGLE = 1e3, 0.05
"""Norm of models at which gradients have their largest norms, and half the angle between two rows
of nearly opposite gradients."""
MARGIN = 5.0
"""Product of a model and a row at which a gradient is close to its largest norm."""
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


class Proposal(NamedTuple):
    """Background, two records, and the agent and the index of the record that they replace."""

    background: Background
    first: Record
    second: Record
    agent: int
    index: int
    text: str
    push: Push | None = None


class Pair(NamedTuple):
    """Two neighbouring data sets, the attacked agent, and their description.

    ``number`` selects the noise. ``row`` is the index of the replaced record among those that
    sampled batches contain.
    """

    first: Any
    second: Any
    agent: int
    text: str
    number: int
    row: int | None = None
    proposal: Proposal | None = None

    @property
    def push(self) -> Push | None:
        """Vectors that are added to the noise."""
        return self.proposal and self.proposal.push


class Path(NamedTuple):
    """Data sets between two data sets that differ in the records of one agent, or of all agents.

    With equal outputs of all mechanisms, no observer may distinguish any two of them.
    """

    universe: Universe
    first: Background
    second: Background
    agents: range
    text: str
    number: int
    push: Push | None = None

    @property
    def records(self) -> int:
        """Number of records per agent."""
        return self.first[-1].shape[1]

    @property
    def length(self) -> int:
        """Number of records that differ."""
        return len(self.agents) * self.records

    def background(self, count: int) -> Background:
        """Return the first records of the second data set, followed by those of the first."""
        shape = self.first[-1].shape[:2]
        order = np.arange(np.prod(shape)).reshape(shape) - self.agents.start * self.records
        return selected(order < count, self.second, self.first)

    def between(self, count: int) -> Any:
        """Return the problem with the records of :meth:`background`."""
        return self.universe.problem_of(self.background(count))

    def place(self, count: int) -> tuple[int, int]:
        """Return the agent and the index of the record that is replaced next."""
        agent, index = divmod(count, self.records)
        return self.agents[agent], index


def has_series(problem: Any) -> bool:
    """Return True if a problem states its neighbours, or returns streams of data by iteration."""
    return hasattr(problem, "data") or hasattr(problem, "neighbours")


def streams_of(seed: int, number: int) -> Streams:
    """Return the random streams of a pair, which no literal seed reaches.

    Noise of an algorithm's own generator cannot equal that of its mechanisms.
    """
    digest = hashlib.sha256(f"noise of audits {seed}, pair {number}".encode()).digest()
    return Streams(int.from_bytes(digest[:16], "little"), (0,))


class Search:
    """Pairs of data sets: extreme and random records first, then a climb of the loss."""

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
        self.best: tuple[float, Proposal, int] | None = None
        self.universe: Any = None
        if not has_series(problem):
            self.universe = module_of(problem).UNIVERSE(problem)

    def pairs(self) -> Iterator[Pair | Path]:
        """Yield the pairs; the loss of each is reported to :meth:`reached` before the next."""
        if self.universe is None:
            yield from self._stated() if hasattr(self.problem, "neighbours") else self._measured()
            return
        agents, turns = self._agents(), defaultdict(count)
        extremes = cycle(self.universe.extremes())
        styles = (str(style) for _ in count() for style in self.rng.permutation(list(STYLES)))
        for number in range(self.count):
            kind = KINDS[number % len(KINDS)]
            turn = next(turns[kind])
            if kind == "path":
                yield self._path(next(agents), turn, number)
            elif kind == "climbed" and self.best is not None:
                _, proposal, noise = self.best
                yield self._pair(self._climbed(proposal), noise)
            else:
                is_random = next(turns["proposal"]) % 3 == 2
                records = self._random_records() if is_random else next(extremes)
                text = "random records" if is_random else "extreme records"
                proposal = self._proposal(records, text, next(agents), next(styles))
                yield self._pair(self._of_kind(kind, turn, proposal), number)

    def ends(self) -> Iterator[tuple[Any, Any, str]]:
        """Yield pairs of data sets, which differ in all records if possible, and their texts."""
        if self.universe is None:
            yield from ((pair.first, pair.second, pair.text) for pair in self.neighbours())
            return
        for number in range(self.count):
            path = self._path(None, number, number)
            yield path.between(0), path.between(path.length), path.text

    def neighbours(self) -> Iterator[Pair]:
        """Yield the pairs of neighbouring data sets."""
        return (pair for pair in self.pairs() if isinstance(pair, Pair))

    def reached(self, pair: Pair, ratio: float) -> None:
        """Report the ratio of cost and declared loss that a pair reached."""
        if pair.proposal is not None and (self.best is None or ratio > self.best[0]):
            self.best = ratio, pair.proposal, pair.number

    def neighbours_on(self, path: Path, count: int) -> Pair:
        """Return the neighbouring data sets of a path before and after a replaced record."""
        agent, index = path.place(count)
        first, second = (
            tuple(array[agent, index] for array in end) for end in (path.first, path.second)
        )
        background = path.background(count)
        proposal = Proposal(background, first, second, agent, index, path.text, path.push)
        return self._pair(proposal, path.number)

    def of_batch(self, pair: Pair, weights: np.ndarray | None) -> Pair:
        """Return the pair whose replaced record has the largest weight in a sampled batch.

        One of four pairs remains as it is, since a query may depend on records outside of a batch.
        """
        if weights is None or pair.proposal is None or pair.number % 4 == 1:
            return pair
        largest = weights.max(1)
        agent = pair.agent if largest[pair.agent] == largest.max() else int(largest.argmax())
        index = int(weights[agent].argmax())
        return self._pair(pair.proposal._replace(agent=agent, index=index), pair.number)

    def _pair(self, proposal: Proposal, number: int) -> Pair:
        universe, agent, index = self.universe, proposal.agent, proposal.index
        first, second = (
            universe.problem_of(
                universe.replaced(self._background(proposal, record), record, agent, index)
            )
            for record in (proposal.first, proposal.second)
        )
        row = None
        if self.algorithm.relation.unit == "record" and hasattr(first, "rows_of"):
            row = int(first.rows_of(0)[agent, index])
        return Pair(first, second, agent, proposal.text, number, row, proposal)

    def _background(self, proposal: Proposal, record: Record) -> Background:
        """Return the background; if all records of an agent may change, they are copies of one."""
        if self.algorithm.relation.unit != "agent":
            return proposal.background
        agents = np.arange(self.universe.n_agents)[:, None]
        copies = self.universe.copies(record)
        return selected(agents == proposal.agent, copies, proposal.background)

    def _agents(self) -> Iterator[int]:
        """Yield every agent, then more often those with unusual numbers of edges or records."""
        yield from range(self.universe.n_agents)
        sizes = np.stack([self.network.of_run(0).degrees, self.universe.counts])
        unusual = {int(i) for row in sizes if np.ptp(row) for i in (row.argmax(), row.argmin())}
        while True:
            for agent in self.rng.permutation(self.universe.n_agents):
                yield int(agent)
                if unusual and self.rng.random() < 0.5:
                    yield int(self.rng.choice(sorted(unusual)))

    def _random_records(self) -> tuple[Record, Record]:
        return self.universe.record(self.rng), self.universe.record(self.rng)

    def _proposal(
        self, records: tuple[Record, Record], text: str, agent: int, style: str
    ) -> Proposal:
        rng, universe = self.rng, self.universe
        if rng.random() < 0.5:
            records = records[::-1]
        index = int(rng.integers(universe.counts[agent])) if rng.random() < 0.5 else 0
        background = universe.background(style, records, agent, rng)
        text = f"{text} of agent {agent}, {style} other records"
        return Proposal(background, *records, agent, index, text)

    def _of_kind(self, kind: str, turn: int, proposal: Proposal) -> Proposal:
        """Return the proposal with opposite records, if the problem has them."""
        universe, agent, rng = self.universe, proposal.agent, self.rng
        if kind not in ("attracted", "far") or not universe.opposites(SMALL_ANGLE):
            return proposal
        if kind == "attracted":
            # A public start may be far from 0, too; then the angle decides which margins are large.
            is_any = turn % 3 == 2
            smallest = 1e-3 if is_any else SMALL_ANGLE
            angle = LARGEST_ANGLE * (smallest / LARGEST_ANGLE) ** float(rng.random())
            opposites = universe.opposites(angle)
            first, second, _, attracting = opposites[(turn + turn // 3) % len(opposites)]
            proposal = proposal._replace(first=first, second=second)
            if is_any:
                return proposal._replace(text=f"opposite records of agent {agent}")
            text = f"opposite records of agent {agent} next to records that attract its model"
            return proposal._replace(background=universe.copies(attracting), text=text)
        if turn % 4 == 2:
            # Margins of both records differ: a label or a row changes along the model.
            row = proposal.first[0]
            push = self._push(float(10 ** rng.uniform(-0.5, 3)) * row, agent, turn)
            return proposal._replace(text=f"{proposal.text}, outputs along its row", push=push)
        size = FAR_MODEL ** float(rng.uniform(1 / 3, 1)) if turn % 4 else FAR_MODEL
        angle = max(SMALL_ANGLE, MARGIN / size)
        if turn % 4 == 3:
            # Both margins are equal, and of any size.
            angle = float(rng.uniform(SMALL_ANGLE, 0.5))
            size = float(10 ** rng.uniform(-0.5, 1.5)) / angle
        opposites = universe.opposites(angle)
        first, second, direction, _ = opposites[(turn + turn // 4) % len(opposites)]
        proposal = proposal._replace(first=first, second=second)
        if style := ("", "mixed", "halves", "empty", "mixed")[turn % 5]:
            # The gradients of the other records are large, 0, or have the sum 0.
            far = [pair for pair in opposites if pair.direction is direction]
            records = far[rng.integers(len(far))][:2]
            background = universe.background(style, records, agent, rng)
            proposal = proposal._replace(background=background)
        text = f"opposite records of agent {agent}, outputs far from 0"
        return proposal._replace(text=text, push=self._push(size * direction, agent, turn))

    def _push(self, vector: np.ndarray, agent: int, turn: int) -> Push:
        """Return a vector of all agents, with the signs of a turn."""
        signs = np.full(self.universe.n_agents, (-1.0) ** (turn + turn // 2))
        if turn // 2 % 2:
            # With opposite signs, mixing changes the models of all agents.
            signs[np.arange(len(signs)) != agent] *= -1
        return Push(signs[:, None] * vector, turn // 3 % 3 != 2)

    def _path(self, agent: int | None, turn: int, number: int) -> Path:
        """Return a path between two data sets; in every second turn, at outputs far from 0.

        In two of four turns, all agents change their records, else one agent.
        """
        universe, rng = self.universe, self.rng
        extremes, opposites = universe.extremes(), universe.opposites(SMALL_ANGLE)
        records, push = extremes[turn // 4 % len(extremes)], None
        every = agent is None or turn % 4 in (0, 3)
        agent = int(rng.integers(universe.n_agents)) if agent is None else agent
        if turn % 2 and opposites:
            opposite = opposites[turn // 2 % len(opposites)]
            records = opposite.attracting if every else opposite.first, opposite.second
            size = FAR_MODEL ** float(rng.random()) if every else FAR_MODEL
            push = self._push(size * opposite.direction, agent, turn // 2)
        style = ENDS[turn % len(ENDS)]
        ends = [("equal", records), (style, records[::-1])]
        if rng.random() < 0.5:
            ends.reverse()
        first, second = (universe.background(*end, agent, rng) for end in ends)
        owner = "all agents"
        if not every:
            owner = f"agent {agent}"
            is_own = np.arange(universe.n_agents)[:, None] == agent
            environment = universe.background(str(rng.choice(ENDS)), records, agent, rng)
            first, second = (selected(is_own, end, environment) for end in (first, second))
        agents = range(universe.n_agents) if every else range(agent, agent + 1)
        text = f"between equal and {style} records of {owner}"
        return Path(universe, first, second, agents, text, number, push)

    def _climbed(self, proposal: Proposal) -> Proposal:
        """Return the best proposal so far with moved records or a changed background."""
        rng, universe, agent = self.rng, self.universe, proposal.agent
        size = float(10.0 ** rng.uniform(-2, 0))
        choice = rng.integers(5 if proposal.push else 4)
        background, push = proposal.background, proposal.push
        if choice == 0:
            proposal = proposal._replace(first=self._moved(proposal.first, size))
        elif choice == 1:
            proposal = proposal._replace(second=self._moved(proposal.second, size))
        elif choice == 2:
            background = universe.shortened(background, float(rng.choice([0.0, 1.0 - 0.5 * size])))
        elif choice == 3:
            # Some or all records of the agent become copies of another record.
            is_changed = np.zeros(background[-1].shape[:2], bool)
            is_changed[agent] = rng.random(is_changed.shape[1]) < rng.choice([2 * size, 1.0])
            background = selected(is_changed, universe.copies(self._extreme()), background)
        elif push is not None:
            push = push._replace(vectors=push.vectors * float(10.0 ** rng.uniform(-0.5, 0.5)))
        text = f"records of agent {agent} by local search"
        return proposal._replace(background=background, text=text, push=push)

    def _moved(self, record: Record, size: float) -> Record:
        """Return a record at a distance from a record, or an unrelated extreme record."""
        is_jump = self.rng.random() < 0.3
        return self._extreme() if is_jump else self.universe.moved(record, size, self.rng)

    def _extreme(self) -> Record:
        pairs = [*self.universe.extremes(), *self.universe.opposites(SMALL_ANGLE)]
        return pairs[self.rng.integers(len(pairs))][self.rng.integers(2)]

    def _measured(self) -> Iterator[Pair]:
        """Yield pairs of streams of measurements."""
        unit, change = self.algorithm.relation.unit, getattr(self.algorithm, "largest_change", None)
        expected = "an attribute: the largest change of a measurement in the l1 norm"
        change = arguments.number("algorithm.largest_change", change, expected)
        measured = module_of(self.problem).measurements
        moved = measured(self.problem, change, unit, self.rng, self.horizon)
        for number in range(self.count):
            first, second, agent, text = next(moved)
            yield Pair(first, second, agent, text, number)

    def _stated(self) -> Iterator[Pair]:
        """Yield the pairs that the problem states by a method ``neighbours``."""
        stated, numbers = self.problem.neighbours, count()
        for agent in range(min(self.count, self.network.n_agents)):
            options = {"agent": agent} if "agent" in signature(stated).parameters else {}
            if not options and agent:
                return
            for (first, second), _ in stated(self.network, **options):
                for pair in ((first, second), (second, first)):
                    text = "neighbours that the problem states"
                    yield Pair(*pair, agent if options else 0, text, next(numbers))
