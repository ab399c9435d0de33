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
    mean = uniform_mean(network, x)
    reach = np.abs(widest_pair(x, network)) / (network.degrees[..., None] + 1.0)
    return Aggregate(mean - reach, mean + reach, mean)


def widest_pair(x: np.ndarray, network) -> np.ndarray:
    """Return the difference of the two members of each neighbourhood with the largest l1 distance.

    It has the shape of ``x``, [settings, runs, agents, dim], and an arbitrary sign.
    """
    members = network.gather(x, network.closed_neighbourhoods)
    distances = np.zeros((*members.shape[:-1], members.shape[-2]))
    for column in np.ascontiguousarray(np.moveaxis(members, -1, 0)):
        difference = column[..., :, None] - column[..., None, :]
        distances += np.abs(difference, out=difference)
    widest = distances.reshape(*members.shape[:-2], -1).argmax(-1)
    first, second = (
        np.take_along_axis(members, member[..., None, None], -2)[..., 0, :]
        for member in np.divmod(widest, members.shape[-2])
    )
    return first - second
