"""Epsilon that the paper of an algorithm claims for a run, per neighbouring relation."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from private_consensus.privacy import Budget

from .algorithms.base import Algorithm, is_built_in
from .algorithms.families.consensus_admm import total_epsilon
from .networks import Network
from .problems import Problem


def claims_of(
    algorithm: Algorithm, budget: Budget, problem: Problem, network: Network, horizon: int
) -> list[tuple[Any, float]]:
    """Return the claimed epsilon of one run, per neighbouring relation.

    The claimed epsilon is that of the budget, or that of the paper's formula if the noise does not
    depend on the budget. :data:`CLAIMS` lists the papers with other claims. The result has pairs of
    a copy of the algorithm with the relation, and the claimed epsilon. The relation of the
    algorithm is the first.
    """
    claim = _by_formula if algorithm.noise_is_given else _of_the_budget
    if is_built_in(algorithm):
        claim = CLAIMS.get(type(algorithm).__name__, claim)
    return claim(algorithm, budget, problem, network, horizon)


def epsilon_by_formula(
    algorithm: Algorithm, delta: float, problem: Problem, network: Network, horizon: int
) -> float:
    """Return the epsilon of the paper's formula; infinite at delta 0 if it divides by delta."""
    try:
        return algorithm.claimed_epsilon(delta, problem, network, horizon)
    except ZeroDivisionError:
        if delta > 0:
            raise
        return float("inf")


def is_budget_of_one_iteration(algorithm: Algorithm) -> bool:
    """Return True if the paper's budget is that of one iteration, and its claim is the total."""
    return CLAIMS.get(type(algorithm).__name__) is _of_all_iterations


def _of_the_budget(algorithm, budget, problem, network, horizon):
    return [(algorithm, budget.epsilon)]


def _by_formula(algorithm, budget, problem, network, horizon):
    return [(algorithm, epsilon_by_formula(algorithm, budget.delta, problem, network, horizon))]


def _of_all_iterations(algorithm, budget, problem, network, horizon):
    """Return (29) of Gratton et al.: the budget is that of one iteration."""
    total = total_epsilon(budget.epsilon, budget.delta, horizon)
    return [(algorithm, total if algorithm.noise else np.inf)]


def _per_unit(algorithm, budget, problem, network, horizon):
    """Return the claim of Wang et al. for one measurement, and for all measurements of an agent.

    For one measurement, it is the epsilon of one message (Theorem 4.5), or that of all messages for
    a schedule without such a theorem.
    """
    total = algorithm.claimed_epsilon(budget.delta, problem, network, horizon)
    is_total = algorithm.schedule == "exponential" or not algorithm.noise
    claimed = {"measurement": total if is_total else 1.0 / algorithm.noise, "stream": total}
    units = sorted(claimed, key=algorithm.unit.__ne__)
    return [(replace(algorithm, unit=unit), claimed[unit]) for unit in units]


def _unless_emulated(algorithm, budget, problem, network, horizon):
    """Return no claim for noise that emulates more records than there are."""
    return [(algorithm, np.inf if algorithm.emulated else budget.epsilon)]


CLAIMS: dict[str, Callable[..., list[tuple[Any, float]]]] = {
    "CanaryAudit": _by_formula,
    "DPADMM": _of_all_iterations,
    "DPCI": _per_unit,
    "DPCIMoments": _per_unit,
    "DZOA": _of_all_iterations,
    "ExactADMM": _of_all_iterations,
    "FairClassification": _unless_emulated,
    "Pflr": _unless_emulated,
}
"""Claims of papers by class, unless the claim is the epsilon of the budget."""
