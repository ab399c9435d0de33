"""Noise that meets a budget, by the accountant or by the formula of a paper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from private_consensus.common.errors import require
from private_consensus.privacy import calibrate
from private_consensus.privacy.mechanisms import Exact


def calibrated(algorithm: Any, budget, problem, network, horizon: int) -> Any:
    """Return a copy of an algorithm with one noise, calibrated to a budget; itself if it is fixed.

    The field ``noise`` is a scale. The rule ``calibration`` is "formula" for the paper's formula.
    """
    if algorithm.noise_is_given:
        return algorithm
    if not budget.private:
        return replace(algorithm, noise=0.0)
    return replace(algorithm, noise=least_noise(algorithm, budget, problem, network, horizon))


def least_noise(algorithm: Any, budget, problem, network, horizon: int) -> float:
    """Return the smallest noise scale that meets a finite budget, by accountant or formula.

    The field ``calibration`` of the algorithm names the rule.
    """
    if getattr(algorithm, "calibration", "") == "formula":
        return _by_formula(algorithm, budget, problem, network, horizon)
    declared = replace(algorithm, noise=1.0).mechanisms(problem, network, horizon)
    exact = [name for name, mechanism in declared.items() if isinstance(mechanism, Exact)]
    expected = f"inf, since this algorithm is not private: no noise on {', '.join(exact)}"
    require(not exact, "budget.epsilon", budget.epsilon, expected)

    def releases_at(noise):
        return replace(algorithm, noise=noise).releases(problem, network, horizon)

    return calibrate(releases_at, budget)


def _by_formula(algorithm: Any, budget, problem, network, horizon: int) -> float:
    """Return the noise scale at which the paper's formula equals the epsilon of the budget.

    All formulas have the form a / noise + b, which two values determine.
    """
    at_1, at_2 = (
        replace(algorithm, noise=s).claimed_epsilon(budget.delta, problem, network, horizon)
        for s in (1.0, 2.0)
    )
    # Solve a + b = at_1 and a/2 + b = at_2.
    constant, factor = 2 * at_2 - at_1, 2 * (at_1 - at_2)
    expected = f"above {constant:g}, the privacy loss that remains with any noise"
    require(budget.epsilon > constant, "budget.epsilon", budget.epsilon, expected)
    return factor / (budget.epsilon - constant)
