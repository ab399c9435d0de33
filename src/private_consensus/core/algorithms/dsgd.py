"""Decentralized SGD, the baseline without privacy (Ding, section 4.5)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from private_consensus.common.errors import require

from ..parameters import Positive
from .families.decentralized_sgd import T_C
from .families.sampled_rounds import Round, SampledRounds


@dataclass(frozen=True, kw_only=True)
class DSGD(SampledRounds):
    r"""Decentralized SGD with synchronous rounds: each round waits for the slowest agent.

    .. math:: x_i \leftarrow \sum_j w_{ij} x_j - \alpha\,g_i

    with batches of B records and uncompressed messages. A round takes :math:`\max_i B/V_i + T_c`
    seconds.

    Parameters
    ----------
    alpha : float
        Step size.
    gradients : {"plain", "private"}
        Whether gradients are unchanged, as published, or clipped with the noise of Q-DPSGD-1 on
        their mean, for a comparison at the budget of the published figures.
    """

    alpha: Positive = 0.2
    gradients: Literal["plain", "private"] = "plain"

    source = "Ding, section 4.5, Decentralized SGD"

    def calibrate(self, budget, problem, network, horizon):
        if self.gradients == "private":
            return super().calibrate(budget, problem, network, horizon)
        self.check(problem, network)
        expected = "inf, or gradients='private', since plain gradients are not private"
        require(not budget.private, "budget.epsilon", budget.epsilon, expected)
        return self

    @property
    def clip_norm(self):
        return np.inf if self.gradients == "plain" else self.K

    @property
    def gradient_noise(self):
        # Without noise, still one number per setting of a batch.
        return self.sigma if self.gradients == "private" else 0.0 * self.sigma

    def coefficients(self, horizon):
        return Round(self.alpha)

    def seconds(self, speeds):
        return self.waiting(speeds) + T_C


ALGORITHM = DSGD
