"""Handlers: the meaning of ``release(name, query)`` and of all randomness in a step.

:class:`Running` adds the noise of the named streams: a run of the algorithm. :class:`Recording`
also keeps every release, and :class:`Replaying` returns the recorded outputs on other data. All
randomness that is not noise comes from the handler as well, so that a replay repeats it. An
algorithm receives a function, not the handler, and has no access to streams.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from typing import Any, Self

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy.mechanisms import Mechanism, Recorded

from .randomness import Streams, keys_of


class Leak(Exception):
    """A value reaches an observer beside the mechanisms."""


class Running:
    """Handler that adds noise: a run of the algorithm, with the horizon of each setting.

    The problem states the number of agents and the dimension.
    """

    def __init__(
        self,
        mechanisms: Mapping[str, Mechanism],
        problem: Any,
        streams: Streams,
        horizon: np.ndarray,
    ):
        require_own_streams(mechanisms)
        self.mechanisms, self.problem, self.streams = dict(mechanisms), problem, streams
        self.horizon, self.t = np.asarray(horizon), 0
        self.sequences: dict[Any, Iterator[Any]] = {}
        self.positions: dict[Any, int] = {}
        self.latest: dict[Any, Any] = {}
        self.memories: dict[str, Any] = {}
        for name, mechanism in mechanisms.items():
            self.memories[name] = mechanism.memory()
        self.released: set[str] = set()

    def begin(self, t: int) -> None:
        """Begin iteration t."""
        self.t, self.released = t, set()

    def function(self) -> Any:
        """Return the function that an algorithm receives, with its functions for randomness.

        Returns
        -------
        function
            ``release(name, query, where=None)`` returns the output of a mechanism, whose mask
            ``where`` selects settings and agents that release. ``release.random(name,
            distribution, shape, purpose)`` returns standardized random numbers of the iteration
            [runs, *shape]; ``release.once(...)`` returns random numbers of the run, and
            ``release.key(name)`` the keys of a compiled loop. ``release.noise(name)`` returns the
            unit noise of an output, for internal analyses. ``release.settings``,
            ``release.runs`` and ``release.horizon`` (per setting) describe the batch.
        """

        def release(name: str, query: Any, where: np.ndarray | None = None) -> Any:
            return self.release(name, query, where)

        function: Any = release
        function.random, function.once, function.key = self.random, self.once, self.key
        function.batch, function.noise = self.batch, self.noise
        function.settings, function.runs = len(self.horizon), len(self.streams.runs)
        function.horizon = self.horizon
        return function

    def select(self, mask: np.ndarray, mechanisms: Mapping[str, Mechanism]) -> Self:
        """Return the handler of selected settings, with their mechanisms, on the same streams."""
        selected = object.__new__(type(self))
        vars(selected).update(vars(self))
        selected.mechanisms, selected.horizon = dict(mechanisms), self.horizon[mask]
        selected.memories = {
            name: memory and {key: _select(value, mask) for key, value in memory.items()}
            for name, memory in self.memories.items()
        }
        return selected

    # Randomness.

    def draw(self, key: Any, make: Callable[[], Iterator[Any]]) -> Any:
        """Return the item of the current iteration of the sequence with a key."""
        if key not in self.sequences:
            self.sequences[key], self.positions[key] = make(), 0
        while self.positions[key] < max(self.t, 1):
            self.latest[key] = next(self.sequences[key])
            self.positions[key] += 1
        return self.latest[key]

    def random(
        self, name: str, distribution: Any, shape: tuple[int, ...], purpose: str = "sampling"
    ) -> np.ndarray:
        """Return standardized random numbers of the iteration that are not noise, [runs, *shape].

        The arguments are those of :meth:`.Streams.draw`.
        """
        if purpose == "noise":
            self.require_no_noise(name)
        sequence = self.streams.sequence
        return self.draw((purpose, name), lambda: sequence(purpose, distribution, shape, name))

    def once(
        self, name: str, distribution: Any, shape: tuple[int, ...], purpose: str = "data"
    ) -> np.ndarray:
        """Return standardized random numbers that are sampled once per run, [runs, *shape]."""
        if purpose == "noise":
            self.require_no_noise(name)
        return self.streams.draw(purpose, distribution, shape, name)

    def require_no_noise(self, name: str) -> None:
        """Refuse random numbers of a stream whose numbers a mechanism adds as noise."""
        for mechanism in self.mechanisms.values():
            if name in mechanism.noise_streams:
                raise Leak(f"iteration {self.t} reads the noise stream {name!r} of a mechanism")

    def key(self, name: str = "") -> np.ndarray:
        """Return the keys of a counter-based stream, [runs, 2], for a compiled loop."""
        return self.draw(("key", name), lambda: repeat(keys_of(self.streams, name)))

    def batch(self, name: str) -> Any:
        """Return the sampled batch of a mechanism in this iteration, which is public."""
        mechanism: Any = self.mechanisms[name]
        unit = self.draw(("noise", name), lambda: mechanism.units(self.problem, self.streams))
        return mechanism.public(unit)

    # Releases.

    def noise(self, name: str) -> np.ndarray:
        """Return the unit noise that explains the latest output of a mechanism.

        A replay returns the noise that gives the recorded output on its data, so that an output
        that depends on it is found.
        """
        return self.latest["noise", name]

    def release(self, name: str, query: Any, where: np.ndarray | None) -> Any:
        """Return the output of a mechanism."""
        mechanism, unit = self.prepare(name)
        return mechanism.output(query, unit, self.t)

    def prepare(self, name: str) -> tuple[Mechanism, Any]:
        """Return a mechanism and its unit noise of the iteration; refuse a second release."""
        mechanism = self.mechanisms.get(name)
        if mechanism is None:
            raise Leak(f"iteration {self.t} releases {name!r}, which is not declared")
        if self.t < 1:
            raise Leak(f"{name!r} is released before iteration 1, where no release is accounted")
        if name in self.released:
            raise Leak(f"iteration {self.t} releases {name!r} twice, but it is accounted once")
        if mechanism.times is not None and self.t not in mechanism.times:
            raise Leak(f"iteration {self.t} releases {name!r}, which is not declared for it")
        self.released.add(name)
        unit = self.draw(("noise", name), lambda: mechanism.units(self.problem, self.streams))
        memory = self.memories[name]
        return mechanism, unit if memory is None else (unit, memory)


def require_own_streams(mechanisms: Mapping[str, Mechanism]) -> None:
    """Refuse mechanisms that share a noise stream, and thereby their noise."""
    owners: dict[str, str] = {}
    for name, mechanism in mechanisms.items():
        for stream in mechanism.noise_streams:
            owner = owners.setdefault(stream, name)
            pair = f"{owner!r} and {name!r} with the noise stream {stream!r}"
            expected = "a stream of its own for each mechanism, e.g. stream='second'"
            require(owner == name, "mechanisms", pair, expected)


class Recording(Running):
    """Handler of a run that keeps every release, in order."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.releases: list[Recorded] = []

    def release(self, name, query, where):
        mechanism, unit = self.prepare(name)
        if reason := mechanism.unaccounted(unit):
            raise Leak(f"iteration {self.t}: {name!r} has {reason}")
        output = mechanism.output(query, unit, self.t)
        evidence = mechanism.evidence(query, unit, output, self.t)
        if where is not None:
            output = np.where(where, output, np.nan)
        self.releases.append(Recorded(name, self.t, evidence, unit, _copied(output), where))
        return _copied(output)


