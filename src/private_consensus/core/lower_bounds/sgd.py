"""Attacks on decentralized SGD with random batches (Ding)."""

from __future__ import annotations

from dataclasses import replace

from scipy.stats import binom

from private_consensus.privacy.subsampling import NoisedBatch, SentInPart

from . import Attack

MISSED = 1e-12
"""Probability that a round sends fewer coordinates than the attack assumes."""


def _as_declared(algorithm, problem, network, horizon, releases):
    # The releases of a noisy batch state the loss distribution that a pair attains.
    return releases


def _sent_in_part(algorithm, problem, network, horizon, releases):
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


ATTACKS = {
    "QDPSGD1": Attack(
        "records with gradients of norm K change a sampled mean by the stated sensitivity",
        _as_declared,
    ),
    "CanaryAudit": Attack(
        "records of the clipping norm move the sampled mean by at least the steps that are stated",
        _as_declared,
    ),
    "DSGD": Attack(
        "two records with opposite gradients of norm K change a sampled mean by the sensitivity",
        _as_declared,
    ),
    "SDMDSGD": Attack(
        "two records with opposite gradients of norm K change a sampled mean by the sensitivity",
        _sent_in_part,
    ),
}
"""Attacks by class."""
