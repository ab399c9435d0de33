"""Common base of the consensus ADMM methods of Gratton et al.: the outer loop."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy.mechanisms import UNBOUNDED

from ...parameters import AssumedBound, NonNegative, Positive
from ..base import Algorithm, column, origin


class ConsensusState(NamedTuple):
    """Estimates that agents exchange, and multipliers, each [settings, runs, agents, P]."""

    b: np.ndarray
    dual: np.ndarray


@dataclass(frozen=True, kw_only=True)
class ConsensusADMM(Algorithm):
    r"""Outer loop of consensus ADMM; a version implements the primal update.

    Let :math:`N_k` be agent k and its neighbours. Outer iteration m is

    .. math::
        \gamma_k &\leftarrow \gamma_k + \rho \sum_{l \in N_k} (\beta_k - \beta_l) \quad (20) \\
        F_k(\beta) &= f_k(\beta) + \beta^T\gamma_k + \rho|N_k|\,\|\beta\|^2
          - \rho\,\beta^T\Bigl(|N_k|\beta_k + \sum_{l\in N_k}\beta_l\Bigr) \quad (7)

    where a version sets :math:`\beta_k` to an exact or approximate minimiser of :math:`F_k`. The
    budget applies to EVERY outer iteration; (29) is the total of the paper.

    Parameters
    ----------
    rho : float
        Penalty :math:`\rho`.
    c1 : float
        Assumed bound on the gradient of a record's loss.
    noise : float
        Standard deviation of the noise times the neighbourhood size, :math:`\sigma_k|N_k|`, which
        is equal for all agents; set by :meth:`calibrate`.
    epsilon, delta : float
        Claimed epsilon and delta of ONE outer iteration; set by :meth:`calibrate`.
    """

    rho: Positive = 4.0
    c1: AssumedBound = 1.0
    noise: NonNegative = 0.0
    epsilon: float = 0.0
    delta: float = 0.0

    def calibrate(self, budget, problem, network, horizon):
        """Return a copy with the noise of (25) for the budget of ONE outer iteration."""
        check_budget(budget)
        level = np.sqrt(2.1 * np.log(1.25 / budget.delta))
        noise = self.c1 * level / (self.rho * problem.records * budget.epsilon)
        return self.claiming(budget, float(noise))

    def claiming(self, budget, noise: float):
        """Return a copy with a noise and the claimed budget of one outer iteration."""
        return replace(self, noise=noise, epsilon=budget.epsilon, delta=budget.delta)

    def claimed_epsilon(self, delta, problem, network, horizon):
        """Return the total epsilon of (29), with the epsilon per iteration of (25).

        ``delta`` is that of one outer iteration.
        """
        if not self.noise:
            return float("inf")
        level = np.sqrt(2.1 * np.log(1.25 / delta))
        epsilon = self.c1 * level / (self.rho * problem.records * self.noise)
        return total_epsilon(epsilon, delta, horizon)

    def start(self, problem, network, release):
        return ConsensusState(*2 * (origin(problem, release),))

    def step(self, state, problem, network, release, t):
        sizes = neighbourhood_sizes(network)[..., None]
        weighted_estimate, received = sizes * state.b, state.b + network.neighbour_sum(state.b)
        rho = column(self.rho)
        dual = state.dual + rho * (weighted_estimate - received)
        curvature = 2.0 * rho * sizes
        centre = (weighted_estimate + received) / (2.0 * sizes)
        estimate = self.primal(problem, network, curvature, dual, centre, release, t)
        return ConsensusState(estimate, dual)

    @abstractmethod
    def primal(self, problem, network, curvature, dual, centre, release, t) -> np.ndarray:
        r"""Return new estimates :math:`\beta_k`, exact or approximate minimisers of (7).

        Up to a constant, (7) is :math:`f_k + \gamma_k^T\beta + \tfrac h2\|\beta - c_k\|^2` with the
        curvature :math:`h = 2\rho|N_k|`, the multipliers ``dual`` :math:`\gamma_k`, and ``centre``
        :math:`c_k`, the mean of :math:`\beta_k` and of the mean of the neighbourhood.
        """

    def observables(self, state, problem, t):
        return {"released": state.b}


def check_budget(budget) -> None:
    """Raise an error unless epsilon is in (0, 1] and delta is positive, as Theorem 1 requires."""
    require(budget.epsilon <= 1, "budget.epsilon", budget.epsilon, "in (0, 1] (Theorem 1)")
    expected = "in (0, 1), since Gaussian noise requires a positive delta"
    require(budget.delta > 0, "budget.delta", budget.delta, expected)


def provable(change: float) -> dict[str, Any]:
    """Return the options of a mechanism whose sensitivity is proven only if it is finite."""
    proven = bool(np.isfinite(change))
    return {"proven": proven, "note": "" if proven else UNBOUNDED}


def total_epsilon(epsilon: float, delta: float, iterations: int) -> float:
    r"""Return the total epsilon :math:`\bar\epsilon` of M ``iterations``, (29).

    .. math:: \bar\epsilon = \epsilon\sqrt{M\ln(1/\delta)/(1.05\ln(1.25/\delta))}
    """
    ratio = np.log(1.0 / delta) / (1.05 * np.log(1.25 / delta))
    return float(epsilon * np.sqrt(iterations * ratio))


def neighbourhood_sizes(network) -> np.ndarray:
    """Return the number of neighbours plus one, :math:`|N_k|`; shape ([runs,] agents)."""
    return network.degrees + 1.0
