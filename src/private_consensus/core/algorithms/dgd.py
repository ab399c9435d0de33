r"""Decentralized gradient descent.

.. math:: x_i^{k+1} = \sum_j w_{ij} x_j^k - \eta_k \nabla f_i(x_i^k), \qquad \eta_k = c\,q^k

This is eq. (3) of Xiao et al. without noise (Nedic, Ozdaglar 2009). The sum of the geometric step
sizes is finite, so that the limit is not exactly the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from private_consensus.privacy import Release

from .base import Algorithm
from .families.gradient_steps import GradientSteps


@dataclass(frozen=True, kw_only=True)
class DecentralizedGradientDescent(GradientSteps):
    """Decentralized gradient descent without noise."""

    quantities: ClassVar = ("released",)
    source: ClassVar[str] = "Nedic, Ozdaglar, IEEE TAC 54(1), 2009; Xiao et al., eq. (3)"

    def calibrate(self, budget, problem, network, horizon):
        """Return the algorithm itself; a finite budget raises an error, since there is no noise.

        Parameters
        ----------
        budget : Budget
            Privacy budget of the whole run.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        Algorithm
            The algorithm itself.
        """
        return Algorithm.calibrate(self, budget, problem, network, horizon)

    def step(self, state, problem, network, draw, t):
        """Return the state after mixing and one gradient step.

        Parameters
        ----------
        state : GradientStepsState
            State before the iteration.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        draw : ndarray, shape (runs, agents, dim)
            Unit draws of the iteration.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        GradientStepsState
            State after the iteration.
        """
        return state._replace(x=self.descend(problem, state.x, network.mix(state.x), draw, t))

    def releases(self, problem, network, horizon):
        """Return one exact release, since messages have no noise.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        list of Release
            Mechanisms whose composition bounds the privacy loss.
        """
        return [Release("exact", sensitivity=problem.record_change("l2"), scale=0.0)]


ALGORITHM = DecentralizedGradientDescent
