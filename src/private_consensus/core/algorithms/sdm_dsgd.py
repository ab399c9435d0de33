"""SDM-DSGD: sparse differential Gaussian masking (Zhang, Fang, Liu, Zhu, MobiHoc 2020)."""

from dataclasses import dataclass

import numpy as np

from ..parameters import Positive, UnitInterval
from .families.decentralized_sgd import T_C
from .families.sampled_rounds import Round, SampledRounds


@dataclass(frozen=True, kw_only=True)
class SDMDSGD(SampledRounds):
    r"""Decentralized SGD that sends a random fraction of the coordinates per round.

    .. math:: y_i = (1-\theta)x_i + \theta\Bigl(\sum_j w_{ij}x_j - \alpha(g_i + \zeta_i)\Bigr),
        \qquad x_i \leftarrow x_i + S(y_i - x_i), \qquad
        S(d)_k = \begin{cases} d_k/c & \text{with probability } c \\ 0 & \text{else}\end{cases}

    as described by Ding, section 4.5, with :math:`\zeta_i \sim N(0,\sigma^2K^2I)`. All agents store
    equal copies of all :math:`x_i`, which start from a common point. A round takes
    :math:`\max_i B/V_i + c\,T_c` seconds. The sparsification S multiplies the variance of the noise
    by 1/c as well. The privacy theorem of the original paper counts the sparsification as
    amplification. Here, sigma is that of Q-DPSGD-1 for the number of rounds of this algorithm.

    Parameters
    ----------
    alpha : float
        Step size.
    theta : float
        Relaxation :math:`\theta`: weight of the new model in its mean with the previous model.
    c : float
        Probability with which a coordinate is sent.
    """

    alpha: Positive = 0.2
    theta: UnitInterval = 0.6
    c: UnitInterval = 0.3

    source = "SDM-DSGD (MobiHoc 2020) as described in Ding, section 4.5"

    def coefficients(self, horizon):
        return Round(self.alpha, relaxation=self.theta, fraction=self.c)

    def seconds(self, speeds):
        return self.waiting(speeds) + np.reshape(np.multiply(self.c, T_C), (-1, 1))


ALGORITHM = SDMDSGD
