"""Ding, chapters 2 and 4: zCDP, Renyi differential privacy, noise on a grid."""

import math
from collections.abc import Iterable
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from private_consensus.privacy import gaussian_epsilon, zcdp_rho

from .base import Part, Parts, at_least, bound, grid

ORDERS = np.array([1.1, 1.5, 2.0, 4.0, 10.0, 40.0])


def renyi_divergence(
    log_p: np.ndarray, log_q: np.ndarray, orders: ArrayLike = ORDERS
) -> np.ndarray:
    """Return Renyi divergences, [orders, ...], of discrete distributions, at orders above 1.

    ``log_p`` and ``log_q`` are the logarithms of the probabilities, [..., outcomes].
    """
    orders = np.reshape(orders, (-1,) + (1,) * log_p.ndim)
    return logsumexp(orders * log_p + (1 - orders) * log_q, axis=-1) / (orders[..., 0] - 1)


def divergence_on_grid(
    steps: Iterable[float], sigmas: Iterable[float], shifts: Iterable[int]
) -> Part:
    """Compare Renyi divergences with order Delta^2 / (2 sigma^2), that of Gaussian noise.

    The noise has probabilities in proportion to a normal density on a grid. Delta is a number of
    steps (``shifts``) of the grid.
    """
    stated, measured = [], []
    for step, sigma, shift in product(steps, sigmas, shifts):
        change, outputs = shift * step, step * np.arange(-12_000, 12_001)
        logs = [-((outputs - mean) ** 2) / (2 * sigma**2) for mean in (change, 0)]
        orders = ORDERS[ORDERS * change < 100]  # larger orders need outputs outside of the grid
        stated += list(orders * change**2 / (2 * sigma**2))
        measured += list(renyi_divergence(*(log - logsumexp(log) for log in logs), orders))
    return bound("Renyi divergence", stated, measured, 1e-6)


def definition_1() -> Parts:
    """Compute delta at epsilon 0 of two disjoint distributions, by single outputs and by sets.

    The output is uniform on 1,000 values, and on 1,000 other values for the neighbouring data set.
    """
    probabilities = np.full(1000, 1 / 1000)  # 0 on the neighbouring data set
    largest, total = probabilities.max(), probabilities.sum()
    return (bound("delta of the set of all values", largest, total).marked(erratum="E4.15"),)


def lemma_3() -> Parts:
    """Test the conversions from pure DP to zCDP and, by the shortcut, to (epsilon, delta).

    Randomised response at five values of epsilon; exact epsilon of Gaussian noise for five budgets,
    delta = 1e-4. The shortcut omits the term rho.
    """
    epsilon = np.array([0.01, 0.1, 1.0, 3.0, 10.0])
    p = 1 / (1 + np.exp(-epsilon))
    log_response = np.log(np.stack([p, 1 - p], -1))
    largest_rho = (renyi_divergence(log_response, log_response[:, ::-1]) / ORDERS[:, None]).max(0)
    budgets = np.array([0.5, 1.0, 2.0, 5.0, 10.0])
    exact = gaussian_epsilon(np.sqrt(2 * zcdp_rho(budgets, 1e-4, conversion="shortcut")), 1e-4)
    shortcut = bound("epsilon of a Gaussian with rho = eps^2/(4 ln(1/delta))", budgets, exact)
    return (
        bound("rho of an epsilon-DP answer", epsilon**2 / 2, largest_rho),
        shortcut.marked("main", "E4.0"),
    )


def lemma_8() -> Parts:
    """Test the divergence bound for Poisson-sampled Gaussian noise at order 2.

    Six pairs of sampling rate and noise. At order 2 the cited bound is exact, with the factor
    1/(rho - 1); the published factor 1/rho is half as large.
    """
    rate, mu = grid((0.01, 0.1, 0.5), (0.2, 1.0))
    exact = np.log1p(rate**2 * np.expm1(mu**2))  # mu^2 is the divergence of Gaussian noise
    published = np.log((1 - rate) * (1 + rate) + rate**2 * np.exp(mu**2)) / 2
    return (bound("Renyi divergence of order 2", published, exact).marked("main", "E4.12"),)


def theorem_14() -> Parts:
    """Compare the divergence of the discrete Gaussian with that of the continuous Gaussian.

    Three sigma, three shifts, up to six orders, by sums over the integers.
    """
    return (divergence_on_grid((1.0,), (0.5, 1.0, 2.0), (1, 2, 3)),)


def corollary_1() -> Parts:
    """Compare the divergence of Gaussian noise on a grid of step eta with the stated bound.

    Three steps of the grid, two sigma, two shifts, up to six orders.
    """
    return (divergence_on_grid((0.05, 0.5, 2.0), (0.5, 1.0), (1, 3)),)


def corollary_2() -> Parts:
    """Compare both bounds on the variance of Gaussian noise on a grid with the exact variance.

    eta = 0.1, 0.5 and 2, two sigma. The published bounds omit the factor eta^2: below eta = 1 the
    lower bound is too large, above it the upper bound is too small.
    """
    eta, sigma = grid((0.1, 0.5, 2.0), (0.3, 1.0))
    variance, k = sigma**2 / eta**2, np.arange(-400, 401)
    log = -(k**2) / (2 * variance[:, None])
    exact = (np.exp(log - logsumexp(log, axis=1, keepdims=True)) * k**2).sum(1)
    x = 4 * math.pi**2 * variance
    upper = variance * (1 - x / np.expm1(np.minimum(x, 700.0)))
    lower = 1 / np.expm1(np.minimum(1 / variance, 700.0))
    return (
        bound("variance, from above, with the factor eta^2", upper, exact, 1e-6),
        at_least("variance, from below, with the factor eta^2", lower, exact, 1e-6),
        bound("variance, from above", upper, eta**2 * exact).marked("detail", "E4.8d"),
        at_least("variance, from below", lower, eta**2 * exact).marked("detail", "E4.8d"),
    )
