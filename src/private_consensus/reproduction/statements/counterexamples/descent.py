"""Paper 000: gradient descent with consensus (E0)."""

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


def _scene(runs: int = 3):
    streams = Streams(1, tuple(range(runs)))
    problem = mean_estimation.build(streams, AGENTS, records=50, dim=3, box=5.0)
    return problem, networks.build(streams, "ring", AGENTS), streams


def _ended(algorithm, problem, network, streams) -> dict:
    observables: dict = {}
    horizon = np.array([HORIZON])
    algorithm.run(
        problem, network, streams, horizon, lambda t, active, now: observables.update(now)
    )
    return observables


@erratum("E0.1")
def exact_last_message() -> ErratumResult:
    """Reconstruct the gradient of an agent from its last message, which has no noise."""
    problem, network, streams = _scene()
    miss = {}
    for stage_two in ("literal", "repaired"):
        algorithm = GradientDescent(stage_two=stage_two)
        noisy = algorithm.calibrate(Budget(1.0, 1e-6), problem, network, HORIZON)
        miss[stage_two] = float(_ended(noisy, problem, network, streams)["reconstruction"].max())
    description = (
        f"{AGENTS} agents estimate a mean at epsilon 1, delta 1e-6, T = {HORIZON}. An eavesdropper "
        "computes each agent's mean of records from its messages: z + T (y(T+1)-z). Relative error "
        f"if the last message is x(T): {miss['literal']:.1e}; if it is x(T) + n(T): "
        f"{miss['repaired']:.3g}."
    )
    return finding("epsilon", 1.0, math.inf, miss["literal"] < 1e-9 < miss["repaired"], description)


@erratum("E0.2")
def generous_theorem() -> ErratumResult:
    """Compare Theorem 1 with the exact condition, which permits a larger loss."""
    pairs = [
        (delta, theorem_1_allowance(4.0, delta), float(gaussian_mu(4.0, delta)) ** 2)
        for delta in (1e-3, 1e-6, 1e-9)
    ]
    lines = [
        f"delta {delta:g}: mu^2 at most {paper:.3f} by Theorem 1, {exact:.3f} exactly"
        for delta, paper, exact in pairs
    ]
    return finding(
        "mu^2", pairs[0][1], pairs[0][2], all(p < e for _, p, e in pairs), "; ".join(lines) + "."
    )


@erratum("E0.3")
def proposition_2() -> ErratumResult:
    """Test Proposition 2, in which the sensitivity is not squared."""
    epsilon, delta, change = 0.9, 1e-5, 4.0
    sigma = math.sqrt(2 * math.log(1.25 / delta) * change) / epsilon
    exact = float(gaussian_epsilon(change / sigma, delta))
    squared = float(gaussian_epsilon(math.sqrt(change) / sigma, delta))
    problem, network, _ = _scene()
    budget = Budget(1.0, 1e-6)
    noise = [
        GradientDescent(sensitivity=kind).calibrate(budget, problem, network, HORIZON).noise.scale
        for kind in ("record", "lipschitz")
    ]
    ratio = noise[1] / noise[0]
    description = (
        f"sigma^2 = 2 ln(1.25/delta) Delta_2 / epsilon^2, Delta_2 = {change:g}, epsilon "
        f"{epsilon:g}: exactly {exact:.2f}; with Delta_2^2 it is {squared:.2f}. 2G of the local "
        f"sum in place of one record's change: {ratio:g} times the noise, {problem.records} "
        "records. The noise in use takes one record's change."
    )
    return finding(
        "epsilon",
        epsilon,
        exact,
        exact > epsilon >= squared and abs(ratio / problem.records - 2) < 1e-9,
        description,
    )


@erratum("E0.4")
def released_average() -> ErratumResult:
    """Compare the mean of the released models with that of x(T): it contains the last noise."""
    problem, network, streams = _scene(runs=400)
    noisy = GradientDescent().calibrate(Budget(1.0, 1e-3), problem, network, HORIZON)
    observables = _ended(noisy, problem, network, streams)
    gap = (observables["released"] - observables["internal"]).mean(-2)
    distance = float((gap**2).sum(-1).mean())
    first = 1.0 / problem.records
    scale = noisy.noise.scale * first * HORIZON**-noisy.decay
    expected = problem.dim * scale**2 / AGENTS
    description = (
        f"Theorem 2 concerns the mean of x(T); the mean of the sent models is {distance:.3g} from "
        f"it, p M_T^2 / N = {expected:.3g}."
    )
    return finding(
        "squared distance of the two averages",
        0.0,
        distance,
        abs(distance / expected - 1) < 0.25,
        description,
    )


@erratum("E0.5")
def harmonic_sum() -> ErratumResult:
    """Test that the sum of 1/t is above ln T."""
    horizon = 1000
    total = float((1 / np.arange(1, horizon + 1)).sum())
    return finding(
        "sum of 1/t up to T",
        math.log(horizon),
        total,
        total > math.log(horizon),
        f"T = {horizon}: {total:.3f}; ln T = {math.log(horizon):.3f}, and 1 + ln T is a bound.",
    )


@erratum("E0.6")
def two_roots() -> ErratumResult:
    """Compare the square root of T in Corollary 2 with the fourth root that its proof gives."""
    horizon = 1000
    printed, proven = horizon**-0.5, horizon**-0.25
    description = (
        f"T = {horizon}: twice Theorem 2 has {proven:.3f} where (17) states {printed:.4f}; no case "
        "was found in which the smaller bound fails."
    )
    return finding("factor of the third term", printed, proven, proven > printed, description)
