r"""Showkatbakhsh et al.: unnumbered statements about step sizes and noise scales.

Consider quadratics without projection and with curvature :math:`\mu` everywhere, and let
:math:`a = \mu\eta_1 = (\mu+L)/(2L)`. An agent's x(T) then contains the noise of step s times
:math:`\prod_{r=s+1}^{T}(1 - a/r)`, so that its mean square is an exact sum.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from private_consensus.core.algorithms.families.descent_theorems import (
    advanced_composition_allowance,
    theorem_1_allowance,
)
from private_consensus.core.networks import laplacian
from private_consensus.privacy import gaussian_epsilon

from .base import Parts, at_least, bound, falls_as, geometric, grid
from .common import adjacency_of


def _noise_at_the_end(T: int, a: float, scales: np.ndarray) -> float:
    """Return the mean square of x(T) for squared noise ``scales`` at steps s = 1, ..., T - 1."""
    s = np.arange(1, T)
    log = gammaln(T + 1 - a) - gammaln(T + 1) - gammaln(s + 1 - a) + gammaln(s + 1)
    return float((np.exp(2 * log) * scales[: T - 1]).sum())


def rate_to_the_ball() -> Parts:
    """Test the rate at which the exact error converges to its limit, for two quotients L / mu.

    Exact sums for quadratics without projection, T from 100 to 100,000. The distance of the error
    to its limit falls faster than T^(-1/4): as 1/T at L = mu, and as T^(-1/2) if L is large.
    """
    horizons = np.unique(np.geomspace(100, 1e5, 13).astype(int))
    inequalities = []
    for quotient in (1.0, 50.0):
        a = (1 + quotient) / (2 * quotient)
        limit = 1 / (2 * a - 0.5)
        errors = [
            _noise_at_the_end(T, a, math.sqrt(T) * np.arange(1.0, T) ** -1.5) for T in horizons
        ]
        quantity = f"exponent of T at L = {quotient:g} mu"
        inequalities.append(falls_as(quantity, horizons, np.abs(np.array(errors) - limit), 0.25))
    return tuple(inequalities)


def rate_of_stage_two() -> Parts:
    """Test that the disagreement of agents decays at a linear rate in Stage II, on three graphs.

    Six agents with the weights of section V. The first 30 rounds, in which fast modes vanish, are
    omitted; the decay is that of the next 60 rounds.
    """
    rng, k, inequalities = np.random.default_rng(1), np.arange(60), []
    for name in ("path", "star", "ring"):
        graph_laplacian = laplacian(adjacency_of(name, 6))
        W = np.eye(6) - 2 / (3 * np.linalg.eigvalsh(graph_laplacian)[-1]) * graph_laplacian
        x = np.linalg.matrix_power(W, 30) @ rng.normal(size=6)
        disagreement = []
        for _ in k:
            disagreement.append(np.linalg.norm(x - x.mean()))
            x = W @ x
        inequalities.append(geometric(f"decline of ln distance, {name}", k, disagreement))
    return tuple(inequalities)


def scales_of_noise() -> Parts:
    """Compare the error at the noise scales of Theorem 2 with that at others of equal budget.

    T = 1,000, equal sums of eta_t^2 / M_t^2, 63 other scales: the stated scales minimise the term
    of the bound, but not the error of the mean (mu = L, no projection). The reason is that (30)
    replaces the weight s^2/T^2 by the larger s/T.
    """
    T = 1000
    t = np.arange(1.0, T + 1)
    stated_squares = t**-1.5

    def at_equal_budget(squares: np.ndarray) -> np.ndarray:
        """Scale squared noise scales so that (15) is an equality."""
        return squares * (1 / (t**2 * squares)).sum()

    rng = np.random.default_rng(2)
    other_squares = [t**-power for power in np.linspace(0, 3, 13)]
    other_squares += [stated_squares * np.exp(rng.normal(size=T)) for _ in range(50)]
    second_terms = [
        (t * at_equal_budget(squares)).sum() for squares in (stated_squares, *other_squares)
    ]
    mean_errors = [(t**2 * at_equal_budget(squares)).sum() for squares in (stated_squares, t**-2)]
    return (
        at_least("second term of (30), other scales over the stated", 1.0,
                 np.array(second_terms[1:]) / second_terms[0]),
        at_least("error of the mean, scales M_t = 1/t over the stated", 1.0,
                 mean_errors[1] / mean_errors[0]).marked("detail"),
    )  # fmt: skip


EPSILONS, DELTAS = (0.1, 0.5, 0.99), (1e-2, 1e-4, 1e-9)


def remark_1() -> Parts:
    """Compare the noise that (14) requires with that of other theorems.

    Nine budgets. Advanced composition of 1, 10 and 1,000 steps never permits less noise.
    """
    epsilon, delta = grid(EPSILONS, DELTAS)
    pairs = list(zip(epsilon, delta, strict=True))
    permitted = np.array([theorem_1_allowance(*pair) for pair in pairs])
    composed = [advanced_composition_allowance(*pair, T) for pair in pairs for T in (1, 10, 1000)]
    return (
        at_least("sum Delta^2/M^2 by (14), against advanced composition", composed,
                 np.repeat(permitted, 3)),
    )  # fmt: skip


def remark_3() -> Parts:
    """Compare small epsilon with the exact epsilon of the noise that (16) permits.

    Nine budgets. (16) leaves epsilon out of the denominator of (14).
    """
    epsilon, delta = grid((1e-3, 1e-2, 0.1), (1e-4, 1e-6, 1e-9))
    mu = epsilon / np.sqrt(2 * np.log(2 / delta))
    return (bound("epsilon", epsilon, gaussian_epsilon(mu, delta)),)
