r"""Private gradient descent with random aggregates (paper 001, Algorithms 2 and 2*).

Algorithm 2, on a general graph with :math:`S_i` agent i and its neighbours and
:math:`(a, b) = \arg\max_{S_i\times S_i}\|x_a-x_b\|_1`:

.. math:: x_i^{k+1} = m_i + (2w-1)\frac{x_a-x_b}{|S_i|} - \eta_{k+1}\nabla f_i(m_i) + \Delta_i,
    \qquad m_i = \frac1{|S_i|}\sum_{j\in S_i} x_j \qquad (7)

Algorithm 2*, for every coordinate apart, with lo and hi the least and the largest value in
:math:`S_i`:

.. math:: x_i^{k+1} = w\,\mathrm{lo} + (1-w)\,\mathrm{hi} - \eta_{k+1}\nabla f_i(x_i^k) + \Delta_i
    \qquad (28)
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ..networks import SparseNetwork
from .families import gradient_steps
from .families.gradient_steps import GradientSteps, uniform_mean
from .families.perturbed import Losses, RandomlyWeighted, add_losses, losses_of, no_losses
from .parameters import one_of

AGGREGATORS = ("pair", "range")

State = namedtuple("State", (*gradient_steps.State._fields, *Losses._fields))
"""Messages x [settings, runs, agents, dim], and what they lost."""


class Aggregate(NamedTuple):
    """Interval of the aggregate, and the point at which the gradient is taken."""

    low: np.ndarray
    high: np.ndarray
    at: np.ndarray


@dataclass(frozen=True, kw_only=True)
class LocallyPrivateGradientDescent(RandomlyWeighted, GradientSteps):
    r"""Algorithm 2 (``pair``) and Algorithm 2* (``range``).

    Parameters
    ----------
    aggregator : {"pair", "range"}
        With fixed weights, ``pair`` is the plain mean of the neighbourhood.
    own_value : bool
        Whether the agent itself belongs to the set of which Algorithm 2* takes the range.
    """

    aggregator: str = one_of("pair", AGGREGATORS)
    own_value: bool = True

    source: ClassVar[str] = "Paper 001, Algorithm 2, eq. (7); Algorithm 2*, eq. (28)"

    def known(self, problem, horizon):
        """Of a mixture over random weights the tails alone are known, where its loss is largest."""
        known = super().known(problem, horizon)
        return known | {"attained": None} if self.weights == "random" else known

    def start(self, problem, network, streams, settings):
        plain = super().start(problem, network, streams, settings)
        return State(*plain, *no_losses(settings, problem, streams))

    def aggregate(self, x: np.ndarray, network) -> Aggregate:
        """The interval on which the random aggregate is uniform."""
        if self.aggregator == "range":
            kind = network.closed_neighbourhoods if self.own_value else network.open_neighbourhoods
            members = network.gather(x, kind)
            return Aggregate(members.min(-2), members.max(-2), x)
        if not network.lossless:
            return _of_heard(x, network)
        mean = uniform_mean(network, x)
        reach = np.abs(widest_pair(x, network)) / (network.degrees[..., None] + 1.0)
        return Aggregate(mean - reach, mean + reach, mean)

    def step(self, state, problem, network, draw, t):
        low, high, at = self.aggregate(state.x, network)
        weights = 0.5 if draw.weights is None else draw.weights
        mixed = low + weights * (high - low)
        x = self.descend(problem, at, mixed, draw.noise, t)
        after = state._replace(x=x, spent=self.spend(state, problem, network, t))
        if not self.has_losses:
            return after
        losses = add_losses(
            losses_of(state),
            problem,
            mixed + self.scale(t) * draw.noise - low,
            high - low,
            self.scale(t),
            self.step_size(t),
            dim=problem.dim,
        )
        return after._replace(**losses._asdict())


ALGORITHM = LocallyPrivateGradientDescent


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
