"""Random streams by name: generators from a root seed, a purpose, a group and a run.

The key of a stream is ``(root, purpose, group, run, name)``. The random numbers do not depend on
the privacy budget, or on the number of runs, cores or iterations. Settings scale the same
standardized samples, so that comparisons between settings are paired.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from private_consensus.common.errors import arguments

PURPOSES = ("data", "graph", "noise", "sampling")

Law = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

UNIT_LAWS: dict[str, Law] = {
    "normal": lambda generator, shape: generator.standard_normal(shape),
    "laplace": lambda generator, shape: generator.laplace(size=shape),
    "uniform": lambda generator, shape: generator.random(shape),
}


def generator(root: int, *names: str | int) -> np.random.Generator:
    """Return the random generator of a root seed and a sequence of names."""
    digest = hashlib.sha256("\0".join(map(str, names)).encode()).digest()[:16]
    key = tuple(np.frombuffer(digest, "<u4").tolist())
    return np.random.default_rng(np.random.SeedSequence(root, spawn_key=key))


@dataclass(frozen=True)
class Streams(arguments.KnownKeywords):
    """Random streams of a block of Monte-Carlo runs.

    Parameters
    ----------
    root : int
        Root seed of all streams.
    runs : tuple of int
        Indices of the runs of this block. Axis 0 of all samples is the run.
    groups : mapping of str to str
        Pairing group for each purpose. Streams with equal groups and runs are identical.

    Raises
    ------
    InvalidInput
        With key ``streams.<field>``.
    """

    root: int
    runs: tuple[int, ...]
    groups: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self):
        arguments.whole("streams.root", self.root, 0)
        key, expected = "streams.runs", "whole numbers >= 0"
        runs = arguments.items(key, self.runs, (int, np.integer), expected)
        object.__setattr__(self, "runs", tuple(arguments.whole(key, run, 0) for run in runs))
        key, expected = "streams.groups", "a mapping from purposes to texts"
        arguments.instance(key, self.groups, Mapping, expected)
        for purpose, group in self.groups.items():
            arguments.choice(key, purpose, PURPOSES)
            arguments.text(f"{key}.{purpose}", group)

    def generators(self, purpose: str, name: str = "") -> list[np.random.Generator]:
        """Create one new generator per run; the purpose is one of :data:`PURPOSES`."""
        return [self._generator(purpose, run, name) for run in self.runs]

    def shared(self, purpose: str, name: str = "") -> np.random.Generator:
        """Create one new generator that all runs share."""
        return self._generator(purpose, "all runs", name)

    def _generator(self, purpose: str, run: int | str, name: str) -> np.random.Generator:
        arguments.choice("stream purpose", purpose, PURPOSES)
        return generator(self.root, purpose, self.groups.get(purpose, ""), run, name)

    def draw(
        self, purpose: str, law: str | Law, shape: tuple[int, ...], name: str = ""
    ) -> np.ndarray:
        """Sample standardized random variables for every run.

        Parameters
        ----------
        purpose : str
            One of :data:`PURPOSES`.
        law : str or callable
            Distribution: a key of :data:`UNIT_LAWS`, or a function of generator and shape.
        shape : tuple of int
            Shape per run.
        name : str, default ""
            Name of the stream.

        Returns
        -------
        ndarray, shape ``(runs, *shape)``
        """
        draw = UNIT_LAWS[arguments.choice("law", law, UNIT_LAWS)] if isinstance(law, str) else law
        return np.stack([draw(g, shape) for g in self.generators(purpose, name)])

    def sequence(
        self, purpose: str, law: str | Law, shape: tuple[int, ...], name: str = ""
    ) -> Iterator[np.ndarray]:
        """Sample the variables of :meth:`draw` for one iteration after the other, endlessly."""
        draw = UNIT_LAWS[arguments.choice("law", law, UNIT_LAWS)] if isinstance(law, str) else law
        generators = self.generators(purpose, name)
        # Several iterations are sampled per call, since each call has a constant cost. The numbers
        # are unchanged.
        chunk_size = max(1, min(256, 4096 // max(1, int(np.prod(shape)))))
        while True:
            chunk = np.stack([draw(g, (chunk_size, *shape)) for g in generators], axis=1)
            yield from chunk

    def counter_normals(self, name: str, shape: tuple[int, int]) -> Iterator[CounterNormals]:
        """Return standard normal noise of a counter-based stream, one item per iteration.

        The numbers are those that a compiled loop samples for the key of the stream, whose purpose
        is ``noise``. The shape is (agents, dimension).
        """
        keys, counter = keys_of(self, name), 0
        while True:
            yield CounterNormals(keys, counter, shape)
            counter += shape[0]


class CounterNormals(NamedTuple):
    """Standard normal noise of one iteration, computed when it is called.

    ``keys`` are [runs, 2] words, ``counter`` is that of the first agent.
    """

    keys: np.ndarray
    counter: int
    shape: tuple[int, int]

    def __call__(self) -> np.ndarray:
        """Return the noise, [runs, agents, dim]."""
        # Importing compiled code takes a second, which most commands do not need.
        from private_consensus.kernels.messages import normals_of

        return np.stack([normals_of(key, self.counter, self.shape) for key in self.keys])


def keys_of(streams: Streams, name: str = "") -> np.ndarray:
    """Sample the key of a counter-based random stream for each run: two 32-bit words, [runs, 2].

    The purpose of the stream is ``noise``.
    """
    generators = streams.generators("noise", name)
    return np.stack([g.integers(0, 2**32, size=2, dtype=np.uint32) for g in generators])
