r"""Common base of the consensus ADMM methods of Gratton et al.: the outer loop.

Let :math:`N_k` be agent k and its neighbours. Outer iteration m is

.. math::
    \gamma_k &\leftarrow \gamma_k + \rho \sum_{l \in N_k} (\beta_k - \beta_l) \quad (20) \\
    F_k(\beta) &= f_k(\beta) + \beta^T\gamma_k + \rho|N_k|\,\|\beta\|^2
      - \rho\,\beta^T\Bigl(|N_k|\beta_k + \sum_{l\in N_k}\beta_l\Bigr) \quad (7)

where a version sets :math:`\beta_k` to an exact or approximate minimiser of :math:`F_k`. The
budget applies to EVERY outer iteration; (29) is the total of the paper.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Release

from ..base import CURVATURE, Iterative, Range, column, origin
from ..noise import Noise
from ..parameters import noise_field, positive

UNBOUNDED = "the problem states no bound on a record's gradient"


class ConsensusState(NamedTuple):
    """Estimates that agents exchange, and multipliers, each [settings, runs, agents, P]."""

    b: np.ndarray
    dual: np.ndarray


@dataclass(frozen=True, kw_only=True)
class ConsensusADMM(Iterative):
    r"""Outer loop of consensus ADMM; a version implements the primal update.

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

    rho: float = positive(4.0)
    c1: float = positive(1.0)
    noise: Noise = noise_field()
    epsilon: float = 0.0
    delta: float = 0.0

    quantities: ClassVar = ("released",)
    assumed_bound: ClassVar[str] = "c1"
    ranges: ClassVar = {"rho": Range(0.1, 10.0, 1.0, CURVATURE), "horizon": Range(2, 15, 8)}

    def calibrate(self, budget, problem, network, horizon):
        """Return a copy with the noise of (25) for the budget of ONE outer iteration."""
        check_budget(budget)
        level = np.sqrt(2.1 * np.log(1.25 / budget.delta))
        noise = self.c1 * level / (self.rho * problem.records * budget.epsilon)
        return self.claiming(budget, float(noise))

    def claiming(self, budget, noise: float):
        r"""Return a copy with noise :math:`\sigma_k|N_k|` and a claim for one outer iteration."""
        return replace(self, noise=noise, epsilon=budget.epsilon, delta=budget.delta)

    def statements(self, budget, problem, network, horizon):
        """Return the epsilon that the paper claims, (29); it is infinite without noise."""
        total = total_epsilon(budget.epsilon, budget.delta, horizon)
        return [(self, total if self.noise else float("inf"))]

    def epsilon_by_formula(self, delta, problem, network, horizon):
        """Return the total epsilon of (29), with the epsilon per iteration of (25).

        ``delta`` is that of one outer iteration.
        """
        if not self.noise:
            return float("inf")
        level = np.sqrt(2.1 * np.log(1.25 / delta))
        epsilon = self.c1 * level / (self.rho * problem.records * self.noise.scale)
        return total_epsilon(epsilon, delta, horizon)

    def start(self, problem, network, streams, settings):
        zero = origin(problem, streams, settings)
        return ConsensusState(zero, zero)

    def step(self, state, problem, network, draw, t):
        """Return the state after an outer iteration: new multipliers (20), then new estimates."""
        sizes = neighbourhood_sizes(network)[..., None]
        weighted_estimate, received = sizes * state.b, state.b + network.neighbour_sum(state.b)
        rho = column(self.rho)
        dual = state.dual + rho * (weighted_estimate - received)
        curvature = 2.0 * rho * sizes
        centre = (weighted_estimate + received) / (2.0 * sizes)
        return ConsensusState(self.primal(problem, network, curvature, dual, centre, draw, t), dual)

    @abstractmethod
    def primal(self, problem, network, curvature, dual, centre, draw, t) -> np.ndarray:
        r"""Compute new estimates :math:`\beta_k`, exactly or approximately.

        They minimise :math:`f_k + \gamma_k^T\beta + \tfrac h2\|\beta - c_k\|^2`, which equals (7)
        up to a constant.

        Parameters
        ----------
        problem, network
        curvature : ndarray
            :math:`h = 2\rho|N_k|`, broadcastable to [settings, runs, agents, 1].
        dual, centre : ndarray, shape (settings, runs, agents, P)
            :math:`\gamma_k`, and :math:`c_k`, the mean of :math:`\beta_k` and of the mean of the
            neighbourhood.
        draw, t

        Returns
        -------
        ndarray, shape (settings, runs, agents, P)
        """

    def observables(self, state, problem, t) -> Mapping[str, np.ndarray]:
        return {"released": state.b}


def check_budget(budget) -> None:
    """Raise an error unless epsilon is in (0, 1] and delta is positive, as Theorem 1 requires."""
    require(budget.epsilon <= 1, "budget.epsilon", budget.epsilon, "in (0, 1] (Theorem 1)")
    expected = "in (0, 1), since Gaussian noise requires a positive delta"
    require(budget.delta > 0, "budget.delta", budget.delta, expected)


def gaussian_release(
    change: float, noise: float, count: int, attained: float | None = None
) -> Release:
    """Return the release of Gaussian noise on a quantity with a known sensitivity.

    ``change`` is the largest l2 change by one record; if it is infinite, the release is not proven.
    A pair of records attains the fraction ``attained`` of it; None if unknown. ``noise`` is the
    standard deviation.
    """
    proven = bool(np.isfinite(change))
    note = "" if proven else UNBOUNDED
    return Release(
        "gaussian", change, noise, count=count, proven=proven, note=note, attained=attained
    )


def total_epsilon(epsilon: float, delta: float, iterations: int) -> float:
    r"""Return the total epsilon of M iterations, (29).

    .. math:: \bar\epsilon = \epsilon\sqrt{M\ln(1/\delta)/(1.05\ln(1.25/\delta))}
    """
    ratio = np.log(1.0 / delta) / (1.05 * np.log(1.25 / delta))
    return float(epsilon * np.sqrt(iterations * ratio))


def neighbourhood_sizes(network) -> np.ndarray:
    """Return the number of neighbours plus one, :math:`|N_k|`; shape ([runs,] agents)."""
    return network.degrees + 1.0
