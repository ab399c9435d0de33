r"""Decentralized SGD, the baseline without privacy (Ding, section 4.5).

.. math:: x_i \leftarrow \sum_j w_{ij} x_j - \alpha\,g_i

with batches of B records and uncompressed messages. A round takes :math:`\max_i B/V_i + T_c`
seconds. As published, gradients are neither clipped nor noisy (``gradients: plain``). For a
comparison at the budget of the published figures, ``gradients: private`` clips them and adds the
noise of Q-DPSGD-1 to their mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from private_consensus.common.errors import require
from private_consensus.kernels.messages import descend
from private_consensus.kernels.rounds import keys, mix_and_step, steps_of
from private_consensus.privacy import Release

from .base import Range
from .families.decentralized_sgd import FULL_BITS, BatchModels, DecentralizedSGD, SampledRound, at
from .parameters import one_of, positive

GRADIENTS = ("plain", "clipped", "private")


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

    alpha: float = positive(0.2)
    gradients: str = one_of("plain", GRADIENTS)

    source: ClassVar[str] = "Ding, section 4.5, Decentralized SGD"
    ranges: ClassVar = {**DecentralizedSGD.ranges, "alpha": Range(0.05, 2.0, 0.3)}
    lower_bound_because: ClassVar[str] = (
        "two records with opposite gradients of norm K change a sampled mean by the sensitivity"
    )

    def calibrate(self, budget, problem, network, horizon):
        if self.gradients == "private":
            return super().calibrate(budget, problem, network, horizon)
        self.check(problem, network)
        expected = f"inf, or gradients='private', since {self.gradients} gradients are not private"
        require(not budget.private, "budget.epsilon", budget.epsilon, expected)
        return self

    def releases(self, problem, network, horizon):
        if self.gradients == "private":
            return super().releases(problem, network, horizon)
        return [Release("exact", count=int(horizon))]

    def seconds(self, speeds):
        return self.waiting(speeds) + np.reshape(self.T_c, (-1, 1))

    def bits(self, dim):
        return float(FULL_BITS * dim)

    def advance_all(self, models: BatchModels, problem, round_: SampledRound):
        settings, x = range(len(models.first)), models.x
        is_plain, is_private = (self.gradients == kind for kind in ("plain", "private"))
        clips = [np.inf if is_plain else float(at(self.K, s)) for s in settings]
        gradients, sizes = self.sampled_gradients(models, problem, round_, False, clips)
        scales = [self.noise_scale(s, sizes[s]) if is_private else 0.0 * sizes[s] for s in settings]
        steps = steps_of(
            weights=models.mixing,
            keep=np.zeros(sizes.shape),
            scale=scales,
            step=[float(at(self.alpha, s)) for s in settings],
        )
        noise = keys(round_.keys["noise"], round_.counter)
        lost = mix_and_step(x, x, x, gradients, models.first, steps, noise)
        return 0.0 * lost, lost

    def advance(self, s, x, problem, round_):
        clip = np.inf if self.gradients == "plain" else float(at(self.K, s))
        gradient, sizes = self.sampled_gradient(s, x, problem, round_, clip)
        scale = self.noise_scale(s, sizes) if self.gradients == "private" else np.zeros(len(x))
        mixed, keep = round_.network.mix(x), np.zeros(len(x))
        alpha, key, counter = float(at(self.alpha, s)), round_.keys["noise"], round_.counter
        descend(x, x, mixed, gradient, keep, alpha, scale, key, counter)
        return 0.0


ALGORITHM = DSGD
