"""Calibration of noise with a geometric schedule, and accumulated losses by the papers' formulas.

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
    """Return a copy of an algorithm with one noise, calibrated to a budget.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm with the fields ``law``, ``noise``, ``growth`` and ``calibration``.
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
    """Return the smallest noise scale that meets a finite budget, by accountant or formula.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm whose field ``calibration`` names the rule.
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

    def releases_at(noise):
        return replace(algorithm, noise=noise).releases(problem, network, horizon)

    return calibrate(releases_at, budget)


def _by_formula(algorithm: Any, budget, problem, network, horizon: int) -> float:
    """Return the noise scale at which the paper's formula equals the epsilon of the budget.

    All formulas have the form a / noise + b, which two values determine.
    """
    at_1, at_2 = (
        replace(algorithm, noise=s).epsilon_by_formula(budget.delta, problem, network, horizon)
        for s in (1.0, 2.0)
    )
    constant, factor = 2 * at_2 - at_1, 2 * (at_1 - at_2)
    expected = f"above {constant:g}, the privacy loss that remains with any noise"
    require(budget.epsilon > constant, "budget.epsilon", budget.epsilon, expected)
    return factor / (budget.epsilon - constant)


def largest_sum(losses: Iterable[Any]) -> float:
    """Sum the losses of an agent over iterations, and return the largest sum.

    ``losses`` has one array [settings, runs, agents, 1] per iteration.
    """
    return float(np.max(sum(losses)))


def add_loss(accumulated: np.ndarray, loss: Any) -> np.ndarray:
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


def published_change(problem) -> float:
    r"""Return the published sensitivity :math:`\mathcal B_\infty = 1/b_i` of Xiao et al.

    It is the weight of one record. It bounds the change of a gradient per coordinate only for
    labels in {0, 1} and features in [0, 1] (errata E1.3). ``problem.record_change("linf")`` is a
    bound in general.
    """
    return getattr(problem, "weight", None) or problem.record_change("linf")
