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
        return Algorithm.calibrate(self, budget, problem, network, horizon)

    def step(self, state, problem, network, draw, t):
        return state._replace(x=self.descend(problem, state.x, network.mix(state.x), draw, t))

    def releases(self, problem, network, horizon):
        return [Release("exact", sensitivity=problem.record_change("l2"), scale=0.0)]


ALGORITHM = DecentralizedGradientDescent
