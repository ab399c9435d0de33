"""Errata of Gratton et al.: D-ZOA (E2)."""

from __future__ import annotations

import math

import numpy as np

from private_consensus.core.algorithms.families.consensus_admm import total_epsilon
from private_consensus.privacy import gaussian_epsilon

from ..zeroth_order import deviation_of_the_output, noise_of_theorem_1
from .base import ErratumResult, erratum, finding

DELTA = 1e-3


def _mu_of_noise(epsilon: float) -> float:
    """Return the Gaussian-DP parameter mu of the noise (25), for an epsilon per iteration."""
    return epsilon / math.sqrt(2.1 * math.log(1.25 / DELTA))


@erratum("E2.1")
def vanishing_noise() -> ErratumResult:
    """Compare the standard deviation of the output with the noise that Theorem 1 assumes."""
    epsilon = 0.15
    claimed, deviation = noise_of_theorem_1(epsilon), deviation_of_the_output(epsilon)
    description = (
        f"The inner loop has the steps of (27) at epsilon {epsilon:g}, delta 1e-3, L = 1. The "
        f"standard deviation of its output is {deviation:.2g}; Theorem 1 assumes Gaussian noise of "
        f"{claimed:.3f}. Each step contracts the randomness of the preceding steps, and no draw is "
        "independent of the data."
    )
    return finding(
        "standard deviation of the output", claimed, deviation, deviation < claimed / 2, description
    )


@erratum("E2.2")
def upper_bound_as_variance() -> ErratumResult:
    """Compute epsilon at the actual standard deviation of the output."""
    epsilon = 0.15
    ratio = noise_of_theorem_1(epsilon) / deviation_of_the_output(epsilon)
    exact = float(gaussian_epsilon(ratio * _mu_of_noise(epsilon), DELTA))
    description = (
        f"With the steps of (27) and L = 1, the standard deviation of the output is "
        f"{1 / ratio:.3f} of the upper bound of Lemma 2. Gaussian noise of this standard deviation "
        f"has epsilon {exact:.2f}."
    )
    return finding("epsilon of an iteration", epsilon, exact, exact > epsilon, description)


@erratum("E2.4")
def private_step() -> ErratumResult:
    """Compute the norm of the optimum, on which the step depends, for two neighbours."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    first, second = (
        float(np.linalg.norm(np.linalg.lstsq(X, y, rcond=None)[0]))
        for y in (np.array([1.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0]))
    )
    description = (
        "Two neighbouring data sets of three records differ in one response, 2 or 1. The norms of "
        f"their optima are {first:.4f} and {second:.4f}. These norms enter the step of (27). "
        "The adversary of section III-D observes the estimates only, and no attack is known."
    )
    holds = abs(first - second) > 1e-3
    return finding("norm of the optimum of a neighbour", first, second, holds, description)


@erratum("E2.5")
def composition() -> ErratumResult:
    """Compare the total epsilon (29) with the exact total of Gaussian noise."""
    claimed = float(total_epsilon(1.0, DELTA, 200))
    exact = float(gaussian_epsilon(_mu_of_noise(1.0) * math.sqrt(200), DELTA))
    small_budget_total = float(gaussian_epsilon(_mu_of_noise(0.15) * math.sqrt(200), DELTA))
    description = (
        f"200 iterations of Gaussian noise at epsilon 1, delta 1e-3: (29) gives {claimed:.1f}, the "
        f"exact value is {exact:.1f}. At epsilon 0.15 per iteration, (29) gives "
        f"{float(total_epsilon(0.15, DELTA, 200)):.2f}, and the exact value is "
        f"{small_budget_total:.2f}: there, (29) is an upper bound."
    )
    return finding("total epsilon", claimed, exact, exact > claimed, description)


@erratum("E2.6")
def unbounded_gradient() -> ErratumResult:
    """Compute a gradient that exceeds c1 = 1 although all features are normalised."""
    response = 10.0
    norm = abs(2 * response)
    exact = float(gaussian_epsilon(norm * _mu_of_noise(0.15), DELTA))
    description = (
        f"For |x| = 1, y = {response:g} and beta = 0, the norm |2x(x'beta - y)| of the gradient is "
        f"{norm:g}, but c1 = 1 is assumed. Noise for c1 = 1 then has epsilon {exact:.2f}."
    )
    return finding("epsilon of an iteration", 0.15, exact, exact > 0.15, description)


@erratum("E2.7")
def one_point_argument() -> ErratumResult:
    """Test the bound on the distance of two minimisers, which follows from monotonicity."""
    samples = 500
    rng = np.random.default_rng(6)
    largest_ratio = 0.0
    for _ in range(samples):
        A, linear_terms, ridge = rng.normal(size=(2, 3, 3)), rng.normal(size=(2, 3)), 0.5
        hessians = [a @ a.T + ridge * np.eye(3) for a in A]
        x = [np.linalg.solve(h, -linear) for h, linear in zip(hessians, linear_terms, strict=True)]
        gradients = [h @ x[1] + linear for h, linear in zip(hessians, linear_terms, strict=True)]
        change = np.linalg.norm(gradients[0] - gradients[1])
        largest_ratio = max(largest_ratio, float(np.linalg.norm(x[0] - x[1]) * ridge / change))
    description = (
        f"{samples} pairs of strongly convex quadratics: the distance is at most "
        f"{largest_ratio:.3f} of the bound. Monotonicity proves this bound; the published "
        "argument, which equates the two minimisers, does not."
    )
    holds = largest_ratio <= 1 + 1e-9
    return finding(
        "distance of minimisers / (change of gradient / curvature)",
        1.0,
        largest_ratio,
        holds,
        description,
    )


@erratum("E2.10")
def inverse_square() -> ErratumResult:
    """Compute the factor of the variance (25) if epsilon is halved."""
    epsilon = 0.5
    factor = (noise_of_theorem_1(epsilon / 2) / noise_of_theorem_1(epsilon)) ** 2
    description = (
        f"The standard deviation (25) at epsilon {epsilon:g} and {epsilon / 2:g}: half of epsilon "
        f"requires {factor:g} times the variance, and twice the standard deviation."
    )
    return finding("variance at half of epsilon, relative", 2.0, factor, factor > 3, description)
