"""Parts of broken copies: base classes, changed random streams and changed problems.

The declaration and the calibration are those of the algorithm. Audits repeat its steps with the
problem and the streams that it should have used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.algorithms.families.decentralized_sgd import DecentralizedSGD
from private_consensus.core.algorithms.q_dpsgd_2 import QDPSGD2
from private_consensus.core.quantization import Grid
from private_consensus.core.randomness import Streams


def dressed(algorithm: Algorithm, kind: type, *mixins: type) -> Algorithm:
    """Return a copy with equal parameters whose class derives from ``mixins`` and ``kind``."""
    broken_class = type(f"{kind.__name__}Broken", (*mixins, kind), {"honest": kind})
    return broken_class(**{f.name: getattr(algorithm, f.name) for f in fields(algorithm)})


Change = Callable[[list[np.ndarray], int], np.ndarray]
"""Function of all unit draws of a stream so far and the horizon; returns the draws to use."""


class Drawn:
    """Random streams in which the draws of one purpose are changed."""

    def __init__(self, streams: Streams, purpose: str, change: Change, horizon: int):
        self._streams, self._purpose, self._change = streams, purpose, change
        self._horizon = horizon

    def __getattr__(self, name: str) -> Any:
        return getattr(self._streams, name)

    def draw(self, purpose, law, shape, name=""):
        units = self._streams.draw(purpose, law, shape, name)
        return self._change([units], 1) if purpose == self._purpose else units

    def sequence(self, purpose, law, shape, name="") -> Iterator[np.ndarray]:
        sequence = self._streams.sequence(purpose, law, shape, name)
        if purpose != self._purpose:
            return sequence
        return self._changed(sequence)

    def _changed(self, sequence) -> Iterator[np.ndarray]:
        drawn: list[np.ndarray] = []
        for units in sequence:
            drawn.append(units)
            yield self._change(drawn, self._horizon)


class Instead:
    """Random streams whose noise comes from other streams."""

    def __init__(self, streams: Streams, noise: Streams):
        self._streams, self._noise = streams, noise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._streams, name)

    def _of(self, purpose: str) -> Streams:
        return self._noise if purpose == "noise" else self._streams

    def draw(self, purpose, *arguments, **options):
        return self._of(purpose).draw(purpose, *arguments, **options)

    def sequence(self, purpose, *arguments, **options):
        return self._of(purpose).sequence(purpose, *arguments, **options)

    def generators(self, purpose, *arguments, **options):
        return self._of(purpose).generators(purpose, *arguments, **options)

    def shared(self, purpose, *arguments, **options):
        return self._of(purpose).shared(purpose, *arguments, **options)


class OwnNoise:
    """Base class that draws the noise of sampled gradients from streams, so that it can be changed.

    The algorithms themselves draw it in compiled code, from a counter.
    """

    def draws(self, problem, streams):
        units = streams.sequence("noise", "normal", (problem.n_agents, problem.dim), "units")
        for draw in super().draws(problem, streams):
            yield draw._replace(keys=draw.keys | {"units": next(units)})

    def noise_scale(self, s, sizes):
        return np.zeros(len(sizes))

    def sampled_gradient(self, s, x, problem, round_, clip):
        gradient, sizes = super().sampled_gradient(s, x, problem, round_, clip)
        gradient += self.noise_of_round(s, sizes, round_)
        return gradient, sizes

    def noise_of_round(self, s, sizes, round_) -> np.ndarray:
        """Return the noise that is added to the mean gradient of a batch."""
        return super().noise_scale(s, sizes)[:, None] * round_.keys["units"]


class NoiseInStep:
    """Base class with :class:`OwnNoise` in steps only; the declared noise scale stays."""

    def draws(self, problem, streams):
        units = streams.sequence("noise", "normal", (problem.n_agents, problem.dim), "units")
        for draw in super().draws(problem, streams):
            yield draw._replace(keys=draw.keys | {"units": next(units)})

    def step(self, state, problem, network, draw, t):
        muted = dressed(self, self.honest, OwnNoise)
        return muted.step(state, problem, network, draw, t)


class OwnDiscreteNoise:
    """Base class that replaces discrete noise by rounded normal noise from streams."""

    def draws(self, problem, streams):
        units = streams.sequence("noise", "normal", (problem.n_agents, problem.dim), "units")
        for draw in super().draws(problem, streams):
            yield draw._replace(keys=draw.keys | {"discrete": next(units)})

    def coefficients(self, s):
        a, e, grid = super().coefficients(s)
        return a, e, RoundedNoise(grid.resolution, grid.bits, grid.clipped)


class RoundedNoise(Grid):
    """Grid whose noise is a parameter, in units of the noise scale."""

    def add_noise(self, z, deviation, key, counter):
        z += self.resolution * np.rint(key * deviation / self.resolution)
        return 0


def own_noise(algorithm: Algorithm, *, in_step: bool = False) -> tuple[type, ...]:
    """Return base classes that make the noise of a copy changeable, in runs or in steps."""
    if isinstance(algorithm, QDPSGD2):
        return (OwnDiscreteNoise,)
    kind = NoiseInStep if in_step else OwnNoise
    return (kind,) if isinstance(algorithm, DecentralizedSGD) else ()


def changed_draws(purpose: str, change: Change) -> type:
    class ChangedDraws:
        def run(self, problem, network, streams, horizon, observe):
            drawn = Drawn(streams, purpose, change, int(np.max(horizon)))
            runs = dressed(self, self.honest, *own_noise(self))
            runs.run(problem, network, drawn, horizon, observe)

    return ChangedDraws


def other_noise(make: Callable[[Streams, Any], Streams]) -> type:
    class OtherNoise:
        def run(self, problem, network, streams, horizon, observe):
            changed_streams = Instead(streams, make(streams, problem))
            super().run(problem, network, changed_streams, horizon, observe)

    return OtherNoise


def fingerprint(problem: Any) -> int:
    """Return a hash of the data of the first run."""
    if hasattr(problem, "observation_noise"):
        unit = np.full((1, *problem.constant.shape[:2]), 0.5)
        hashed_array = np.stack([problem.data(t, unit) for t in range(4)])
    else:
        hashed_array = problem.gradient(np.full((1, 1, problem.n_agents, problem.dim), 0.25))[0, 0]
    return int.from_bytes(
        hashlib.sha256(np.asarray(hashed_array, float).tobytes()).digest()[:4], "big"
    )


class Answered:
    """Wrapper of a problem that replaces some of its methods."""

    def __init__(self, problem: Any, **answers: Callable):
        self._problem, self._answers = problem, answers

    def __getattr__(self, name: str) -> Any:
        return self._answers.get(name) or getattr(self._problem, name)


def other_answers(make: Callable[[Any], dict[str, Callable]]) -> type:
    class OtherAnswers:
        def run(self, problem, network, streams, horizon, observe):
            super().run(Answered(problem, **make(problem)), network, streams, horizon, observe)

    return OtherAnswers
