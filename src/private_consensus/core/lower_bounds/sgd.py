"""Attack on decentralized SGD that sends a random fraction of the coordinates."""

from __future__ import annotations

from dataclasses import replace

from scipy.stats import binom

from private_consensus.privacy.subsampling import NoisedBatch, SentInPart

MISSED = 1e-12
"""Probability that a round sends fewer coordinates than the attack assumes."""


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


ATTACKS = {"SDMDSGD": _sent_in_part}
"""Attacks by class. The releases of the other algorithms state what two records with opposite
gradients of the clipping norm attain."""