class Replaying(Running):
    """Handler that returns recorded outputs on other data.

    Attributes
    ----------
    costs : list of (str, int, ndarray, ndarray)
        For each release its name, iteration, cost and declared loss.
    """

    def __init__(self, *args: Any, releases: list[Recorded]):
        super().__init__(*args)
        self.recorded = iter(releases)
        self.costs: list[tuple[str, int, np.ndarray, np.ndarray]] = []
        self.changes: dict[str, list[np.ndarray]] = {}
        self.explained: dict[str, Callable[[], np.ndarray]] = {}

    def noise(self, name):
        return self.explained[name]()

    def release(self, name, query, where):
        mechanism, _ = self.prepare(name)
        recorded = next(self.recorded, None)
        if recorded is None or (recorded.name, recorded.t) != (name, self.t):
            text = "nothing" if recorded is None else f"{recorded.name!r}"
            raise Leak(f"iteration {self.t} releases {name!r} on one data set, {text} on the other")
        if not np.array_equal(np.asarray(where), np.asarray(recorded.where)):
            raise Leak(f"iteration {self.t}: the agents that release {name!r} depend on the data")
        cost = mechanism.cost(query, recorded, self.t, self.changes.setdefault(name, []))
        if where is not None:
            cost = np.where(where, cost, 0.0)
        self.costs.append((name, self.t, cost, mechanism.loss(self.t)))
        self.explained[name] = lambda: recorded.unit + mechanism.change(query, recorded, self.t)
        return _copied(mechanism.replay(query, recorded, self.t))


def _copied(output: Any) -> Any:
    """Return a copy of an output, which an algorithm may change in place."""
    if isinstance(output, Mapping):
        return {name: np.array(value) for name, value in output.items()}
    if isinstance(output, tuple):
        return tuple(np.array(value) for value in output)
    return np.array(output)


def _select(value: Any, mask: np.ndarray) -> Any:
    has_settings = np.ndim(value) > 0 and np.shape(value)[0] == len(mask)
    return value[mask] if has_settings else value
