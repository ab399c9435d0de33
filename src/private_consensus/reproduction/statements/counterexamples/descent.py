"""Errata of Showkatbakhsh et al.: gradient descent with consensus (E0)."""

from __future__ import annotations

import math

import numpy as np

from private_consensus.core import networks
from private_consensus.core.algorithms.families.descent_theorems import theorem_1_allowance
from private_consensus.core.algorithms.gradient_descent import GradientDescent
from private_consensus.core.problems import mean_estimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget, gaussian_epsilon, gaussian_mu

from .base import ErratumResult, erratum, finding

AGENTS, HORIZON = 6, 10


def _mean_estimation(runs: int = 3):
    """Build the problem, a ring of agents and the random streams of some runs."""
    streams = Streams(1, tuple(range(runs)))
    problem = mean_estimation.build(streams, AGENTS, records=50, dim=3, box=5.0)
    return problem, networks.build(streams, "ring", AGENTS), streams


def _final_observables(algorithm, problem, network, streams) -> dict:
    """Return the quantities that a run shows after its last iteration."""
    observables: dict = {}
    horizon = np.array([HORIZON])
    algorithm.run(
        problem, network, streams, horizon, lambda t, active, now: observables.update(now)
    )
    return observables


@erratum("E0.1")
def exact_last_message() -> ErratumResult:
    """Reconstruct the gradient of each agent from its last message, which has no noise."""
    problem, network, streams = _mean_estimation()
    relative_errors = {}
    for stage_two in ("literal", "repaired"):
        algorithm = GradientDescent(stage_two=stage_two)
        calibrated = algorithm.calibrate(Budget(1.0, 1e-6), problem, network, HORIZON)
        relative_errors[stage_two] = float(
            _final_observables(calibrated, problem, network, streams)["reconstruction"].max()
        )
    description = (
        f"{AGENTS} agents estimate a mean at epsilon 1, delta 1e-6, T = {HORIZON}. An eavesdropper "
        "computes each agent's mean of records from its messages: z + T (y(T+1)-z). Relative error "
        f"if the last message is x(T): {relative_errors['literal']:.1e}; if it is x(T) + n(T): "
        f"{relative_errors['repaired']:.3g}."
    )
    holds = relative_errors["literal"] < 1e-9 < relative_errors["repaired"]
    return finding("epsilon", 1.0, math.inf, holds, description)


@erratum("E0.2")
def generous_theorem() -> ErratumResult:
    """Compare the mu^2 that Theorem 1 permits with that of the exact condition."""
    pairs = [
        (delta, theorem_1_allowance(4.0, delta), float(gaussian_mu(4.0, delta)) ** 2)
        for delta in (1e-3, 1e-6, 1e-9)
    ]
    texts = [
        f"delta {delta:g}: mu^2 at most {paper:.3f} by Theorem 1, {exact:.3f} exactly"
        for delta, paper, exact in pairs
    ]
    return finding(
        "mu^2", pairs[0][1], pairs[0][2], all(p < e for _, p, e in pairs), "; ".join(texts) + "."
    )


@erratum("E0.3")
def proposition_2() -> ErratumResult:
    """Test the noise of Proposition 2, which does not square the sensitivity."""
    epsilon, delta, change = 0.9, 1e-5, 4.0
    sigma = math.sqrt(2 * math.log(1.25 / delta) * change) / epsilon
    exact = float(gaussian_epsilon(change / sigma, delta))
    squared = float(gaussian_epsilon(math.sqrt(change) / sigma, delta))
    problem, network, _ = _mean_estimation()
    budget = Budget(1.0, 1e-6)
    noise = [
        GradientDescent(sensitivity=kind).calibrate(budget, problem, network, HORIZON).noise
        for kind in ("record", "lipschitz")
    ]
    ratio = noise[1] / noise[0]
    description = (
        f"With sigma^2 = 2 ln(1.25/delta) Delta_2 / epsilon^2, Delta_2 = {change:g} and epsilon = "
        f"{epsilon:g}, the exact epsilon is {exact:.2f}; with Delta_2^2 it is {squared:.2f}. For "
        f"{problem.records} records per agent, the sensitivity 2G of the local sum requires "
        f"{ratio:g} times the noise for the change by one record. The experiments use the change "
        "by one record."
    )
    holds = exact > epsilon >= squared and abs(ratio / problem.records - 2) < 1e-9
    return finding("epsilon", epsilon, exact, holds, description)


@erratum("E0.4")
def released_average() -> ErratumResult:
    """Compute the squared distance of the mean released model to the mean of x(T)."""
    problem, network, streams = _mean_estimation(runs=400)
    calibrated = GradientDescent().calibrate(Budget(1.0, 1e-3), problem, network, HORIZON)
    observables = _final_observables(calibrated, problem, network, streams)
    difference = (observables["released"] - observables["internal"]).mean(-2)
    distance = float((difference**2).sum(-1).mean())
    first_step = 1.0 / problem.records
    scale = calibrated.noise * first_step * HORIZON**-calibrated.decay
    expected = problem.dim * scale**2 / AGENTS
    description = (
        f"Theorem 2 concerns the mean of x(T). The squared distance of the mean of the sent models "
        f"to this mean is {distance:.3g}; the expected value p M_T^2 / N is {expected:.3g}."
    )
    holds = abs(distance / expected - 1) < 0.25
    return finding("squared distance of the two averages", 0.0, distance, holds, description)


@erratum("E0.5")
def harmonic_sum() -> ErratumResult:
    """Test that the sum of 1/t is above ln T."""
    horizon = 1000
    total = float((1 / np.arange(1, horizon + 1)).sum())
    description = (
        f"T = {horizon}: the sum is {total:.3f}, ln T is {math.log(horizon):.3f}, and 1 + ln T is "
        "a bound."
    )
    holds = total > math.log(horizon)
    return finding("sum of 1/t up to T", math.log(horizon), total, holds, description)


@erratum("E0.6")
def two_roots() -> ErratumResult:
    """Compare the square root of T in Corollary 2 with the fourth root that its proof gives."""
    horizon = 1000
    published, proven = horizon**-0.5, horizon**-0.25
    description = (
        f"At T = {horizon}, the factor is {proven:.3f} in twice the bound of Theorem 2, and "
        f"{published:.4f} in (17). No case was found in which the smaller bound fails."
    )
    return finding("factor of the third term", published, proven, proven > published, description)


@erratum("E0.9")
def double_sums() -> ErratumResult:
    """Compare the last term of the bound with the double sum that (20), (26) and (27) give."""
    horizon, beta = 1000, 0.9
    s = np.arange(1, horizon)
    powers = (beta - beta ** (horizon - s + 1.0)) / (1 - beta)  # sum of beta^(t-s), t = s+1 to T
    double_sum = 2 * float((powers / s).sum()) / horizon
    stated = math.log(horizon) / (horizon * (1 - beta))
    description = (
        f"T = {horizon}, beta = {beta:g}, in units of G^2 N eta_1^2: (35) is {stated:.3g}. By (26) "
        "and (27) an iteration adds 2 eta_t G sqrt(N) times the distance (20), which contains "
        f"sqrt(N) G times the sum of eta_s beta^(t-s). The sum over t is {double_sum:.3g}. In the "
        "same way the noise in (20), twice the sum of |n(s)| beta^(t-s), gets the factor 4, where "
        "(29) and (30) have 2."
    )
    return finding("double sum of the steps", stated, double_sum, double_sum > stated, description)
