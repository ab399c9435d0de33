r"""Gradient steps from random aggregates of a neighbourhood (Xiao et al.).

This module is not an algorithm. Let :math:`S_i` be agent i and its neighbours. In each coordinate,
an aggregate is uniformly distributed on an interval. In Algorithm 2, with
:math:`(a, b) = \arg\max_{S_i\times S_i}\|x_a-x_b\|_1`, the interval is

.. math:: m_i \pm \frac{|x_a-x_b|}{|S_i|}, \qquad m_i = \frac1{|S_i|}\sum_{j\in S_i} x_j
"""

from __future__ import annotations

from abc import abstractmethod
from collections import namedtuple
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ...networks import SparseNetwork
from ..parameters import one_of
from . import gradient_steps, random_weights
from .gradient_steps import GradientSteps, uniform_mean
from .random_weights import WEIGHTS, Losses, add_losses, no_losses

RandomAggregatesState = namedtuple(
    "RandomAggregatesState", (*gradient_steps.GradientStepsState._fields, *Losses._fields)
)
"""State of gradient steps, with the privacy losses of the sampled messages."""


class Aggregate(NamedTuple):
    """Interval of an aggregate and point of the gradient, each [settings, runs, agents, dim]."""

    low: np.ndarray
    high: np.ndarray
    at: np.ndarray


@dataclass(frozen=True, kw_only=True)
class RandomAggregates(GradientSteps):
    """Gradient steps from a random aggregate of the neighbourhood.

    Parameters
    ----------
    weights : {"random", "fixed"}
        Weights of the ends of the interval: sampled (:mod:`.random_weights`), or their mean 1/2.
    """

    weights: str = one_of("random", WEIGHTS)

    quantities: ClassVar = ("released", "worst_case", *random_weights.QUANTITIES)
    internal_outputs: ClassVar = ("internal", *random_weights.ANALYSES)

    @abstractmethod
    def aggregate(self, x: np.ndarray, network) -> Aggregate:
        """Return the interval of the uniform random aggregate, and the point of the gradient.

        ``x`` are the messages of the iteration, [settings, runs, agents, dim].
        """

    def start(self, problem, network, streams, settings):
        plain = super().start(problem, network, streams, settings)
        return RandomAggregatesState(*plain, *no_losses(settings, problem, streams))

    def draws(self, problem, streams):
        return random_weights.draws(self, problem, streams)

    def step(self, state, problem, network, draw, t):
        low, high, at = self.aggregate(state.x, network)
        weights = 0.5 if draw.weights is None else draw.weights
        mixed = low + weights * (high - low)
        x = self.descend(problem, at, mixed, draw.noise, t)
        after = state._replace(x=x, total_loss=self.accumulated_loss(state, problem, network, t))
        if not self.has_losses:
            return after
        scale = self.noise.at(t)
        position = mixed + scale * draw.noise - low
        return add_losses(after, problem, position, high - low, scale, self.step_size(t))

    def observables(self, state, problem, t):
        quantities = dict(super().observables(state, problem, t))
        if self.has_losses:
            quantities |= random_weights.loss_observables(state)
        return quantities

    @property
    def has_losses(self) -> bool:
        """True if the privacy losses of the sampled messages are computed."""
        return random_weights.is_amplified(self)

    def attack_fields(self, problem, horizon):
        """Return an attack at delta 0 only, since none is known for a mixture over weights."""
        fractions = super().attack_fields(problem, horizon)
        return fractions | {"attained": None} if self.weights == "random" else fractions

    # Methods for audits.

    @property
    def hidden_sampling(self) -> bool:
        """True if weights are random, since other agents do not observe them."""
        return self.weights == "random"


def mean_interval(x: np.ndarray, network) -> Aggregate:
    """Return the interval of Algorithm 2 around the mean of each neighbourhood."""
    if not network.lossless:
        return _from_received(x, network)
    mean = uniform_mean(network, x)
    reach = np.abs(widest_pair(x, network)) / (network.degrees[..., None] + 1.0)
    return Aggregate(mean - reach, mean + reach, mean)


def _from_received(x: np.ndarray, network) -> Aggregate:
    """Return the interval around the mean of the values that each agent received last.

    After lost messages, the neighbours of an agent may have different values of it. Neighbourhoods
    are padded to equal size with the agent itself, which the mean counts once.
    """
    members = network.gather(x, network.closed_neighbourhoods)
    sizes = network.degrees[..., None] + 1.0
    mean = (members.sum(-2) - (members.shape[-2] - sizes) * x) / sizes
    reach = np.abs(_widest_of(members)) / sizes
    return Aggregate(mean - reach, mean + reach, mean)


def widest_pair(x: np.ndarray, network) -> np.ndarray:
    """Return the difference of the two members of each neighbourhood with the largest l1 distance.

    It has the shape of ``x``, [settings, runs, agents, dim], and an arbitrary sign.
    """
    members = network.closed_neighbourhoods
    if isinstance(network, SparseNetwork):
        return _widest_of(network.gather(x, members))
    first, second = np.triu_indices(members.shape[-1], 1)
    columns = np.moveaxis(x, -1, 0)
    distance = sum(np.abs(c[..., :, None] - c[..., None, :]) for c in columns)
    pair_distance = _pairs(distance, members[..., first], members[..., second])
    widest = pair_distance.argmax(-1)[..., None]

    def value_of(member):
        agents = np.broadcast_to(members[..., member], pair_distance.shape)
        return np.take_along_axis(x, np.take_along_axis(agents, widest, -1), -2)

    return value_of(first) - value_of(second)


def _widest_of(x: np.ndarray) -> np.ndarray:
    """Return the difference with the largest l1 norm between two members, for each neighbourhood.

    ``x`` has the values [..., members, dim]. Of several such pairs, the first one is used.
    """
    first, second = np.triu_indices(x.shape[-2], 1)
    widest, max_distance = np.zeros((*x.shape[:-2], x.shape[-1])), np.full(x.shape[:-2], -1.0)
    for first_member, second_member in zip(first, second, strict=True):
        difference = x[..., first_member, :] - x[..., second_member, :]
        distance = np.abs(difference).sum(-1)
        farther = distance > max_distance
        widest[farther], max_distance[farther] = difference[farther], distance[farther]
    return widest


def _pairs(distance: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return ``distance[..., first, second]``, for one graph or for one graph per run."""
    if first.ndim == 2:
        return distance[..., first, second]
    runs = np.arange(len(first))[:, None, None]
    return distance[:, runs, first, second]
