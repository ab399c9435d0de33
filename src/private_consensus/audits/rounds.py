r"""Rounds of sampled gradients, heard message by message (dissertation 4.4 and 4.5).

Models change in place, one run after the other, so that a copy without noise has to start each
round from the same models. What agents send is their new model, of which others see a rounded or
sparsified part; in Q-DPSGD-2 it is the rounded model with discrete noise, which no state keeps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from ..algorithms.decentralized_sgd import DecentralizedSGD
from ..algorithms.q_dpsgd_1 import QDPSGD
from ..algorithms.q_dpsgd_2 import QDPSGD2
from ..algorithms.sdm_dsgd import SDMDSGD
from ..randomness import Streams, generator


@dataclass(frozen=True)
class Slopes:
    """Records whose gradients are the same at every model, [agents, records, dim]; ``allowed`` is
    how much longer than the clipping norm they may be."""

    slopes: np.ndarray
    allowed: float = 1.0

    @property
    def n_agents(self) -> int:
        return self.slopes.shape[0]

    @property
    def records(self) -> int:
        return self.slopes.shape[1]

    @property
    def dim(self) -> int:
        return self.slopes.shape[2]

    def initial(self, init: str, streams: Streams) -> np.ndarray:
        return np.zeros((len(streams.runs), 1, self.dim))

    def rows_of(self, run: int) -> np.ndarray:
        return np.arange(self.n_agents * self.records).reshape(self.n_agents, -1)

    def clipped_gradient(self, x, rows, sizes, clip, out):
        for agent, size in enumerate(sizes):
            own = self.slopes.reshape(-1, self.dim)[rows[agent, :size]]
            length = np.linalg.norm(own, axis=-1, keepdims=True)
            out[agent] = (own / np.maximum(1.0, length / (self.allowed * clip))).mean(0)
        return out


@dataclass(frozen=True, kw_only=True)
class Overheard(QDPSGD2):
    """Keeps the last message of each run, by the run's key."""

    heard: dict = field(default_factory=dict)

    def advance(self, s, x, problem, here):
        cut = super().advance(s, x, problem, here)
        self.heard[tuple(here.keys["discrete"])] = here.message.copy()
        return cut


def heard_in_rounds(
    algorithm: DecentralizedSGD, problem: Any, network: Any, horizon: int, streams: Streams,
    stuck: bool,
) -> tuple[list[np.ndarray], list[np.ndarray]]:  # fmt: skip
    """Of each round what was sent, and what would have been without noise: [runs, agents, dim].

    Parameters
    ----------
    algorithm : DecentralizedSGD
        A batch of one setting.
    stuck : bool
        Whether every round draws the noise of the first.
    """
    loud = _ready(algorithm, horizon)
    quiet = replace(loud, sigma=0.0 * loud.sigma)
    state = loud.start(problem, network, streams, 1)
    draws = loud.draws(problem, streams)
    sent, bare = [], []
    for t in range(1, horizon + 1):
        draw = next(draws)
        for version, kept in ((quiet, bare), (loud, sent)):
            world = problem, network, draw, 1 if stuck else t
            after = version.step(state._replace(x=state.x.copy()), *world)
            kept.append(_messages(version, after, draw))
        state = after
    return sent, bare


def _ready(algorithm: DecentralizedSGD, horizon: int) -> DecentralizedSGD:
    if isinstance(algorithm, QDPSGD2):
        parts = {f.name: getattr(algorithm, f.name) for f in fields(algorithm)}
        algorithm = Overheard(**parts)
    if isinstance(algorithm, QDPSGD):
        return algorithm.for_horizon(np.array([float(horizon)]))
    return algorithm


def _messages(algorithm, state, draw) -> np.ndarray:
    if isinstance(algorithm, Overheard):
        return np.stack([algorithm.heard[tuple(key)] for key in draw.keys["discrete"]])
    return state.x[0]


def units_in_rounds(algorithm, horizon: int, sent: np.ndarray, bare: np.ndarray) -> np.ndarray:
    """Noise over the scale claimed for it, where a coordinate was sent.

    Whole steps of a grid get a uniform part of one step, since the test is of continuous laws: with
    a deviation of hundreds of steps the sum is Gaussian to far more digits than it can see.
    """
    noise, deviation = sent - bare, algorithm.sigma * algorithm.K
    if isinstance(algorithm, SDMDSGD):
        return noise * algorithm.c / (algorithm.theta * algorithm.alpha * deviation)
    if isinstance(algorithm, QDPSGD2):
        within = generator(20_255, "audit", "within a step").random(noise.shape) - 0.5
        return (noise + algorithm.eta * within) / deviation
    a, e = algorithm.steps(float(horizon))
    return noise / (a * e * deviation)
