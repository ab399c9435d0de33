r"""What an actual attack on a noised batch attains: a loss computed, not sampled.

Accountants of sampled batches are upper bounds. One pair of data sets shows how far up a loss
really goes: all records of an agent have the same gradient of length K, and one of them has the
opposite one or not. With :math:`\gamma = s/m` for a batch of s of m records, and :math:`\mu_s` the
sensitivity over the noise's deviation, its noised mean is, along that gradient,

.. math:: P_s = (1-\gamma)\,N(0, 1) + \gamma\,N(\mu_s, 1) \quad\text{or}\quad Q = N(0, 1).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from ..privacy.subsampling import SampledNoise

STEP, LARGEST = 1e-4, 100.0
CELLS, REACH = 100_000, 12.0


@lru_cache(maxsize=64)
def least_epsilon(noise: SampledNoise, sigma: float, rounds: int, delta: float) -> float:
    """Epsilon below which ``rounds`` batches, whose sizes are seen, are not private at ``delta``.

    Outcomes are joined in cells and losses rounded down, so that for this pair of data sets no
    smaller epsilon is possible; replacement of one record.

    Parameters
    ----------
    noise : SampledNoise
        Gaussian, ``fixed_size``.
    sigma : float
        Noise multiplier, above 0.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld  # slow to import

    shifts = np.asarray(noise.losses) / sigma
    edges = np.linspace(-REACH, REACH + shifts.max(), CELLS + 1)
    base = _log_masses(edges)
    largest = math.floor(LARGEST / STEP)
    found = np.zeros(2 * largest + 1)
    for shift, rate, weight in zip(shifts, noise.rates, noise.batches.probabilities, strict=True):
        moved = _log_masses(edges - shift)
        with np.errstate(divide="ignore"):  # rates of 0 and 1
            one = np.logaddexp(np.log1p(-rate) + base, np.log(rate) + moved)
        loss = np.minimum(np.floor((one - base) / STEP).astype(int), largest)
        kept = loss >= -largest  # the others count as if they never happened
        found += weight * np.bincount(loss[kept] + largest, np.exp(one[kept]), found.size)
    masses = {int(k) - largest: float(found[k]) for k in np.flatnonzero(found)}
    once = pld.PrivacyLossDistribution.create_from_rounded_probability(
        masses, 0.0, STEP, pessimistic_estimate=False
    )
    return float(once.self_compose(rounds).get_epsilon_for_delta(delta))


def _log_masses(edges: np.ndarray) -> np.ndarray:
    """Logarithm of a standard normal's mass in each cell, however far out."""
    middle = (edges[1:] + edges[:-1]) / 2
    near = np.where(middle > 0, -edges[:-1], edges[1:])
    far = np.where(middle > 0, -edges[1:], edges[:-1])
    larger, smaller = log_ndtr(near), log_ndtr(far)
    return larger + np.log1p(-np.exp(smaller - larger))
