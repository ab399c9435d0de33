"""Private gradient descent with random aggregates (Xiao et al., Algorithms 2 and 2*)."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from .families.gradient_steps import GradientSteps
from .families.random_weights import QUANTITIES, RandomWeights, add_losses


class Aggregate(NamedTuple):
    """Interval of an aggregate and point of the gradient, each [settings, runs, agents, dim]."""

    low: np.ndarray
    high: np.ndarray
    at: np.ndarray


@dataclass(frozen=True, kw_only=True)
class LocallyPrivateGradientDescent(RandomWeights, GradientSteps):
    r"""Private gradient descent with random aggregates: Algorithms 2 (``pair``) and 2* (``range``).

    Let :math:`S_i` be agent i and its neighbours, and
    :math:`(a, b) = \arg\max_{S_i\times S_i}\|x_a-x_b\|_1`. Algorithm 2 is

    .. math:: x_i^{k+1} = m_i + (2w-1)\frac{x_a-x_b}{|S_i|} - \eta_{k+1}\nabla f_i(m_i) + \Delta_i,
        \qquad m_i = \frac1{|S_i|}\sum_{j\in S_i} x_j \qquad (7)

    In Algorithm 2*, lo and hi are the smallest and the largest value of each coordinate in
    :math:`S_i`:

    .. math:: x_i^{k+1} = w\,\mathrm{lo} + (1-w)\,\mathrm{hi} - \eta_{k+1}\nabla f_i(x_i^k)
        + \Delta_i \qquad (28)

    In each coordinate, an aggregate is uniformly distributed on an interval.

    Parameters
    ----------
    aggregator : {"pair", "range"}
        Interval of the aggregate: that of Algorithm 2 or of Algorithm 2*. With fixed weights,
        ``pair`` is the mean of the neighbourhood.
    own_value : bool
        Whether the range of Algorithm 2* includes the value of the agent itself.
    """

    aggregator: Literal["pair", "range"] = "pair"
    own_value: bool = True

    quantities = ("released", "worst_case", *QUANTITIES)
    source = "Xiao et al., Algorithm 2, eq. (7); Algorithm 2*, eq. (28)"

    def aggregate(self, x: np.ndarray, network) -> Aggregate:
        """Return the intervals of the aggregates of messages x, and the points of the gradients."""
        if self.aggregator == "pair":
            mean = (x + network.neighbour_sum(x)) / (network.degrees[..., None] + 1.0)
            reach = np.abs(widest_pair(x, network)) / (network.degrees[..., None] + 1.0)
            return Aggregate(mean - reach, mean + reach, mean)
        agents = network.closed_neighbourhoods if self.own_value else network.open_neighbourhoods
        members = network.gather(x, agents)
        return Aggregate(members.min(-2), members.max(-2), x)

    def step(self, state, problem, network, release, t):
        low, high, at = self.aggregate(state.x, network)
        # Fixed weights are the mean of the random ones: the middle of the interval.
        weights = 0.5
        if self.weights == "random":
            weights = release.random("weights", "uniform", state.x.shape[-2:])
        mixed, moved = low + weights * (high - low), self.step_size(t) * problem.gradient(at)
        x = release("message", mixed - moved)
        losses = {}
        if self.has_losses:
            # The noisy aggregate, of which the message differs by the gradient step.
            position, length = x + moved - low, high - low
            losses = add_losses(
                state.extra, problem, position, length, self.scale(t), self.step_size(t)
            )
        return self.after(state, problem, network, x, t, **losses)


ALGORITHM = LocallyPrivateGradientDescent


def widest_pair(x: np.ndarray, network) -> np.ndarray:
    """Return the difference of the two members of each neighbourhood with the largest l1 distance.

    Its sign is arbitrary, and its shape that of the messages x, [settings, runs, agents, dim].
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
