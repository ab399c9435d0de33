"""RW DP-SGD: a model that walks at random, with a noisy step at each agent (Cyffers et al.)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from private_consensus.privacy.mechanisms import Gaussian

from ..parameters import PositiveInt
from .base import NOTHING, column, origin
from .families.clipped_descent import ClippedDescent


class WalkState(NamedTuple):
    """Last model that each agent held, present holder and number of steps at each agent.

    Models are [settings, runs, agents, dim], the others [settings, runs, agents, 1]. The holder is
    1 for one agent and 0 for the others.
    """

    models: np.ndarray
    holder: np.ndarray
    steps: np.ndarray


@dataclass(frozen=True, kw_only=True)
class RandomWalkSGD(ClippedDescent):
    r"""Gradient descent of one model that agents send along random edges.

    .. math::
        P(i_{t+1} = j \mid i_t) = w_{j i_t}, \qquad
        \theta_{t+1} = \theta_t - \eta\bigl(g_{i_t}(\theta_t) + N(0, \sigma^2 I)\bigr), \qquad
        g_i = \mathrm{clip}_C(\nabla f_i)

    An agent contributes its gradient in its first V ``visits``, and only noise later, as in the
    code of the paper. The walk is public here. For the eavesdropper, the visits of an agent are at
    most V Gaussian mechanisms, :math:`\mu^2 = V\Delta^2/\sigma^2`. The paper considers single
    agents, who receive the model only when the walk reaches them. The gossip matrix is the
    transition matrix of the walk.

    Parameters
    ----------
    visits : int
        Largest number V of visits in which an agent contributes its gradient.
    """

    visits: PositiveInt = 10

    quantities = ("released", "walking")
    privacy_depends_on = NOTHING
    source = "Cyffers, Bellet, Upadhyay, ICML 2024, arXiv 2402.07471, Algorithm 1"

    @property
    def contributions(self) -> Any:
        """Largest number of steps with the gradient of one agent."""
        return self.visits

    def mechanisms(self, problem, network, horizon):
        # At most V steps depend on the records of one agent, for any length of the walk.
        change, largest = column(self.eta) * self.change(problem), int(np.max(self.contributions))
        return {"step": Gaussian(change, self.message_scale, touched=largest)}

    def start(self, problem, network, release):
        zero = origin(problem, release)
        probabilities = np.ones_like(zero[..., :1]) / problem.n_agents
        holder = selected(probabilities, release.once("first", "uniform", (1, 1)))
        return WalkState(zero, holder, np.zeros_like(holder))

    def arrival(self, state, network, release, t) -> tuple[np.ndarray, np.ndarray]:
        """Return the holder of an iteration, and the model that it has."""
        probabilities = network.mix(state.holder)
        holder = selected(probabilities, release.random("walk", "uniform", (1, 1)))
        # The network multiplies a message by the weight of its edge, the probability.
        shares = np.divide(holder, probabilities, out=np.zeros_like(holder), where=holder > 0)
        sent = (state.holder * state.models)[..., None, :] * shares[..., None, :, :]
        return holder, network.mix_links(sent)

    def step(self, state, problem, network, release, t):
        holder, model = self.arrival(state, network, release, t)
        contributes = state.steps < column(self.contributions)
        # Later visits add noise only: they use no record, and their number is unlimited.
        query = np.where(contributes, self.descent(problem, model), model)
        stepped = release("step", query, where=holder > 0)
        models = np.where(holder > 0, stepped, state.models)
        return WalkState(models, holder, state.steps + holder)

    def observables(self, state, problem, t):
        walking = (state.holder * state.models).sum(-2, keepdims=True)
        return {
            "released": state.models,
            "walking": np.broadcast_to(walking, state.models.shape),
        }


ALGORITHM = RandomWalkSGD
EXAMPLE = {"problem": "logistic_regression", "parameters": {"visits": 2}}


def selected(probabilities: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return 1 for the agent that a uniform number selects, 0 for the others.

    The probabilities are [settings, runs, agents, 1], and the numbers in [0, 1) are [runs, 1, 1].
    """
    upper = probabilities.cumsum(-2)
    threshold = uniform * upper[..., -1:, :]
    return ((upper > threshold) & (upper - probabilities <= threshold)).astype(float)
