"""Ding, chapter 2 and the discrete Gaussian: zCDP and Renyi differential privacy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from private_consensus.privacy import (
    discrete_gaussian_pmf,
    gaussian_epsilon,
    pure_rho,
    zcdp_epsilon,
    zcdp_rho,
)

from .base import Part, StatementResult, at_least, bound, conclude, grid

ORDERS = np.array([1.1, 1.5, 2.0, 4.0, 10.0, 40.0])


def renyi_divergence(
    log_p: np.ndarray, log_q: np.ndarray, orders: ArrayLike = ORDERS
) -> np.ndarray:
    """Return Renyi divergences, [orders, ...], of discrete distributions, at orders above 1.

    ``log_p`` and ``log_q`` are the logarithms of the probabilities, [..., outcomes].
    """
    orders = np.reshape(orders, (-1,) + (1,) * log_p.ndim)
    return logsumexp(orders * log_p + (1 - orders) * log_q, axis=-1) / (orders[..., 0] - 1)


def log_normal(mean: float, sigma: float, grid: np.ndarray) -> np.ndarray:
    """Return log-probabilities on an equidistant grid that are proportional to a normal density."""
    log = -((grid - mean) ** 2) / (2 * sigma**2)
    return log - logsumexp(log)


def _random_distributions(seed: int, outcomes: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return log-probabilities of 2,000 pairs of random distributions."""
    rng = np.random.default_rng(seed)
    log_p, log_q = np.log(rng.dirichlet(np.ones(outcomes), size=(2, 2000)))
    return log_p, log_q


def _at_most_gaussian(
    cases: Iterable[tuple[np.ndarray, np.ndarray, float, float, np.ndarray]],
) -> Part:
    """Compare Renyi divergences with order Delta^2 / (2 sigma^2), that of Gaussian noise.

    Each case has the log-probabilities of both distributions, Delta, sigma^2 and the orders.
    """
    stated, measured = [], []
    for log_p, log_q, change, variance, orders in cases:
        stated += list(orders * change**2 / (2 * variance))
        measured += list(renyi_divergence(log_p, log_q, orders))
    return bound("Renyi divergence", stated, measured, 1e-6)


def gaussian_divergence() -> StatementResult:
    """Compare the divergence of Gaussian noise by Lemmas 1 and 5 with sums over a fine grid."""
    cases = []
    for change, sigma in product((0.1, 1.0, 3.0), (0.7, 2.0)):
        outputs = np.arange(-60, 60, 0.01) * sigma
        log_p, log_q = (log_normal(mean, sigma, outputs) for mean in (change, 0))
        cases.append((log_p, log_q, change, sigma**2, ORDERS[ORDERS * change / sigma < 40]))
    divergence = _at_most_gaussian(cases)
    return conclude(
        divergence,
        description=f"{divergence.points} combinations of change, sigma and order; stated and "
        "computed divergence are equal.",
    )


def serial_composition() -> StatementResult:
    """Test the composition of Lemmas 2 and 6 for random adaptive pairs of mechanisms.

    2,000 pairs at six orders. The distribution of the second answer depends on the first answer.
    """
    first_p, first_q = _random_distributions(1, outcomes=3)
    rng = np.random.default_rng(2)
    second_p, second_q = np.log(rng.dirichlet(np.ones(3), size=(2, 2000, 3)))
    joint = [(a[..., None] + b).reshape(2000, 9) for a, b in ((first_p, second_p),
                                                              (first_q, second_q))]  # fmt: skip
    stated = renyi_divergence(first_p, first_q) + renyi_divergence(second_p, second_q).max(-1)
    return conclude(bound("divergence of two answers", stated, renyi_divergence(*joint)))


def lemma_3() -> StatementResult:
    """Test the conversions from pure DP to zCDP and, by the shortcut, to (epsilon, delta)."""
    epsilon = np.array([0.01, 0.1, 1.0, 3.0, 10.0])
    p = 1 / (1 + np.exp(-epsilon))
    log_response = np.log(np.stack([p, 1 - p], -1))
    largest_rho = (renyi_divergence(log_response, log_response[:, ::-1]) / ORDERS[:, None]).max(0)
    budgets = np.array([0.5, 1.0, 2.0, 5.0, 10.0])
    rho = zcdp_rho(budgets, 1e-4, conversion="shortcut")
    return conclude(
        bound("rho of an epsilon-DP answer", epsilon**2 / 2, largest_rho),
        bound("epsilon of a Gaussian with rho = eps^2/(4 ln(1/delta))", budgets,
              gaussian_epsilon(np.sqrt(2 * rho), 1e-4)),
        description="Randomised response at five values of epsilon; exact epsilon of Gaussian "
        "noise for five budgets, delta = 1e-4. The smallest possible rho of the first bound is "
        f"{float(pure_rho(1.0)):.3f} at epsilon 1. The shortcut omits the term rho and fails at "
        "epsilon = 10 (errata E4.0).",
        compound=True,
    )  # fmt: skip


def lemma_4() -> StatementResult:
    """Compare the zCDP conversion to (epsilon, delta) with the exact epsilon of Gaussian noise.

    15 pairs of rho and delta, Gaussian noise, whose divergences reach rho at all orders.
    """
    rho, delta = grid((1e-3, 0.01, 0.1, 1.0, 10.0), (1e-2, 1e-4, 1e-8))
    stated = [zcdp_epsilon(r, d, conversion="safe") for r, d in zip(rho, delta, strict=True)]
    return conclude(bound("epsilon", stated, gaussian_epsilon(np.sqrt(2 * rho), delta)))


