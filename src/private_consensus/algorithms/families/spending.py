"""How a budget becomes noise that is scheduled, and what papers charge for it. Not an algorithm.

An algorithm with such noise has the fields ``law``, ``noise``, ``growth`` and ``calibration``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import require
from ...privacy import calibrate

GIVEN = "given"
CALIBRATIONS = ("accountant", "formula", GIVEN)


def calibrated(algorithm: Any, budget, problem, network, horizon: int) -> Any:
    """A copy with the noise for a budget, of an algorithm that has one noise."""
    require(horizon >= 1, "horizon", horizon, "a whole number >= 1")
    if algorithm.noise_is_given:
        return algorithm
    if not budget.private:
        return replace(algorithm, noise=0.0)
    return replace(algorithm, noise=least_noise(algorithm, budget, problem, network, horizon))


def least_noise(algorithm: Any, budget, problem, network, horizon: int) -> float:
    """Scale of the noise that spends a budget, by the accountant or by the formula."""
    if algorithm.calibration == "formula":
        return _by_formula(algorithm, budget, problem, network, horizon)

    def made(noise):
        return replace(algorithm, noise=noise).releases(problem, network, horizon)

    return calibrate(made, budget)


def _by_formula(algorithm: Any, budget, problem, network, horizon: int) -> float:
    """The formulas have the form a / noise + b."""
    at_1, at_2 = (
        replace(algorithm, noise=s).epsilon_by_formula(budget.delta, problem, network, horizon)
        for s in (1.0, 2.0)
    )
    fixed, falling = 2 * at_2 - at_1, 2 * (at_1 - at_2)
    expected = f"above {fixed:g}, which no noise avoids"
    require(budget.epsilon > fixed, "budget.epsilon", budget.epsilon, expected)
    return falling / (budget.epsilon - fixed)


def largest_sum(losses: Iterable[Any]) -> float:
    """Sum over iterations of a paper's losses [settings, runs, agents, 1], of the agent that loses
    most."""
    return float(np.max(sum(losses)))


def spent_after(spent: np.ndarray, loss: Any) -> np.ndarray:
    """Add one more loss to the accumulated losses of agents, [settings, runs, agents]."""
    return spent + np.asarray(loss)[..., 0]


def printed_change(problem) -> float:
    r"""Paper 001's :math:`\mathcal B_\infty = 1/b_i`: the weight of one record.

    Right for labels in {0, 1} and features in [0, 1] only (errata E1.3); what is right in general
    is ``problem.record_change("linf")``.
    """
    return getattr(problem, "weight", None) or problem.record_change("linf")
