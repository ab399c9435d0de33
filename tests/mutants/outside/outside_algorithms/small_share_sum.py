r"""Gradient descent along a secure sum whose noise shares are too small.

Declares what secure_sum_descent declares: noise of standard deviation :math:`\sigma` on the sum.
Each agent adds :math:`\sigma/n` instead of :math:`\sigma/\sqrt n`.
"""

from dataclasses import dataclass

from .secure_sum_descent import SecureSumDescent


@dataclass(frozen=True, kw_only=True)
class SmallShareSum(SecureSumDescent):
    """Gradient descent along a secure sum whose noise shares are too small."""

    def share(self, problem):
        return 1.0 / problem.n_agents


ALGORITHM = SmallShareSum
EXAMPLE = "mean_estimation"
