r"""Gradient steps from random aggregates of a neighbourhood (Xiao et al.).

This module is not an algorithm. Let :math:`S_i` be agent i and its neighbours. An aggregate is
uniform on an interval of each coordinate. The interval of Algorithm 2, with
:math:`(a, b) = \arg\max_{S_i\times S_i}\|x_a-x_b\|_1`, is

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
from .random_weights import WEIGHTS, Losses, add_losses, losses_of, no_losses

State = namedtuple("State", (*gradient_steps.State._fields, *Losses._fields))
"""Messages x [settings, runs, agents, dim], and their privacy losses."""


class Aggregate(NamedTuple):
    """Interval of the aggregate and point of the gradient, each [settings, runs, agents, dim]."""

    low: np.ndarray
    high: np.ndarray
    at: np.ndarray


@dataclass(frozen=True, kw_only=True)
class RandomAggregates(GradientSteps):
    """Gradient steps from a random aggregate; a version defines the interval of the aggregate.

    Parameters
    ----------
    weights : {"random", "fixed"}
        Those of :mod:`.families.random_weights`, or their mean 1/2.
    """

    weights: str = one_of("random", WEIGHTS)

    internal_outputs: ClassVar = ("internal", *random_weights.ANALYSES)

    @abstractmethod
    def aggregate(self, x: np.ndarray, network) -> Aggregate:
        """Return the interval on which the random aggregate is uniform.

        Parameters
        ----------
        x : ndarray, shape (settings, runs, agents, dim)
            Messages of the iteration.
        network : Network
            Communication graph with its mixing matrix.

        Returns
        -------
        Aggregate
            Interval and point of the gradient.
        """

    def start(self, problem, network, streams, settings):
        """Return the state before the first iteration, with losses of single messages at 0.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        streams : Streams
            Random streams of all runs.
        settings : int
            Number of settings in the batch.

        Returns
        -------
        State
            Normal starting points.
        """
        plain = super().start(problem, network, streams, settings)
        return State(*plain, *no_losses(settings, problem, streams))

    def draws(self, problem, streams):
        """Return noise and weights, one item per iteration.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        streams : Streams
            Random streams of all runs.

        Returns
        -------
        iterator of random_weights.Draw
            Unit draws of each iteration.
        """
        return random_weights.draws(self, problem, streams)

    def step(self, state, problem, network, draw, t):
        """Step from the random aggregate and, if required, update the losses of single messages.

        Parameters
        ----------
        state : State
            State before the iteration.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        draw : Draw
            Unit draws of the iteration.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        State
            State after iteration t.
        """
        low, high, at = self.aggregate(state.x, network)
        weights = 0.5 if draw.weights is None else draw.weights
        mixed = low + weights * (high - low)
        x = self.descend(problem, at, mixed, draw.noise, t)
        after = state._replace(x=x, total_loss=self.spend(state, problem, network, t))
        if not self.has_losses:
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
        """Return the observables of gradient steps and the mean losses of single messages.

        Parameters
        ----------
        state : State
            State after the iteration.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        mapping
            Iterates, and losses [settings, runs].
        """
        quantities = dict(super().observables(state, problem, t))
        return quantities | random_weights.shown(state) if self.has_losses else quantities

    @property
    def has_losses(self) -> bool:
        """Return True if the privacy losses of the sampled messages are computed."""
        return random_weights.amplify(self)

    def known(self, problem, horizon):
        """Return the fractions of the sensitivity that are known to be attained and reached.

        For a mixture over random weights, only the tails are known. There its loss is largest.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        horizon : int
            Number of iterations.

        Returns
        -------
        dict
            Fields ``attained`` and ``reached`` of :class:`.Release`, or empty.
        """
        fractions = super().known(problem, horizon)
        return fractions | {"attained": None} if self.weights == "random" else fractions

    # Methods for audits.

    @property
    def hidden_sampling(self) -> bool:
        """Return True if weights are random, since no other agent observes them."""
        return self.weights == "random"


def around_the_mean(x: np.ndarray, network) -> Aggregate:
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
    if not network.lossless:
        return _of_heard(x, network)
    mean = uniform_mean(network, x)
    reach = np.abs(widest_pair(x, network)) / (network.degrees[..., None] + 1.0)
    return Aggregate(mean - reach, mean + reach, mean)


def _of_heard(x: np.ndarray, network) -> Aggregate:
    """Return the interval around the mean of the values that each agent received last.

    After lost messages, neighbours may hold different values of one agent. Neighbourhoods are
    padded to equal size with the agent itself; the mean does not count these repetitions.
    """
    members = network.gather(x, network.closed_neighbourhoods)
    sizes = network.degrees[..., None] + 1.0
    mean = (members.sum(-2) - (members.shape[-2] - sizes) * x) / sizes
    reach = np.abs(_widest_of(members)) / sizes
    return Aggregate(mean - reach, mean + reach, mean)


def widest_pair(x: np.ndarray, network) -> np.ndarray:
    """Return :math:`x_a - x_b` of the two members of a neighbourhood with the largest l1 distance.

    Parameters
    ----------
    x : ndarray, shape (settings, runs, agents, dim)
        Messages of the iteration.
    network : Network
        Communication graph with its mixing matrix.

    Returns
    -------
    ndarray, shape (settings, runs, agents, dim)
        Differences; the sign is arbitrary.
    """
    members = network.closed_neighbourhoods
    if isinstance(network, SparseNetwork):
        return _widest_of(network.gather(x, members))
    first, second = np.triu_indices(members.shape[-1], 1)
    # One coordinate at a time, because the differences of all coordinates exceed the cache.
    columns = np.moveaxis(x, -1, 0)
    distance = sum(np.abs(c[..., :, None] - c[..., None, :]) for c in columns)
    of_pairs = _pairs(distance, members[..., first], members[..., second])
    widest = of_pairs.argmax(-1)[..., None]

    def end(side):
        agents = np.broadcast_to(members[..., side], of_pairs.shape)
        return np.take_along_axis(x, np.take_along_axis(agents, widest, -1), -2)

    return end(first) - end(second)


def _widest_of(x: np.ndarray) -> np.ndarray:
    """Return the difference of largest l1 norm among the values (..., members, d) of each agent.

    The first pair is used among pairs with equal distance.
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
    """Return ``distance[..., first, second]`` for members of one graph per run or of one graph."""
    if first.ndim == 2:
        return distance[..., first, second]
    runs = np.arange(len(first))[:, None, None]
    return distance[:, runs, first, second]
