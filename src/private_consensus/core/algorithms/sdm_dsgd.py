r"""SDM-DSGD: sparse differential Gaussian masking (Zhang, Fang, Liu, Zhu, MobiHoc 2020).

.. math:: y_i = (1-\theta)x_i + \theta\Bigl(\sum_j w_{ij}x_j - \alpha(g_i + \zeta_i)\Bigr), \qquad
          x_i \leftarrow x_i + S(y_i - x_i), \qquad
          S(d)_k = \begin{cases} d_k/c & \text{with probability } c \\ 0 & \text{else}\end{cases}

as described by Ding, section 4.5, with :math:`\zeta_i \sim N(0,\sigma^2K^2I)`. All agents store
equal copies of all :math:`x_i`, which start from a common point. A round takes
:math:`\max_i B/V_i + c\,T_c` seconds. The sparsification S multiplies the variance of the noise by
1/c as well.

The privacy theorem of the original paper counts the sparsification as amplification. Here, sigma is
that of Q-DPSGD-1 for the number of rounds of this algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from private_consensus.kernels.messages import uniforms
from private_consensus.kernels.rounds import Sparse, keys, mix_and_step, steps_of

from .base import column
from .families.decentralized_sgd import FULL_BITS, BatchModels, DecentralizedSGD, SampledRound, at
from .parameters import Positive, UnitInterval


@dataclass(frozen=True, kw_only=True)
class SDMDSGD(DecentralizedSGD):
    r"""Decentralized SGD that sends a random fraction of the coordinates per round.

    Parameters
    ----------
    alpha : float
        Step size.
    theta : float
        Relaxation :math:`\theta`: weight of the new model in its mean with the previous model.
    c : float
        Probability with which a coordinate is sent. ``bits`` counts the sent values, but not their
        indices.
    """

    alpha: Positive = 0.2
    theta: UnitInterval = 0.6
    c: UnitInterval = 0.3

    source: ClassVar[str] = "SDM-DSGD (MobiHoc 2020) as described in Ding, section 4.5"

    def step(self, state, problem, network, release, t):
        x, c = state.x, column(self.c)
        noisy = release("gradient", self.gradient_at(problem, x))
        change = column(self.theta) * (network.mix(x) - x - column(self.alpha) * noisy)
        counter, shape = (t - 1) * problem.n_agents, x.shape[-2:]
        # Both ends of an edge know the mask of a round, which does not depend on the data.
        mask = np.stack([uniforms(key, counter, shape) for key in release.key("mask")])
        sparse = np.where(mask < c, change / c, 0.0)
        return self.after_step(state, release, x + sparse, state.message, 0.0)

    def seconds(self, speeds):
        return self.waiting(speeds) + np.reshape(np.multiply(self.c, self.T_c), (-1, 1))

    def bits(self, dim):
        return np.multiply(self.c, float(FULL_BITS * dim))

    def advance_all(self, models: BatchModels, problem, round_: SampledRound):
        settings, x = range(len(models.first)), models.x
        clips = [float(at(self.K, s)) for s in settings]
        gradients, sizes = self.sampled_gradients(models, problem, round_, False, clips)
        steps = steps_of(
            weights=models.mixing,
            keep=np.zeros(sizes.shape),
            scale=self.noise_scales(sizes),
            step=[float(at(self.alpha, s)) for s in settings],
        )
        factors = [[float(at(value, s)) for s in settings] for value in (self.theta, self.c)]
        streams = (keys(round_.keys[name], round_.counter) for name in ("noise", "mask"))
        sparse = Sparse(*np.array(factors, np.float32))
        lost = mix_and_step(x, x, x, gradients, models.first, steps, *streams, sparse)
        return 0.0 * lost, lost


ALGORITHM = SDMDSGD
