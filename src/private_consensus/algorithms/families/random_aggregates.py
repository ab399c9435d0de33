r"""Gradient steps from random aggregates of a neighbourhood (paper 001). Not an algorithm.

With :math:`S_i` agent i and its neighbours, an aggregate is uniform on an interval of each
coordinate, for Algorithm 2 with :math:`(a, b) = \arg\max_{S_i\times S_i}\|x_a-x_b\|_1`

.. math:: m_i \pm \frac{|x_a-x_b|}{|S_i|}, \qquad m_i = \frac1{|S_i|}\sum_{j\in S_i} x_j
"""

from __future__ import annotations

from abc import abstractmethod
from collections import namedtuple
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ...fast.farthest import AVAILABLE, farthest_pairs
from ...networks import SparseNetwork
from ..parameters import one_of
from . import gradient_steps, random_weights
from .gradient_steps import GradientSteps, uniform_mean
from .random_weights import WEIGHTS, Losses, add_losses, losses_of, no_losses

State = namedtuple("State", (*gradient_steps.State._fields, *Losses._fields))
"""Messages x [settings, runs, agents, dim], and what they lost."""


class Aggregate(NamedTuple):
    """Interval of the aggregate, and the point at which the gradient is taken."""

    low: np.ndarray
    high: np.ndarray
    at: np.ndarray


@dataclass(frozen=True, kw_only=True)
class RandomAggregates(GradientSteps):
    """A version says on which interval its aggregate is uniform.

    Parameters
    ----------
    weights : {"random", "fixed"}
        Those of :mod:`.families.random_weights`, or their mean 1/2.
    """

    weights: str = one_of("random", WEIGHTS)

    internal_outputs: ClassVar = ("internal", *random_weights.ANALYSES)

    @abstractmethod
    def aggregate(self, x: np.ndarray, network) -> Aggregate:
        """The interval on which the random aggregate is uniform."""

    def start(self, problem, network, streams, settings):
        plain = super().start(problem, network, streams, settings)
        return State(*plain, *no_losses(settings, problem, streams))

    def draws(self, problem, streams):
        return random_weights.draws(self, problem, streams)

    def step(self, state, problem, network, draw, t):
        low, high, at = self.aggregate(state.x, network)
        weights = 0.5 if draw.weights is None else draw.weights
        mixed = low + weights * (high - low)
        x = self.descend(problem, at, mixed, draw.noise, t)
        after = state._replace(x=x, spent=self.spend(state, problem, network, t))
        if not self._counts(state):
            return after
        losses = add_losses(
            losses_of(state),
            problem,
            mixed + self.noise.at(t) * draw.noise - low,
            high - low,
            self.noise.at(t),
            self.step_size(t),
            dim=problem.dim,
        )
        return after._replace(**losses._asdict())

    def observables(self, state, problem, t):
        seen = dict(super().observables(state, problem, t))
        return seen | random_weights.shown(state) if self._counts(state) else seen

    def without_diagnostics(self, state):
        return random_weights.without_losses(state)

    def _counts(self, state) -> bool:
        return random_weights.amplify(self) and random_weights.counted(state)

    def known(self, problem, horizon):
        """Of a mixture over random weights the tails alone are known, where its loss is largest."""
        known = super().known(problem, horizon)
        return known | {"attained": None} if self.weights == "random" else known

    # What audits ask for.

    @property
    def hidden_sampling(self) -> bool:
        """Nobody sees the weights."""
        return self.weights == "random"

    def log_likelihood(self, problem, network, streams, execution):
        if not random_weights.amplify(self):
            return None
        return random_weights.log_likelihood(self, problem, network, streams, execution)


def around_the_mean(x: np.ndarray, network) -> Aggregate:
    """Algorithm 2's interval."""
    if not network.lossless:
        return _of_heard(x, network)
    mean = uniform_mean(network, x)
    reach = np.abs(widest_pair(x, network)) / (network.degrees[..., None] + 1.0)
    return Aggregate(mean - reach, mean + reach, mean)


def _of_heard(x: np.ndarray, network) -> Aggregate:
    """The same of what each agent heard last, which is another value of a neighbour for each of its
    neighbours; repetitions of the agent itself, with which neighbourhoods are filled up, leave the
    mean."""
    members = network.gather(x, network.closed_neighbourhoods)
    sizes = network.degrees[..., None] + 1.0
    mean = (members.sum(-2) - (members.shape[-2] - sizes) * x) / sizes
    reach = np.abs(_widest_of(members)) / sizes
    return Aggregate(mean - reach, mean + reach, mean)


def widest_pair(x: np.ndarray, network) -> np.ndarray:
    r""":math:`x_a - x_b` of the two members of each neighbourhood that are farthest apart in l1."""
    members = network.closed_neighbourhoods
    if isinstance(network, SparseNetwork):
        return _widest_of(network.gather(x, members))
    if AVAILABLE:
        return farthest_pairs(x, members)
    first, second = np.triu_indices(members.shape[-1], 1)
    # A coordinate at a time: all at once, the differences would not fit into the cache.
    columns = np.moveaxis(x, -1, 0)
    distance = sum(np.abs(c[..., :, None] - c[..., None, :]) for c in columns)
    of_pairs = _pairs(distance, members[..., first], members[..., second])
    widest = of_pairs.argmax(-1)[..., None]

    def end(side):
        agents = np.broadcast_to(members[..., side], of_pairs.shape)
        return np.take_along_axis(x, np.take_along_axis(agents, widest, -1), -2)

    return end(first) - end(second)


def _widest_of(x: np.ndarray) -> np.ndarray:
    """The difference of largest l1 norm among the values (..., members, d) of each agent; the first
    pair of those that are equally far apart."""
    first, second = np.triu_indices(x.shape[-2], 1)
    widest, most = np.zeros((*x.shape[:-2], x.shape[-1])), np.full(x.shape[:-2], -1.0)
    for one, other in zip(first, second, strict=True):
        apart = x[..., one, :] - x[..., other, :]
        distance = np.abs(apart).sum(-1)
        farther = distance > most
        widest[farther], most[farther] = apart[farther], distance[farther]
    return widest


def _pairs(distance: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """``distance[..., one, other]`` for members of a graph a run, or of one graph."""
    if one.ndim == 2:
        return distance[..., one, other]
    runs = np.arange(len(one))[:, None, None]
    return distance[:, runs, one, other]
