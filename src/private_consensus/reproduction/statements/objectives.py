"""Ding, chapter 3: conclusions of the remarks, and Gaussian against Gamma noise (section 3.5.2)."""

from __future__ import annotations

import math

import numpy as np

from private_consensus.privacy import Budget, gaussian_noise_multiplier

from .admm import DECAY, HORIZONS, excess_of_run
from .base import StatementResult, at_least, bound, conclude, equal, falls_as, grid


def _first_variance(schedule: str, T: int) -> float:
    """Return the factor of the first noise variance that keeps the total privacy loss constant.

    The factor is the sum of 1 / (variance over first variance) over the messages.
    """
    t = np.arange(T)
    if schedule == "periodic":
        return float((DECAY**-t).sum())
    return float((DECAY * np.maximum(t * (t + 1), 1 / DECAY)).sum())


def remark_1() -> StatementResult:
    """Test the rate O(1/T) of both schedules, at a fixed first variance."""
    inequalities, growth = [], []
    for schedule in ("periodic", "iteration"):
        excess = [excess_of_run(schedule, T, 2.0)[0] for T in HORIZONS]
        inequalities.append(falls_as(f"exponent of T, {schedule}", HORIZONS, excess, 1.0))
        first = _first_variance(schedule, int(HORIZONS[0]))
        private_excess = [
            excess_of_run(schedule, T, math.sqrt(_first_variance(schedule, int(T)) / first))[0]
            for T in HORIZONS
        ]
        growth.append(-falls_as("", HORIZONS, private_excess, 1.0).measured)
    return conclude(
        *inequalities,
        description="Five agents on a path with equal quadratics, T from 10 to 300, 100 runs. The "
        "theorems hold the first variance fixed; since late messages have less noise, the total "
        "privacy loss then grows with T. If the first variance keeps the total fixed, the error "
        f"grows with the exponents {growth[0]:.2g} (periodic) and {growth[1]:.2g} of T.",
    )


def _samples(
    gap: np.ndarray,
    reference: np.ndarray,
    tolerance: float | np.ndarray,
    noise: float | np.ndarray = 0.0,
) -> np.ndarray:
    r"""Return the number of samples of Theorems 8 and 9, over V log(1/xi).

    It is :math:`1/(g^2/(2r^2) - (1+a)(\beta + H))`, here with a = 1.
    """
    return 1 / (gap**2 / (2 * reference**2) - 2 * (tolerance + noise))


def _cases() -> np.ndarray:
    """Return the compared gaps a_acc - Delta and norms of the reference; shape (2, cases)."""
    return grid((0.1, 0.3, 1.0), (1.0, 3.0))


def remark_2() -> StatementResult:
    """Test that the number of samples of Theorem 8 grows with the tolerance beta.

    The published number over V log(1/xi), six gaps and references, a = 1. From a beta of gap^2 / (2
    (1+a) |x_ref|^2) on it is negative: no number of samples is enough.
    """
    gap, reference = _cases()
    largest_tolerance = gap**2 / (4 * reference**2)  # beyond it no number suffices
    sizes = [_samples(gap, reference, fraction * largest_tolerance) for fraction in (0.0, 0.3, 0.9)]
    return conclude(
        equal("samples at beta = 0", 2 * reference**2 / gap**2, sizes[0]),
        bound("samples at a smaller beta", sizes[1:], sizes[:-1]),
    )


def remark_3() -> StatementResult:
    """Test that the number of samples of Theorem 9 grows with the dimension.

    The published number over V log(1/xi), six gaps and references, xi = 0.05, deviations of 1e-4,
    1, 10 and 40 features.
    """
    gap, reference = _cases()
    xi, beta = 0.05, 0.0

    def noise(d: int, sigma: float):
        """Return the term H of Theorem 9 for noise of standard deviation ``sigma``."""
        root = math.sqrt(2 * d * math.log(1 / xi))
        return sigma * gap * root / reference**2 + 2 * sigma**2 * d * math.log(1 / xi)

    sigma = 1e-4
    sizes = [_samples(gap, reference, beta, noise(d, sigma)) for d in (1, 10, 40)]
    return conclude(
        equal("samples without noise", _samples(gap, reference, beta),
              _samples(gap, reference, beta, noise(40, 0.0))),
        bound("samples at a smaller dimension", sizes[1:], sizes[:-1]),
    )  # fmt: skip


def gaussian_against_gamma() -> StatementResult:
    r"""Test that expected norms of Gamma noise are at least sqrt d times those of Gaussian noise.

    The density :math:`\propto e^{-\zeta\|b\|}` has :math:`E\|b\| = d/\zeta`. Normal noise has
    :math:`E\|b\| = \sigma\sqrt2\,\Gamma((d+1)/2)/\Gamma(d/2)`.
    """
    d = np.array([1, 2, 10, 41, 104, 1000])
    norms = np.sqrt(2) * np.exp([math.lgamma((n + 1) / 2) - math.lgamma(n / 2) for n in d])
    factors = [
        epsilon * gaussian_noise_multiplier(Budget(epsilon, 1e-4), 1)
        for epsilon in (0.5, 1.0, 10.0)
    ]
    return conclude(
        at_least("improvement, T releases of equal loss in zCDP", np.sqrt(d), d / norms),
        description="An improvement is the quotient of expected norms, d from 1 to 1,000. In zCDP "
        "a pure epsilon_0 costs what sigma = Delta / epsilon_0 costs, and the quotient is above "
        "sqrt d. The text is about accounts in zCDP. A single release with epsilon 0.5, 1 or 10 "
        "and delta = 1e-4 needs a sigma of "
        f"{', '.join(f'{factor:.2g}' for factor in factors)} times Delta / epsilon, so that its "
        "improvement is smaller by this factor.",
    )
