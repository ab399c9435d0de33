"""Privacy cost of correlated noise, for every combination of the changes of single iterations.

The derived noise site takes the noise of an iteration for independent of all other noise. Noise
that is correlated between agents or iterations is accounted jointly instead: mu is the length of
the whitened changes. If the messages are :math:`b + J\\xi`, the change of iteration t needs the
draws :math:`u_t = J^+(b_t - b)`, where only this iteration uses the other data set. Whatever signs
the changes have, the length of the sum is at most

.. math:: \\Big(\\sum_{s,t} |u_s \\cdot u_t|\\Big)^{1/2}.

The changes may have any directions, because the noise of all coordinates has to be independent and
equally distributed. Repeated noise explains no change of a single iteration. It has no bound.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from private_consensus.core.algorithms.base import Algorithm, Iterative, overrides
from private_consensus.core.randomness import generator

from .exact_costs import SLACK_OF_SHIFT
from .judging import DeclaredSetting, neighbouring_steps
from .neighbours import Attack
from .noise_response import Executed, Layout, OtherMessages, response, shift
from .replay import with_step
from .streams import ROOT

JOINT_SITE = "noise of all iterations together"
DERIVED_SITE = (
    "the noise of the draw is tested as independent noise, because noise_sites is not overridden; "
    "if its correlation is accounted, let noise_sites return an empty list"
)
EQUAL = 1e-9
"""Largest relative difference of equal numbers."""
PREDICTED = 400
"""Random draws for which the messages have to be affine in the noise."""


class _OtherProblem:
    """Step that uses another problem in some iterations."""

    def __init__(self, problem: Any, iterations: Container[int]) -> None:
        self.problem, self.iterations = problem, iterations

    def step(self, call, algorithm, state, problem, network, draw, t):
        """Take one step."""
        problem = self.problem if t in self.iterations else problem
        return call(algorithm, state, problem, network, draw, t)


def is_derived(algorithm: Algorithm) -> bool:
    """Return True if the noise site follows from the releases, by the default of rounds."""
    return isinstance(algorithm, Iterative) and not overrides(algorithm, Iterative, "noise_sites")


def has_declared_joint_cost(
    setting: DeclaredSetting, attacks: Sequence[Attack], *, seed: int
) -> bool:
    """Return True if the declared releases cover the noise of all iterations together.

    There is one attack per agent. The result is False if the bound is larger than declared, or
    unknown.
    """
    if setting.is_sampled or not np.isfinite(setting.declared.mu):
        return False
    permitted = setting.declared.mu * neighbouring_steps(setting.algorithm.relation)
    try:
        return all(
            _joint_cost(setting, attack, seed) <= permitted * (1.0 + SLACK_OF_SHIFT)
            for attack in attacks
        )
    except OtherMessages:
        return False


def _joint_cost(setting: DeclaredSetting, attack: Attack, seed: int) -> float:
    """Return a bound of mu for any signs of the changes of a pair; infinite if it is unknown."""
    horizon, layout = setting.horizon, Layout()
    executed = Executed(setting.algorithm, attack.pair[0], attack.network, horizon, seed, layout)
    executed.messages(np.zeros((1, 1)))  # fills the layout
    without_noise = np.zeros((1, layout.units))
    local_response = response(executed)
    rows, base, matrix = local_response.rows, local_response.base, local_response.matrix
    is_gaussian = set(layout.laws) == {"gaussian"} and not layout.uncontrolled
    if not local_response.is_exact or not is_gaussian or "sampling" in layout.purposes:
        return np.inf
    dim = setting.problem.dim
    is_whole = [row.coordinate for row in rows] == [*range(dim)] * (len(rows) // dim)
    covariance = matrix @ matrix.T
    of_equal_coordinates = np.kron(covariance[::dim, ::dim], np.eye(dim)) if is_whole else 0.0
    if (np.abs(covariance - of_equal_coordinates) > EQUAL * covariance.max()).any():
        return np.inf
    draws = generator(ROOT + seed, "joint").standard_normal((PREDICTED, layout.units))
    for problem in attack.pair:
        values = replace(executed, problem=problem).values(
            np.concatenate([without_noise, draws]), rows
        )
        size = np.abs(draws) @ np.abs(matrix).T + np.abs(values[0])
        error = np.abs(values[1:] - values[0] - draws @ matrix.T)
        if (error > 10 * local_response.precision * size + 1e-300).any():
            return np.inf
    changed_runs = [
        replace(executed, algorithm=_with_problem(setting.algorithm, attack.pair[1], {t}))
        for t in range(1, horizon + 1)
    ]
    of_steps = _with_problem(setting.algorithm, attack.pair[0], range(1, horizon + 1))
    changed_runs.append(replace(executed, algorithm=of_steps, problem=attack.pair[1]))
    changes = [run.values(without_noise, rows)[0] - base for run in changed_runs]
    gap = values[0] - base - sum(changes)
    solutions = [shift(local_response, change) for change in changes]
    is_explained = not any(solution.unexplained.any() for solution in solutions)
    if not is_explained or (np.abs(gap) > EQUAL * np.abs(values[0]).max()).any():
        return np.inf
    units = np.array([solution.units for solution in solutions])
    return float(np.sqrt(np.abs(units @ units.T).sum()))


def _with_problem(algorithm: Algorithm, problem: Any, iterations: Container[int]) -> Algorithm:
    """Return the algorithm with another problem in the steps of some iterations."""
    return with_step(algorithm, _OtherProblem(problem, iterations))