def lemma_7() -> StatementResult:
    """Test the conversion from Renyi DP to (epsilon, delta) for random pairs of distributions.

    2,000 pairs of distributions, three orders, three delta.
    """
    p, q = _random_distributions(3)
    pairs = []
    for order, delta in product((1.5, 2.0, 8.0), (0.3, 0.05, 1e-3)):
        epsilon = renyi_divergence(p, q, [order])[0] + math.log(1 / delta) / (order - 1)
        needed = np.clip(np.exp(p) - np.exp(epsilon[:, None] + q), 0, None).sum(-1)
        pairs.append((delta, needed.max()))
    return conclude(bound("delta", *np.array(pairs).T))


def lemma_8() -> StatementResult:
    """Test the divergence bound for Poisson-sampled Gaussian noise at order 2.

    Six pairs of sampling rate and noise. At order 2 the cited bound is exact. Its factor is
    1/(rho - 1); the published factor 1/rho is half as large.
    """
    rate, mu = grid((0.01, 0.1, 0.5), (0.2, 1.0))
    full = mu**2  # the divergence of order 2 of Gaussian noise
    exact = np.log1p(rate**2 * np.expm1(full))
    published = np.log((1 - rate) * (1 + rate) + rate**2 * np.exp(full)) / 2
    return conclude(bound("Renyi divergence of order 2", published, exact))


def lemma_11() -> StatementResult:
    """Test parallel composition, where one record changes the distribution of one answer only.

    2,000 pairs of distributions next to an answer that does not use the record.
    """
    p, q = _random_distributions(4, outcomes=3)
    unchanged, _ = _random_distributions(5, outcomes=3)
    joint = [(unchanged[..., None] + logs[:, None, :]).reshape(2000, 9) for logs in (p, q)]
    stated = np.maximum(renyi_divergence(p, q), 0)
    return conclude(bound("divergence of both parts", stated, renyi_divergence(*joint), 1e-6))


def theorem_14() -> StatementResult:
    """Compare the divergence of the discrete Gaussian with that of the continuous Gaussian.

    Three variances, three shifts, four orders, by sums over the integers (E4.8c).
    """
    cases, k = [], np.arange(-60, 64)
    for variance, shift in product((0.3, 1.0, 4.0), (1, 2, 3)):
        with np.errstate(divide="ignore"):
            log_p, log_q = (np.log(discrete_gaussian_pmf(k - s, variance)) for s in (shift, 0))
        finite = np.isfinite(log_p) & np.isfinite(log_q)
        cases.append((log_p[finite], log_q[finite], shift, variance, ORDERS[:4]))
    return conclude(_at_most_gaussian(cases))


def corollary_1() -> StatementResult:
    """Compare the divergence of Gaussian noise on a grid of step eta with the stated bound.

    Three steps of the grid, two sigma, two shifts, four orders.
    """
    cases, k = [], np.arange(-200, 210)
    for eta, sigma, shift in product((0.05, 0.5, 2.0), (0.5, 1.0), (1, 3)):
        log_p, log_q = (log_normal(0, sigma, (k - s) * eta) for s in (shift, 0))
        cases.append((log_p, log_q, shift * eta, sigma**2, ORDERS[:4]))
    return conclude(_at_most_gaussian(cases))


def _discrete_variance(variance: np.ndarray) -> np.ndarray:
    """Return the variance of the discrete Gaussian for each parameter sigma^2."""
    k = np.arange(-400, 401)
    log = -(k**2) / (2 * variance[:, None])
    weight = np.exp(log - logsumexp(log, axis=1, keepdims=True))
    return (weight * k**2).sum(1)


def _variance_bound(variance: np.ndarray) -> np.ndarray:
    """Return the published upper bound on the variance of the discrete Gaussian."""
    x = 4 * math.pi**2 * variance
    return variance * (1 - x / np.expm1(np.minimum(x, 700.0)))


def proposition_2() -> StatementResult:
    """Compare both bounds on the variance of the discrete Gaussian with sums over the integers.

    Seven sigma^2 from 0.02 to 10.
    """
    variance = np.array([0.02, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0])
    exact = _discrete_variance(variance)
    with np.errstate(over="ignore"):
        lower = 1 / np.expm1(1 / variance)
    return conclude(
        bound("variance, from above", _variance_bound(variance), exact, 1e-6),
        at_least("variance, from below", lower, exact, 1e-6),
    )


def corollary_2() -> StatementResult:
    """Compare both bounds on the variance of Gaussian noise on a grid with the exact variance.

    sigma^2 / eta^2 is the variance in steps of the grid: below eta = 1 the lower bound is too
    large, above it the upper bound is too small (errata E4.8d).
    """
    eta, sigma = grid((0.1, 0.5, 2.0), (0.3, 1.0))
    ratio = sigma**2 / eta**2
    exact = eta**2 * _discrete_variance(ratio)
    with np.errstate(over="ignore"):
        lower = 1 / np.expm1(1 / ratio)
    return conclude(
        bound("variance, from above, eta = 0.1, 0.5, 2", _variance_bound(ratio), exact),
        at_least("variance, from below", lower, exact),
    )
