r"""Ding: sentences on inexact minimisers, binomial noise and the privacy of one attribute.

They are in sections 3.4, 4.4 and 6.2.1. All computations are sums over densities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import gammaln, ndtr

from private_consensus.core.algorithms.families.functional_mechanism import paper_sensitivity
from private_consensus.privacy import discrete_gaussian_pmf

from .base import StatementResult, at_least, bound, conclude
from .common import smallest_sufficient


@dataclass(frozen=True)
class InexactMinimiser:
    r"""Gradient descent that stops at a gradient of at most beta, on a noisy quadratic.

    The objective is :math:`\frac m2 x^2 + (g + b)x` with normal noise b. Descent starts at 0 with
    the step 1/L, so that :math:`x_k = x^* (1 - r^k)` with :math:`r = 1 - m/L`. The output
    increases with the minimiser and jumps where the number of steps grows, so that some outputs
    are impossible.

    Parameters
    ----------
    curvature, gradient : float
        m and g of the records.
    noise : float
        Standard deviation of b.
    step_size : float
        1/L.
    """

    curvature: float
    gradient: float
    noise: float
    tolerance: float
    step_size: float

    @property
    def rate(self) -> float:
        """Factor r of the distance to the minimiser per step."""
        return 1 - self.curvature * self.step_size

    def steps(self, minimiser: np.ndarray) -> np.ndarray:
        """Return the number of steps until the gradient is at most beta."""
        first = np.abs(minimiser) * self.curvature / self.tolerance
        ratio = np.log(np.maximum(first, 1.0)) / -math.log(self.rate)
        return np.ceil(ratio - 1e-12)

    def output(self, minimiser: np.ndarray) -> np.ndarray:
        """Return the point at which descent stops."""
        return minimiser * (1 - self.rate ** self.steps(minimiser))

    def below(self, minimiser: np.ndarray) -> np.ndarray:
        """Return the probability that the minimiser is below the given values."""
        return ndtr((self.curvature * minimiser + self.gradient) / self.noise)

    def gaps(self, max_steps: int = 60) -> np.ndarray:
        """Return the intervals of positive outputs that never occur, shape (gaps, 2)."""
        powers = self.rate ** np.arange(max_steps)
        last = self.tolerance / (self.curvature * powers)  # largest minimiser with k steps
        return np.stack([last * (1 - powers), last * (1 - powers * self.rate)], axis=1)

    def largest_minimiser(self, output: np.ndarray) -> np.ndarray:
        """Return the largest minimiser whose output is at most the given positive value."""
        gaps, k = self.gaps(), np.arange(60)
        branch = np.searchsorted(gaps[:, 1], output, side="right")
        inverse = output / np.maximum(1 - self.rate**branch, 1e-300)
        last = self.tolerance / (self.curvature * self.rate**k)
        return np.minimum(inverse, last[np.minimum(branch, 59)])


def impossible_mass(run: InexactMinimiser, neighbour: InexactMinimiser) -> float:
    """Return the probability of outputs that never occur on the neighbouring data.

    It is the delta that every finite epsilon needs at least.
    """
    low, high = neighbour.gaps().T
    ends = [np.where(edge > 0, run.largest_minimiser(edge), 0.0) for edge in (low, high)]
    # Both signs: the output is an odd function of the minimiser.
    positive = run.below(ends[1]) - run.below(ends[0])
    negative = run.below(-ends[0]) - run.below(-ends[1])
    inside = low > 0
    return float((positive + negative)[inside].sum())


def noisy_delta(
    run: InexactMinimiser, neighbour: InexactMinimiser, output_noise: float, epsilon: float
) -> float:
    """Return the delta of an inexact minimiser with normal noise on the output, at an epsilon.

    It is the hockey-stick divergence, by sums over a grid. ``output_noise`` is the standard
    deviation.
    """
    width = 9 * run.noise / run.curvature
    minimisers = np.linspace(-width, width, 60_001)
    bins = np.arange(-1.05 * width, 1.05 * width, output_noise / 12)
    kernel_at = np.arange(-84, 85)
    kernel = np.exp(-((kernel_at / 12) ** 2) / 2)
    densities = []
    for descent in (run, neighbour):
        masses = np.diff(descent.below(minimisers))
        centres = descent.output((minimisers[1:] + minimisers[:-1]) / 2)
        histogram, _ = np.histogram(centres, bins, weights=masses)
        densities.append(np.convolve(histogram, kernel / kernel.sum()))
    first, second = densities
    return float(np.clip(first - math.exp(epsilon) * second, 0, None).sum())


def sentence_2() -> StatementResult:
    """Compute the privacy loss of an inexact minimiser, without and with noise on the output."""
    delta, budget, tolerance = 1e-4, 0.1, 10**-3.5
    leaks, deltas, leak_texts = [], [], []
    for records, slowest in product((100, 7000), (2.25, 20.0)):
        noise = 2 * math.sqrt(2 * math.log(1.25 / delta)) / (records * budget)
        descent, neighbour = (
            InexactMinimiser(2.0 + curvature, gradient, noise, tolerance, 1 / slowest)
            for curvature, gradient in ((0.0, 0.0), (0.25 / records, 2.0 / records))
        )
        leaks.append(max(impossible_mass(descent, neighbour), impossible_mass(neighbour, descent)))
        # rho_2 that costs a tenth of the budget at delta.
        rho = (math.sqrt(math.log(1 / delta) + budget / 10) - math.sqrt(math.log(1 / delta))) ** 2
        output_noise = tolerance / (math.sqrt(2 * rho) * 2.0)
        deltas.append(noisy_delta(descent, neighbour, output_noise, 1.1 * budget))
        leak_texts.append(f"{leaks[-1]:.1g} ({records} records, step 1/{slowest:g})")
    return conclude(
        at_least("probability of an output that the neighbour excludes, no output noise", delta,
                 leaks[1::2]),
        bound("delta at the sum of both epsilon, published output noise", 2 * delta, deltas),
        description=(
            "One dimension, curvature 2 = 2 eta |V_i| of the penalty. A record moves the curvature "
            "by 1/4 and the gradient by 2 over the number of records. Epsilon is 0.1 and delta "
            "1e-4 for the objective, beta = 10^-3.5, and gradient descent starts at 0. Its "
            "stopping rule leaves gaps between outputs, and the curvature of a record moves them, "
            "so that outputs occur for one data set only, with probability "
            + "; ".join(leak_texts)
            + ". No finite epsilon holds at a smaller delta. Long steps stop early and leak "
            "least. Data of equal curvature leak nothing. The published noise on the output "
            "repairs the example; in general it needs twice the scale (errata E4.4)."
        ),
    )  # fmt: skip


def _hockey_stick(log_mass: np.ndarray, shift: int, epsilon: float) -> float:
    """Return the exact delta of integer noise at an epsilon and a sensitivity ``shift``."""
    mass = np.exp(log_mass)
    moved = np.concatenate([np.zeros(shift), mass[:-shift]])
    return float(np.clip(mass - math.exp(epsilon) * moved, 0, None).sum())


def _binomial_delta(trials: int, shift: int, epsilon: float) -> float:
    """Return the exact delta of centred binomial noise with probability 1/2."""
    k = np.arange(trials + 1)
    log_mass = gammaln(trials + 1) - gammaln(k + 1) - gammaln(trials - k + 1)
    padded = np.concatenate([np.full(shift, -np.inf), log_mass - trials * math.log(2)])
    return _hockey_stick(np.concatenate([padded, np.full(shift, -np.inf)]), shift, epsilon)


def least_binomial_variance(epsilon: float, delta: float, shift: int) -> float:
    """Return the smallest variance of binomial noise for a budget, by bisection of the exact delta.

    The number of trials is doubled until it meets the budget. ``shift`` is the sensitivity in steps
    of the grid.
    """
    low, high = shift, 2 * shift
    while _binomial_delta(high, shift, epsilon) > delta:
        low, high = high, 2 * high
    while high - low > max(1, high // 2000):
        middle = (low + high) // 2
        meets_budget = _binomial_delta(middle, shift, epsilon) <= delta
        low, high = (low, middle) if meets_budget else (middle, high)
    return high / 4


def least_gaussian_variance(epsilon: float, delta: float, shift: int) -> float:
    """Return the smallest variance of discrete Gaussian noise for a budget, in squared steps.

    It is the parameter sigma^2, which is the variance up to rounding. ``shift`` is the sensitivity
    in steps of the grid.
    """

    def meets_budget(variance: float) -> bool:
        reach = math.ceil(12 * math.sqrt(variance)) + shift
        with np.errstate(divide="ignore"):
            log_mass = np.log(discrete_gaussian_pmf(np.arange(-reach, reach + 1), variance))
        return _hockey_stick(log_mass, shift, epsilon) <= delta

    return smallest_sufficient(meets_budget, 0.1, 50_000.0)


def variance_by_analysis(epsilon: float, delta: float, shift: int) -> float:
    r"""Return the variance N / 4 of binomial noise for which Theorem 1 of [63] proves a budget.

    One dimension, :math:`p = 1/2`, unit scale. The theorem also requires :math:`Np(1-p) \ge
    \max(23\ln(10/\delta), 2\Delta)`. ``shift`` is the sensitivity in steps of the grid, and the
    variance is in squared steps.
    """
    b_p, c_p, d_p = 1 / 3, math.sqrt(2) * 1.75, 2 / 3
    min_variance = max(23 * math.log(10 / delta), 2.0 * shift)
    second = shift * (c_p * math.sqrt(math.log(10 / delta)) + b_p) / (1 - delta / 10)
    third = shift * (2 / 3 * math.log(1.25 / delta)
                     + d_p * math.log(20 / delta) * math.log(10 / delta))  # fmt: skip

    def meets_budget(variance: float) -> bool:
        first = shift * math.sqrt(2 * math.log(1.25 / delta) / variance)
        return first + (second + third) / variance <= epsilon

    if meets_budget(min_variance):
        return min_variance
    return smallest_sufficient(meets_budget, min_variance, 1e9)


def sentence_3() -> StatementResult:
    """Compare the variances of binomial and discrete Gaussian noise at equal budgets."""
    exact, analysed = [], []
    binomial = np.exp(gammaln(41) - gammaln(np.arange(1, 42)) - gammaln(np.arange(41, 0, -1)))
    first, second = np.append(binomial, 0.0) / 2.0**40, np.append(0.0, binomial) / 2.0**40
    with np.errstate(divide="ignore"):
        divergence = float(np.log((first**2 / second).sum()))  # order 2, 40 trials, one step
    for epsilon, shift in product((0.5, 1.0, 4.0), (1, 8)):
        gaussian = least_gaussian_variance(epsilon, 1e-5, shift)
        exact.append(least_binomial_variance(epsilon, 1e-5, shift) / gaussian)
        analysed.append(variance_by_analysis(epsilon, 1e-5, shift) / gaussian)
    return conclude(
        at_least("Renyi divergence of order 2 at a variance of 10, Gaussian noise from below", 0.1,
                 divergence),
        at_least("variance by the analysis of [63] over that of Gaussian noise", 2.0,
                 max(analysed)),
        at_least("exact variance at an equal budget over that of Gaussian noise", 2.0, exact),
        description="One release on a grid, delta = 1e-5, epsilon 0.5 to 4, a sensitivity of 1 "
        "and 8 steps; a variance twice as large counts as large. Binomial noise excludes outputs "
        "for a neighbour, so that its Renyi divergence is infinite and a moments accountant "
        f"gives no guarantee. With the analysis of [63] its variance is {min(analysed):.2g} to "
        f"{max(analysed):.3g} times that of Gaussian noise. The exact delta needs "
        f"{min(exact):.3g} to {max(exact[:-2]):.3g} times up to epsilon 1, and {exact[-2]:.2g} "
        "times where epsilon 4 and a sensitivity of one step leave few outcomes. The analysis "
        "requires more variance than the noise itself.",
        compound=True,
    )  # fmt: skip


def attribute_loss(dim: int, epsilon_selected: float) -> float:
    r"""Return the largest privacy loss in PDFC if one record changes in the selected attribute.

    A change of :math:`x_s` from 0 to 1 moves its linear coefficient by at most 3/2 and the
    quadratic ones by 1/8 and, twice each, by 1/8. Their noise has the scale
    :math:`\Delta_1/\epsilon_s`. There are d attributes.
    """
    change = 1.5 + (2 * (dim - 1) + 1) / 8
    return epsilon_selected * change / paper_sensitivity("l1", dim, fair=True)


def sentence_4() -> StatementResult:
    """Compare the privacy loss by the selected attribute with that at equal noise levels."""
    stated, measured, loss_ratios = [], [], []
    for dim, split in product((5, 13, 41), (0.01, 0.1, 0.5)):
        epsilon_n = dim / (split + dim - 1)  # total epsilon 1
        stated.append(attribute_loss(dim, 1.0))
        measured.append(attribute_loss(dim, split * epsilon_n))
        loss_ratios.append(measured[-1] / stated[-1])
    return conclude(
        bound("loss of x_s at an equal total epsilon, smaller eps_s over an equal split", stated,
              measured),
        description="d = 5, 13 and 41, eps_s over eps_n of 0.01 to 0.5, the total of Theorem 18 "
        f"equal to 1: the loss by x_s alone is {min(loss_ratios):.2g} to {max(loss_ratios):.2g} "
        "times that of an equal split, because all coefficients of x_s have the larger noise. It "
        "hides x_s from an observer who knows the other attributes. Noise on coefficients "
        "changes no correlation of x_s and z in the data; claims test the risk difference of the "
        "model.",
    )  # fmt: skip
