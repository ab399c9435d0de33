r"""Gradient steps from random aggregates of a neighbourhood (Xiao et al.).

This module is not an algorithm. Let :math:`S_i` be agent i and its neighbours. In each coordinate,
an aggregate is uniformly distributed on an interval. In Algorithm 2, with
:math:`(a, b) = \arg\max_{S_i\times S_i}\|x_a-x_b\|_1`, the interval is

.. math:: m_i \pm \frac{|x_a-x_b|}{|S_i|}, \qquad m_i = \frac1{|S_i|}\sum_{j\in S_i} x_j
"""

from abc import abstractmethod
from collections import namedtuple
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from . import gradient_steps, random_weights
from .gradient_steps import GradientSteps, uniform_mean
from .random_weights import Losses, add_losses

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
    """Gradient steps from random or fixed aggregates of a neighbourhood.

    Parameters
    ----------
    weights : {"random", "fixed"}
        Weights of the ends of the interval: sampled, or their mean 1/2.
    """

    weights: Literal["random", "fixed"] = "random"

    quantities: ClassVar = ("released", "worst_case", *random_weights.QUANTITIES)

    @abstractmethod
    def aggregate(self, x: np.ndarray, network) -> Aggregate:
        """Return the intervals of the aggregates of messages x, and the points of the gradients."""

    def start(self, problem, network, release):
        state = super().start(problem, network, release)
        return RandomAggregatesState(*state, *4 * (state.total_loss,))

    def step(self, state, problem, network, release, t):
        low, high, at = self.aggregate(state.x, network)
        # Fixed weights are the mean of the random ones: the middle of the interval.
        weights = 0.5
        if self.weights == "random":
            weights = release.random("weights", "uniform", state.x.shape[-2:])
        mixed, moved = low + weights * (high - low), self.step_size(t) * problem.gradient(at)
        x = release("message", mixed - moved)
        after = state._replace(x=x, total_loss=self.accumulated_loss(state, problem, network, t))
        if not self.has_losses:
            return after
        # The noisy aggregate, of which the message differs by the gradient step.
        position = x + moved - low
        return add_losses(after, problem, position, high - low, self.scale(t), self.step_size(t))

    def observables(self, state, problem, t):
        quantities = dict(super().observables(state, problem, t))
        if self.has_losses:
            quantities |= random_weights.loss_observables(state, state.total_loss)
        return quantities

    @property
    def has_losses(self) -> bool:
        """True if privacy losses of sampled messages are computed: Theorem 2.2 applies."""
        return self.noisy and (self.weights, self.law) == ("random", "laplace")


def mean_interval(x: np.ndarray, network) -> Aggregate:
    """Return the interval of Algorithm 2 around the mean of each neighbourhood.

    Parameters
    ----------
    x : ndarray, shape (settings, runs, agents, dim)
        Messages of the iteration.
    network : Network
        Communication graph with its mixing matrix.

    Returns
    -------
    Aggregate
        Interval, with the mean as the point of the gradient.
    """
    mean = uniform_mean(network, x)
    reach = np.abs(widest_pair(x, network)) / (network.degrees[..., None] + 1.0)
    return Aggregate(mean - reach, mean + reach, mean)


def widest_pair(x: np.ndarray, network) -> np.ndarray:
    """Return the difference of the two members of each neighbourhood with the largest l1 distance.

    Parameters
    ----------
    x : ndarray, shape (settings, runs, agents, dim)
        Messages of the iteration.
    network : Network
        Communication graph with its mixing matrix.

    Returns
    -------
    ndarray, shape (settings, runs, agents, dim)
        Differences :math:`x_a - x_b`, with an arbitrary sign.
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
