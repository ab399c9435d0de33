"""Calibration of scheduled noise to a budget, and the privacy losses that papers state for it.

This module is not an algorithm. An algorithm with such noise has the fields ``law``,
``noise``, ``growth`` and ``calibration``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import calibrate

from ..base import GIVEN

CALIBRATIONS = ("accountant", "formula", GIVEN)


def calibrated(algorithm: Any, budget, problem, network, horizon: int) -> Any:
    """Return a copy with the noise for a budget, for an algorithm with one noise.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm with the fields listed above.
    budget : Budget
        Privacy budget of the whole run.
    problem : Problem
        Objectives and data of the agents, with their sensitivities.
    network : Network
        Communication graph with its mixing matrix.
    horizon : int
        Number of iterations.

    Returns
    -------
    Algorithm
        The algorithm itself if its noise is fixed.
    """
    if algorithm.noise_is_given:
        return algorithm
    if not budget.private:
        return replace(algorithm, noise=0.0)
    return replace(algorithm, noise=least_noise(algorithm, budget, problem, network, horizon))


def least_noise(algorithm: Any, budget, problem, network, horizon: int) -> float:
    """Return the noise scale that meets a finite budget, by the accountant or by the formula.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm with the fields listed above.
    budget : Budget
        Privacy budget of the whole run.
    problem : Problem
        Objectives and data of the agents, with their sensitivities.
    network : Network
        Communication graph with its mixing matrix.
    horizon : int
        Number of iterations.

    Returns
    -------
    float
        Value for the field ``noise``.
    """
    if algorithm.calibration == "formula":
        return _by_formula(algorithm, budget, problem, network, horizon)

    def made(noise):
        return replace(algorithm, noise=noise).releases(problem, network, horizon)

    return calibrate(made, budget)


def _by_formula(algorithm: Any, budget, problem, network, horizon: int) -> float:
    """Return the noise scale at which the paper's formula gives the budget's epsilon.

    The formulas have the form a / noise + b.
    """
    at_1, at_2 = (
        replace(algorithm, noise=s).epsilon_by_formula(budget.delta, problem, network, horizon)
        for s in (1.0, 2.0)
    )
    fixed, falling = 2 * at_2 - at_1, 2 * (at_1 - at_2)
    expected = f"above {fixed:g}, the privacy loss that remains with any noise"
    require(budget.epsilon > fixed, "budget.epsilon", budget.epsilon, expected)
    return falling / (budget.epsilon - fixed)


def largest_sum(losses: Iterable[Any]) -> float:
    """Return the sum over iterations of the losses of the agent with the largest sum.

    Losses of an iteration are [settings, runs, agents, 1].
    """
    return float(np.max(sum(losses)))


def spent_after(accumulated: np.ndarray, loss: Any) -> np.ndarray:
    """Add one more loss to the accumulated losses of agents.

    Parameters
    ----------
    accumulated : ndarray, shape (settings, runs, agents)
        Accumulated losses.
    loss : ndarray
        Loss of an iteration, broadcastable to [settings, runs, agents, 1].

    Returns
    -------
    ndarray, shape (settings, runs, agents)
        New accumulated losses.
    """
    return accumulated + np.asarray(loss)[..., 0]


def printed_change(problem) -> float:
    r"""Return the :math:`\mathcal B_\infty = 1/b_i` of Xiao et al., the weight of one record.

    It is right only for labels in {0, 1} and features in [0, 1] (errata E1.3). The bound that
    holds in general is ``problem.record_change("linf")``.
    """
    return getattr(problem, "weight", None) or problem.record_change("linf")
