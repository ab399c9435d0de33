"""Gradient descent with secure aggregation: each agent receives only the noisy sum."""

from dataclasses import dataclass

import numpy as np

from private_consensus.privacy.mechanisms import SecureSum

from .base import NOTHING, column
from .families.clipped_descent import ClippedDescent


@dataclass(frozen=True, kw_only=True)
class SecureAggregation(ClippedDescent):
    r"""Gradient descent along the noisy sum of clipped gradients, computed by secure aggregation.

    .. math::
        x^{t+1} = x^t - \frac{\eta}{N}\sum_{i=1}^N
            \Bigl(\mathrm{clip}_C(\nabla f_i(x^t)) + N\bigl(0, \tfrac{\sigma^2}{N} I\bigr)\Bigr)

    A protocol computes the sum without revealing its terms (Bonawitz et al., CCS 2017). The noise
    :math:`N(0, \sigma^2 I)` of the sum therefore protects a term as if a server added it. A
    replaced record changes one term by :math:`\Delta`. All agents have the same model, a function
    of the sums so far. For the eavesdropper, T rounds are T Gaussian mechanisms,
    :math:`\mu^2 = T\,\Delta^2/\sigma^2`, also if gradients are evaluated at points that depend on
    earlier sums. A coalition of k agents knows its part of the noise: against it, :math:`\mu^2` is
    :math:`N/(N-k)` times as large.

    The parameter ``noise`` is the standard deviation :math:`\sigma` of the noise of the sum.
    """

    observer = "an outsider, who receives the sums but knows no agent's noise"
    source = "Bonawitz et al., CCS 2017 (secure sum); noisy gradient descent"
    privacy_depends_on = NOTHING

    def mechanisms(self, problem, network, horizon):
        # N agents add noise of variance sigma^2/N each, so that the sum has sigma^2.
        scale = self.message_scale / np.sqrt(problem.n_agents)
        change = column(self.eta) * self.change(problem)
        return {"step": SecureSum(change, scale, agents=problem.n_agents)}


ALGORITHM = SecureAggregation
