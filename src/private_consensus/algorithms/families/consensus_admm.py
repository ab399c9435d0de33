r"""Consensus ADMM of paper 002: its outer loop, its budget of one iteration, its total.

With :math:`N_k` the neighbours of agent k and itself, in outer iteration m

.. math::
    \gamma_k &\leftarrow \gamma_k + \rho \sum_{l \in N_k} (\beta_k - \beta_l) \quad (20) \\
    F_k(\beta) &= f_k(\beta) + \beta^T\gamma_k + \rho|N_k|\,\|\beta\|^2
      - \rho\,\beta^T\Bigl(|N_k|\beta_k + \sum_{l\in N_k}\beta_l\Bigr) \quad (7)

and :math:`\beta_k` becomes what a version makes of :math:`F_k`. A budget is spent in EVERY outer
iteration; (29) is the paper's total.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from ...errors import require
from ...privacy import Release
from ..base import CURVATURE, Iterative, Range, column, origin
from ..noise import Noise
from ..parameters import noise_field, positive

UNBOUNDED = "the problem states no bound on a record's gradient"
ASSUMED = "no record's gradient is longer than c1 (assumed)"


class State(NamedTuple):
    """Estimates that agents share and multipliers, each [settings, runs, agents, P]."""

    b: np.ndarray
    dual: np.ndarray


@dataclass(frozen=True, kw_only=True)
class ConsensusADMM(Iterative):
    r"""The outer loop, with the primal update left open.

    Parameters
    ----------
    rho : float
        Penalty :math:`\rho`.
    c1 : float
        Assumed bound on the gradient of a record's loss.
    noise : float
        :math:`\sigma_k|N_k|`, the assumed or added noise of an agent in units of
        :math:`1/|N_k|`; set by :meth:`calibrate`.
    epsilon, delta : float
        What is claimed of ONE outer iteration; set by :meth:`calibrate`.
    """

    rho: float = positive(4.0)
    c1: float = positive(1.0)
    noise: Noise = noise_field()
    epsilon: float = 0.0
    delta: float = 0.0

    ranges: ClassVar = {"rho": Range(0.1, 10.0, 1.0, CURVATURE), "horizon": Range(2, 15, 8)}

    def calibrate(self, budget, problem, network, horizon):
        """Noise of (25) for the budget of ONE outer iteration."""
        check_budget(budget)
        level = np.sqrt(2.1 * np.log(1.25 / budget.delta))
        noise = self.c1 * level / (self.rho * problem.records * budget.epsilon)
        return self.claiming(budget, float(noise))

    def claiming(self, budget, noise: float):
        """A copy with noise and claim set."""
        return replace(self, noise=noise, epsilon=budget.epsilon, delta=budget.delta)

    def statements(self, budget, problem, network, horizon):
        """Return the paper's claim for all M iterations, (29)."""
        return [(self, total_epsilon(budget.epsilon, budget.delta, horizon))]

    def epsilon_by_formula(self, delta, problem, network, horizon):
        """Total epsilon (29), with the epsilon of one iteration that (25) gives for the noise."""
        if not self.noise:
            return float("inf")
        level = np.sqrt(2.1 * np.log(1.25 / delta))
        once = self.c1 * level / (self.rho * problem.records * self.noise.scale)
        return total_epsilon(once, delta, horizon)

    def start(self, problem, network, streams, settings):
        zero = origin(problem, streams, settings)
        return State(zero, zero)

    def step(self, state, problem, network, draw, t):
        sizes = neighbourhood_sizes(network)[..., None]
        own, received = sizes * state.b, state.b + network.neighbour_sum(state.b)
        rho = column(self.rho)
        dual = state.dual + rho * (own - received)
        curvature = 2.0 * rho * sizes
        centre = (own + received) / (2.0 * sizes)
        return State(self.primal(problem, network, curvature, dual, centre, draw, t), dual)

    @abstractmethod
    def primal(self, problem, network, curvature, dual, centre, draw, t) -> np.ndarray:
        r"""An answer to :math:`\min f_k + \gamma_k^T\beta + \tfrac h2\|\beta - c_k\|^2`.

        Equal to (7) up to a constant, with :math:`h = 2\rho|N_k|` ``curvature`` and :math:`c_k` the
        mean of :math:`\beta_k` and of the neighbourhood, ``centre``.
        """

    def observables(self, state, problem, t) -> Mapping[str, np.ndarray]:
        return {"released": state.b}


def check_budget(budget) -> None:
    """Theorem 1 is stated for epsilon in (0, 1] and needs a delta."""
    require(budget.epsilon <= 1, "budget.epsilon", budget.epsilon, "in (0, 1] (Theorem 1)")
    require(budget.delta > 0, "budget.delta", budget.delta, "in (0, 1): Gaussian noise needs it")


def gaussian_release(
    change: float, noise: float, count: int, attained: float | None = None
) -> Release:
    """Gaussian noise on what a record moves by ``change``, infinite where nothing bounds it."""
    proven = bool(np.isfinite(change))
    note = "" if proven else UNBOUNDED
    return Release(
        "gaussian", change, noise, count=count, proven=proven, note=note, attained=attained
    )


def assumed_release(
    change: float, noise: float, count: int, attained: float | None = None
) -> Release:
    """The same for a change that follows from an assumed :math:`c_1`."""
    return Release(
        "gaussian", change, noise, count=count, proven=False, note=ASSUMED, attained=attained
    )


def total_epsilon(epsilon: float, delta: float, iterations: int) -> float:
    r"""(29): :math:`\bar\epsilon = \epsilon\sqrt{M\ln(1/\delta)/(1.05\ln(1.25/\delta))}`."""
    ratio = np.log(1.0 / delta) / (1.05 * np.log(1.25 / delta))
    return float(epsilon * np.sqrt(iterations * ratio))


def neighbourhood_sizes(network) -> np.ndarray:
    """:math:`|N_k|`, with the agent itself; shape ([runs,] agents)."""
    return network.degrees + 1.0
