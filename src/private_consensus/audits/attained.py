r"""What actual attacks on sampled batches attain: losses computed, not sampled.

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

from ..privacy import discrete_gaussian_pmf
from ..privacy.subsampling import Batches, SampledNoise

STEP, LARGEST = 1e-4, 100.0
CELLS, REACH, FARTHEST = 100_000, 12.0, 200


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


def least_epsilon_from_zero(
    batches: Batches, records: int, step: float, deviation: float, dim: int, delta: float
) -> float:
    r"""Epsilon below which Q-DPSGD-2 is not private at ``delta`` if all models start at 0.

    All records have gradient 0, and one may have K in equal parts along all axes. Without it the
    second message is 0 but for its noise N; with it, and in the batch, the model is
    :math:`q_s/\sqrt p` steps of the grid from 0 along each axis, and rounded away from 0 with
    that probability. The event is that some coordinate is not 0:

    .. math:: \epsilon \ge \ln\frac{\sum_s p_s\gamma_s
        \bigl(1-(1-q_s\Pr[N=0]/\sqrt p)^p\bigr) - \delta}{p\,\Pr[N\ne0]}

    Later messages can only add to it.

    Parameters
    ----------
    step : float
        How far a batch of one record would move the model, in steps of the grid:
        :math:`aeK/\eta = s q_s`.
    deviation : float
        Of the discrete Gaussian N, in steps of the grid.
    """
    noisy = 2.0 * float(discrete_gaussian_pmf(np.arange(1, FARTHEST), deviation**2).sum())
    sizes = np.asarray(batches.sizes, float)
    moved = np.minimum(step / np.maximum(sizes, 1) / np.sqrt(dim), 1.0) * (sizes > 0)
    noticed = -np.expm1(dim * np.log1p(-moved * (1.0 - noisy)))
    one = float(np.asarray(batches.probabilities) @ (sizes / records * noticed))
    other = min(dim * noisy, 1.0)
    return max(0.0, math.log((one - delta) / other)) if one > delta else 0.0


def _log_masses(edges: np.ndarray) -> np.ndarray:
    """Logarithm of a standard normal's mass in each cell, however far out."""
    middle = (edges[1:] + edges[:-1]) / 2
    near = np.where(middle > 0, -edges[:-1], edges[1:])
    far = np.where(middle > 0, -edges[1:], edges[:-1])
    larger, smaller = log_ndtr(near), log_ndtr(far)
    return larger + np.log1p(-np.exp(smaller - larger))
