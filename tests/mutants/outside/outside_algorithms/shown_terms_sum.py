r"""Gradient descent along a secure sum that also releases the terms of the sum.

Declares what secure_sum_descent declares: noise of standard deviation :math:`\sigma` on the sum.
The quantity ``terms`` shows each agent's term, whose noise is :math:`\sigma/\sqrt n`.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import origin

from .secure_sum_descent import SecureSumDescent


class SumState(NamedTuple):
    """Common models and terms of the last sum, [settings, runs, agents, dim]."""

    x: np.ndarray
    terms: np.ndarray


@dataclass(frozen=True, kw_only=True)
class ShownTermsSum(SecureSumDescent):
    """Gradient descent along a secure sum that also releases the terms of the sum."""

    quantities: ClassVar[tuple[str, ...]] = ("released", "terms")

    def start(self, problem, network, streams, settings):
        zero = origin(problem, streams, settings)
        return SumState(zero, zero)

    def step(self, state, problem, network, draw, t):
        terms = problem.gradient(state.x) + self.share(problem) * self.noise(draw, t)
        moved = self.length(problem) * terms.mean(-2, keepdims=True)
        return SumState(state.x - moved, terms)

    def observables(self, state, problem, t):
        return {"released": state.x, "terms": state.terms}


ALGORITHM = ShownTermsSum
EXAMPLE = "mean_estimation"
