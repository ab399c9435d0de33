"""Attack on decentralized SGD that sends a random fraction of the coordinates."""

import math
from dataclasses import dataclass, replace

from scipy.stats import binom

from private_consensus.privacy.subsampling import NoisedBatch

MISSED = 1e-12
"""Probability that a round sends fewer coordinates than the attack assumes."""


@dataclass(frozen=True)
class SentInPart(NoisedBatch):
    """Privacy profile of a noisy batch of which only some coordinates are sent.

    ``share`` is the smallest sent fraction of the coordinates, for a gradient that is equal in all
    coordinates, and ``missed`` the probability that fewer coordinates are sent.
    """

    share: float = 1.0
    missed: float = 0.0

    @property
    def components(self) -> tuple[tuple[float, float, float], ...]:
        r"""Weight, :math:`\gamma` and reduced :math:`\mu_s` of each size.

        The reduction is the square root of ``share``. Batches of which fewer coordinates are sent
        are not counted.
        """
        sent, factor = 1.0 - self.missed, math.sqrt(self.share)
        return tuple((p * sent, rate, mu * factor) for p, rate, mu in super().components)


def _sent_in_part(algorithm, problem, network, horizon, releases):
    """Return the loss of two records with opposite gradients in the sent coordinates."""
    if algorithm.sigma == 0:
        return releases
    fraction = float(binom.ppf(MISSED, problem.dim, algorithm.c)) / problem.dim
    attacks = []
    for release in releases:
        batch = release.profile
        assert isinstance(batch, NoisedBatch)
        profile = SentInPart(batch.noise, batch.sigma, fraction, MISSED)
        attacks.append(replace(release, attack=replace(release, profile=profile)))
    return attacks
