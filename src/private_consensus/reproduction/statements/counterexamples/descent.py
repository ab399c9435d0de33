"""Paper 000: gradient descent with consensus (E0)."""

from __future__ import annotations

import math

import numpy as np

from private_consensus.core import networks
from private_consensus.core.algorithms.gradient_descent import GradientDescent, theorem_1_allowance
from private_consensus.core.problems import mean_estimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget, gaussian_epsilon, gaussian_mu

from .base import ErratumResult, finding

AGENTS, HORIZON = 6, 10


def _scene(runs: int = 3):
    streams = Streams(1, tuple(range(runs)))
    problem = mean_estimation.build(streams, AGENTS, records=50, dim=3, box=5.0)
    return problem, networks.build(streams, "ring", AGENTS), streams


def _ended(algorithm, problem, network, streams) -> dict:
    seen: dict = {}
    horizon = np.array([HORIZON])
    algorithm.run(problem, network, streams, horizon, lambda t, active, now: seen.update(now))
    return seen


def exact_last_message() -> ErratumResult:
    """E0.1: x(T) is sent as it is, and all of the gradient follows from it."""
    problem, network, streams = _scene()
    miss = {}
    for stage_two in ("literal", "repaired"):
        algorithm = GradientDescent(stage_two=stage_two)
        noisy = algorithm.calibrate(Budget(1.0, 1e-6), problem, network, HORIZON)
        miss[stage_two] = float(_ended(noisy, problem, network, streams)["reconstruction"].max())
    return finding(
        "epsilon",
        1.0,
        math.inf,
        miss["literal"] < 1e-9 < miss["repaired"],
        f"{AGENTS} agents estimate a mean at epsilon 1, delta 1e-6, T = {HORIZON}.",
        "An eavesdropper computes each agent's mean of records from its "
        "messages: z + T (y(T+1)-z).",
        f"Relative error if the last message is x(T): {miss['literal']:.1e};",
        f"if it is x(T) + n(T): {miss['repaired']:.3g}.",
    )


def generous_theorem() -> ErratumResult:
    """E0.2: Theorem 1 is right and permits less than the exact condition."""
    pairs = [
        (delta, theorem_1_allowance(4.0, delta), float(gaussian_mu(4.0, delta)) ** 2)
        for delta in (1e-3, 1e-6, 1e-9)
    ]
    lines = [
        f"delta {delta:g}: mu^2 at most {paper:.3f} by Theorem 1, {exact:.3f} exactly"
        for delta, paper, exact in pairs
    ]
    return finding("mu^2", pairs[0][1], pairs[0][2], all(p < e for _, p, e in pairs), *lines)


def proposition_2() -> ErratumResult:
    """E0.3: the sensitivity is not squared; 2G of the sum is 2n times too large."""
    epsilon, delta, change = 0.9, 1e-5, 4.0
    sigma = math.sqrt(2 * math.log(1.25 / delta) * change) / epsilon
    found = float(gaussian_epsilon(change / sigma, delta))
    squared = float(gaussian_epsilon(math.sqrt(change) / sigma, delta))
    problem, network, _ = _scene()
    budget = Budget(1.0, 1e-6)
    noise = [
        GradientDescent(sensitivity=kind).calibrate(budget, problem, network, HORIZON).noise.scale
        for kind in ("record", "lipschitz")
    ]
    ratio = noise[1] / noise[0]
    return finding(
        "epsilon",
        epsilon,
        found,
        found > epsilon >= squared and abs(ratio / problem.records - 2) < 1e-9,
        f"sigma^2 = 2 ln(1.25/delta) Delta_2 / epsilon^2, Delta_2 = {change:g}, epsilon "
        f"{epsilon:g}: "
        f"exactly {found:.2f};",
        f"with Delta_2^2 it is {squared:.2f}.",
        f"2G of the local sum in place of one record's change: {ratio:g} times the noise, "
        f"{problem.records} records.",
        "The noise in use takes one record's change.",
    )


def released_average() -> ErratumResult:
    """E0.4: the average of what is released carries the last noise as well."""
    problem, network, streams = _scene(runs=400)
    noisy = GradientDescent().calibrate(Budget(1.0, 1e-3), problem, network, HORIZON)
    seen = _ended(noisy, problem, network, streams)
    gap = (seen["released"] - seen["internal"]).mean(-2)
    found = float((gap**2).sum(-1).mean())
    first = 1.0 / problem.records
    scale = noisy.noise.scale * first * HORIZON**-noisy.decay
    expected = problem.dim * scale**2 / AGENTS
    return finding(
        "squared distance of the two averages",
        0.0,
        found,
        abs(found / expected - 1) < 0.25,
        f"Theorem 2 speaks of the mean of x(T); the mean of what is sent is {found:.3g} from it,",
        f"p M_T^2 / N = {expected:.3g}.",
    )


def harmonic_sum(horizon: int = 1000) -> ErratumResult:
    """E0.5: the sum of 1/t is above ln T, not below it."""
    total = float((1 / np.arange(1, horizon + 1)).sum())
    return finding(
        "sum of 1/t up to T",
        math.log(horizon),
        total,
        total > math.log(horizon),
        f"T = {horizon}: {total:.3f}; ln T = {math.log(horizon):.3f}, and 1 + ln T is a bound.",
    )


def two_roots(horizon: int = 1000) -> ErratumResult:
    """E0.6: Corollary 2 follows from Theorem 2 with its fourth root, not with a square root."""
    printed, proven = horizon**-0.5, horizon**-0.25
    return finding(
        "factor of the third term",
        printed,
        proven,
        proven > printed,
        f"T = {horizon}: twice Theorem 2 has {proven:.3f} where (17) prints {printed:.4f}; no case",
        "was found in which the smaller bound fails.",
    )
