r"""Gradient descent with secure aggregation: each agent receives only the noisy sum.

.. math::
    x^{t+1} = x^t - \frac{\eta}{N}\sum_{i=1}^N
        \Bigl(\mathrm{clip}_C(\nabla f_i(x^t)) + N\bigl(0, \tfrac{\sigma^2}{N} I\bigr)\Bigr)

A protocol computes the sum without revealing its terms (Bonawitz et al., CCS 2017), so that
:math:`N(0, \sigma^2 I)` hides a term as if a server added it: the central bound of methods without
a server. A replaced record moves one term, by :math:`\Delta`. All agents hold one model, a function
of the sums so far; to the eavesdropper T rounds are T Gaussian mechanisms,

.. math:: \mu^2 = T\,\Delta^2/\sigma^2,

also if gradients are computed at points that depend on earlier sums. A coalition of k agents knows
its k shares of the noise: against it, :math:`\mu^2` is :math:`N/(N-k)` times as large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .families.clipped_descent import State, WithoutNeighbours


@dataclass(frozen=True, kw_only=True)
class SecureAggregation(WithoutNeighbours):
    r"""Gradient descent along secure sums; ``noise`` is :math:`\sigma`, of the sum."""

    source: ClassVar[str] = "Bonawitz et al., CCS 2017, for the sum; noise as in central descent"
    lower_bound_because: ClassVar[str] = (
        "a label flip moves the noised sum by half of the bound at every point"
    )

    def step(self, state, problem, network, draw, t):
        """Return the state after one step along the noisy sum, equal for all agents.

        Parameters
        ----------
        state : State
            State before the iteration.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        draw : ndarray, shape (runs, agents, dim)
            Unit noise of the iteration.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        State
            State after the iteration.
        """
        share = self.message_scale / np.sqrt(problem.n_agents)
        noisy_terms = self.descent(problem, state.x) + share * draw
        return State(np.broadcast_to(noisy_terms.mean(-2, keepdims=True), noisy_terms.shape))


ALGORITHM = SecureAggregation
