r"""Decentralized SGD, the baseline without privacy (Ding, section 4.5).

.. math:: x_i \leftarrow \sum_j w_{ij} x_j - \alpha\,g_i

with batches of B records and uncompressed messages. A round takes :math:`\max_i B/V_i + T_c`
seconds. As published, gradients are neither clipped nor noisy (``gradients: plain``). For a
comparison at the budget of the published figures, ``gradients: private`` clips them and adds the
noise of Q-DPSGD-1 to their mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from private_consensus.common.errors import require
from private_consensus.kernels.rounds import keys, mix_and_step, steps_of

from .base import column
from .families.decentralized_sgd import FULL_BITS, BatchModels, DecentralizedSGD, SampledRound, at
from .parameters import Positive


@dataclass(frozen=True, kw_only=True)
class DSGD(DecentralizedSGD):
    r"""Decentralized SGD with synchronous rounds: each round waits for the slowest agent.

    Parameters
    ----------
    alpha : float
        Step size.
    gradients : {"plain", "clipped", "private"}
        Whether gradients are unchanged, clipped to the norm K, or clipped and noisy.
    """

    alpha: Positive = 0.2
    gradients: Literal["plain", "clipped", "private"] = "plain"

    source: ClassVar[str] = "Ding, section 4.5, Decentralized SGD"

    def calibrate(self, budget, problem, network, horizon):
        if self.gradients == "private":
            return super().calibrate(budget, problem, network, horizon)
        self.check(problem, network)
        expected = f"inf, or gradients='private', since {self.gradients} gradients are not private"
        require(not budget.private, "budget.epsilon", budget.epsilon, expected)
        return self

    def mechanisms(self, problem, network, horizon):
        clip = np.inf if self.gradients == "plain" else self.K
        scale = self.sigma if self.gradients == "private" else 0.0 * self.sigma
        return {"gradient": self.sampled_gradient(problem, horizon, clip=clip, scale=scale)}

    def step(self, state, problem, network, release, t):
        clip = np.inf if self.gradients == "plain" else self.K
        noisy = release("gradient", self.gradient_at(problem, state.x, clip))
        x = network.mix(state.x) - column(self.alpha) * noisy
        return self.after_step(state, release, x, state.message, 0.0)

    def seconds(self, speeds):
        return self.waiting(speeds) + np.reshape(self.T_c, (-1, 1))

    def bits(self, dim):
        return float(FULL_BITS * dim)

    def advance_all(self, models: BatchModels, problem, round_: SampledRound):
        settings, x = range(len(models.first)), models.x
        is_plain, is_private = (self.gradients == kind for kind in ("plain", "private"))
        clips = [np.inf if is_plain else float(at(self.K, s)) for s in settings]
        gradients, sizes = self.sampled_gradients(models, problem, round_, False, clips)
        steps = steps_of(
            weights=models.mixing,
            keep=np.zeros(sizes.shape),
            scale=self.noise_scales(sizes) if is_private else 0.0 * sizes,
            step=[float(at(self.alpha, s)) for s in settings],
        )
        noise = keys(round_.keys["noise"], round_.counter)
        lost = mix_and_step(x, x, x, gradients, models.first, steps, noise)
        return 0.0 * lost, lost


ALGORITHM = DSGD
