r"""Decentralized SGD, the baseline without privacy (dissertation 4.5).

.. math:: x_i \leftarrow \sum_j w_{ij} x_j - \alpha\,g_i

with batches of B records and models sent in full: a round takes
:math:`\max_i B/V_i + T_c` seconds. As printed gradients are neither clipped nor noised
(``gradients: plain``); ``clipped`` clips them, and ``private`` adds to their mean the noise of
Q-DPSGD-1, for a comparison under the budget that the figures' captions speak of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from private_consensus.privacy import Release

from ..kernels.messages import descend
from ..kernels.rounds import keys, mix_and_step, steps_of
from .base import Algorithm, Range
from .families.decentralized_sgd import FULL_BITS, BatchModels, DecentralizedSGD, SampledRound, at
from .parameters import one_of, positive

GRADIENTS = ("plain", "clipped", "private")


@dataclass(frozen=True, kw_only=True)
class DSGD(DecentralizedSGD):
    r"""Decentralized SGD with synchronous rounds: each round waits for the slowest agent.

    Parameters
    ----------
    alpha : float
        Step length.
    gradients : {"plain", "clipped", "private"}
    """

    alpha: float = positive(0.2)
    gradients: str = one_of("plain", GRADIENTS)

    source: ClassVar[str] = "Dissertation 4.5, Decentralized SGD"
    ranges: ClassVar = {**DecentralizedSGD.ranges, "alpha": Range(0.05, 2.0, 0.3)}
    lower_bound_because: ClassVar[str] = (
        "opposite records of the clipping norm move each sampled mean by the sensitivity"
    )

    def calibrate(self, budget, problem, network, horizon):
        """Calibrate the noise of ``private`` gradients, or refuse a finite budget without noise.

        Parameters
        ----------
        budget : Budget
            Privacy budget of the whole run.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        Algorithm
            Copy with calibrated noise.
        """
        if self.gradients == "private":
            return super().calibrate(budget, problem, network, horizon)
        self.check(problem, network)
        return Algorithm.calibrate(self, budget, problem, network, horizon)

    def releases(self, problem, network, horizon):
        """Return the releases of the noisy gradients, or exact releases without noise.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        list of Release
            Mechanisms whose composition bounds the privacy loss.
        """
        if self.gradients == "private":
            return super().releases(problem, network, horizon)
        return [Release("exact", count=int(horizon))]

    def seconds(self, speeds):
        return self.waiting(speeds) + np.reshape(self.T_c, (-1, 1))

    def bits(self, dim):
        return float(FULL_BITS * dim)

    def advance_all(self, models: BatchModels, problem, round_: SampledRound):
        """Compute a round of all settings of a run in one pass, as :meth:`advance` does one by one.

        Parameters
        ----------
        models : BatchModels
            Models and messages of one run, changed in place.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        round_ : SampledRound
            Graph, random numbers and workspace of the run.

        Returns
        -------
        tuple of ndarray, each of shape (settings,), or None
            Fraction of saturated coordinates, and 0 if all models are finite, else NaN. None if
            the pass does not support the arguments.
        """
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
        """Perform one round of one setting and one run, in place.

        Parameters
        ----------
        s : int
            Index of the setting.
        x : ndarray, shape (agents, p)
            Models, changed in place.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        round_ : SampledRound
            Graph, random numbers and workspace of the run.

        Returns
        -------
        float
            Fraction of cut coordinates: 0, since messages are not quantised.
        """
        clip = np.inf if self.gradients == "plain" else float(at(self.K, s))
        gradient, sizes = self.sampled_gradient(s, x, problem, round_, clip)
        scale = self.noise_scale(s, sizes) if self.gradients == "private" else np.zeros(len(x))
        mixed, nothing = round_.mix(round_.mixing, x), np.zeros(len(x))
        alpha, key, counter = float(at(self.alpha, s)), round_.keys["noise"], round_.counter
        descend(x, x, mixed, gradient, nothing, alpha, scale, key, counter)
        return 0.0


ALGORITHM = DSGD
