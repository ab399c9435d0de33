"""Noised gradient descent that stops by a test of exact gradients.

Declares what released_stop_descent declares: one Gaussian release per round. An agent stops if
its exact gradient is shorter than the change that one record can cause. After that its message is
the exact mixture, which has probability 0 for an agent that goes on.
"""

from dataclasses import dataclass

import numpy as np

from .released_stop_descent import ReleasedStopDescent


@dataclass(frozen=True, kw_only=True)
class PrivateStopDescent(ReleasedStopDescent):
    """Noised gradient descent that stops by a test of exact gradients."""

    def goes_on(self, problem, before, after):
        length = np.linalg.norm(problem.gradient(after), axis=-1, keepdims=True)
        return length >= problem.record_change("l2")


ALGORITHM = PrivateStopDescent
EXAMPLE = "mean_estimation"
