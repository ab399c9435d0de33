"""Random walk of a model with K noisy local steps per visit (Li et al., NeurIPS 2025)."""

from dataclasses import dataclass

import numpy as np

from ..parameters import PositiveInt
from .base import column
from .random_walk_sgd import RandomWalkSGD


@dataclass(frozen=True, kw_only=True)
class LocalRandomWalk(RandomWalkSGD):
    r"""Gradient descent of one model that walks at random, with local steps.

    .. math::
        \theta_{t,k+1} = \theta_{t,k} - \eta\bigl(g_{i_t}(\theta_{t,k}) + N(0, \sigma^2 I)\bigr),
        \quad k < K, \qquad \theta_{t+1,0} = \theta_{t,K}

    An iteration is one local step. For the eavesdropper, who receives the model after each local
    step, V visits cost :math:`\mu^2 = VK\Delta^2/\sigma^2`. The paper bounds the loss to the agent
    that the walk reaches after s visits by :math:`\mu_s^2 = K\Delta^2/(s\sigma^2)`
    (:func:`private_consensus.privacy.random_walks.walk_epsilon`).

    Parameters
    ----------
    local_steps : int
        Number K of steps per visit.
    """

    local_steps: PositiveInt = 2

    source = "Li, Su, Wang, Long, Su, NeurIPS 2025, arXiv 2510.19934, random walk"

    @property
    def contributions(self):
        return self.visits * self.local_steps

    def arrival(self, state, network, release, t):
        # The model stays with its holder for K steps, before it moves on.
        arrives = (t - 1) % column(self.local_steps) == 0
        if not np.any(arrives):
            return state.holder, state.models
        holder, model = super().arrival(state, network, release, t)
        return np.where(arrives, holder, state.holder), np.where(arrives, model, state.models)


ALGORITHM = LocalRandomWalk
EXAMPLE = {"problem": "logistic_regression", "parameters": {"visits": 1}}
