r"""ADMM with an accurate primal update and explicit Gaussian noise, as D-ZOA is assumed to be.

.. math:: \beta_k = \arg\min F_k + \xi_k, \qquad \xi_k \sim N(0, \sigma_k^2 I)

in the outer loop of D-ZOA: model (15) of paper 002 taken at its word. :math:`F_k` is
:math:`2\rho|N_k|`-strongly convex, so that replacing one record moves its minimiser by at most
:math:`\Delta_k = 2wc_1/(2\rho|N_k|)`, w the record's weight: (24) for :math:`w = 1/N_k`, and
:math:`N_k` times (24) for losses summed over records. Where the loss has gradients bounded by
:math:`c_1` (Huber's), that is proven and the run is accounted for exactly by Gaussian DP. Squared
loss has no such bound (E2.6): its sensitivity is infinite, and :math:`c_1` is assumed and not
guaranteed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Release, gaussian_epsilon, gaussian_mu

from .base import column
from .families.consensus_admm import (
    ConsensusADMM,
    check_budget,
    gaussian_release,
    neighbourhood_sizes,
    total_epsilon,
)
from .parameters import one_of

CALIBRATIONS = ("paper", "gaussian_dp", "none")


@dataclass(frozen=True, kw_only=True)
class ExactADMM(ConsensusADMM):
    r"""ADMM with exact primal updates and explicit Gaussian noise.

    Parameters
    ----------
    calibration : {"paper", "gaussian_dp", "none"}
        ``none``: no noise, not private. ``paper``: :math:`\sigma_k` of (25). ``gaussian_dp``: the
        least noise with which all M releases together are :math:`(\bar\epsilon, \delta)`-DP,
        :math:`\bar\epsilon` the total (29) that the paper claims, by the exact trade-off of
        Gaussian DP; refused where the problem states no bound on a record's gradient.
    """

    calibration: str = one_of("paper", CALIBRATIONS, calibration=True)

    needs: ClassVar[tuple[str, ...]] = ("proximal",)
    source: ClassVar[str] = "Paper 002, eqs. (15), (17)-(20), (24), (25)"
    lower_bound_because: ClassVar[str] = (
        "responses far apart move the minimiser by the attained part at every centre"
    )

    def calibrate(self, budget, problem, network, horizon):
        """Return a copy with the noise of (25), of exact Gaussian DP, or without noise.

        Parameters
        ----------
        budget : Budget
            Privacy budget of ONE iteration.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        Algorithm
            Copy with calibrated noise.
        """
        if self.calibration == "paper":
            return super().calibrate(budget, problem, network, horizon)
        check_budget(budget)
        if self.calibration == "none":
            return self.claiming(budget, 0.0)
        bounded = bool(np.isfinite(problem.record_change("l2")))
        expected = "paper or none: no noise suffices, since the gradient of a record is unbounded"
        require(bounded, "algorithm.calibration", self.calibration, expected)
        total = total_epsilon(budget.epsilon, budget.delta, horizon)
        mu = gaussian_mu(total, budget.delta) / np.sqrt(horizon)
        return self.claiming(budget, float(self._unit_sensitivity(problem) / mu))

    def _unit_sensitivity(self, problem) -> float:
        r"""Return the sensitivity :math:`\Delta_k|N_k|`."""
        return problem.record_change("l2") / (2.0 * self.rho)

    def statements(self, budget, problem, network, horizon):
        """Return the paper's claim for all iterations; without noise epsilon is infinite.

        Parameters
        ----------
        budget : Budget
            Privacy budget of ONE iteration.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        list of (Algorithm, float)
            For each neighbouring relation, a copy with it and the claimed epsilon.
        """
        if not self.noise:
            return [(self, float("inf"))]
        return super().statements(budget, problem, network, horizon)

    def releases(self, problem, network, horizon):
        """Return the Gaussian release of all iterations, or an exact release without noise.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        list of Release
            Mechanisms whose composition bounds the privacy loss.
        """
        if not self.noise:
            return [Release("exact", note="no noise")]
        attained = problem.attained_minimiser_share("l2", 2.0 * self.rho)
        moved = self._unit_sensitivity(problem)
        return [gaussian_release(moved, self.noise.scale, horizon, attained)]

    def noise_sites(self, problem, network, horizon):
        """Return the site of the noise: the messages, with one scale per agent.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        list of NoiseSite
            Empty without noise.
        """
        if not self.noise:
            return []
        scale = np.reshape(self.noise.scale / neighbourhood_sizes(network), (1, -1, 1))
        moved = np.broadcast_to(self.releases(problem, network, horizon)[0].losses(), horizon)
        scales = np.broadcast_to(scale, (horizon, *scale.shape[1:]))
        return [self.noise.site(scales, moved)]

    def outcome(self, state, problem, network, t):
        """Return the total epsilon after t iterations, by (29) and exactly.

        The exact total is that of t Gaussian releases of this sensitivity.

        Parameters
        ----------
        state : State
            State after the iteration.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        mapping
            Quantities by name, each [settings, runs].
        """
        shape = state.b.shape[:2]
        set_by = self.epsilon, self.delta, self.noise.scale
        values = [np.broadcast_to(v, shape[0]) for v in set_by]
        change = np.broadcast_to(self._unit_sensitivity(problem), shape[0])
        printed, exact = np.full((2, shape[0]), np.inf)
        for s, (epsilon, delta, noise) in enumerate(zip(*values, strict=True)):
            if noise > 0:
                printed[s] = total_epsilon(epsilon, delta, t)
                exact[s] = gaussian_epsilon(change[s] / noise * np.sqrt(t), delta)
        totals = {"total_printed": printed, "total_exact": exact}
        return {name: np.broadcast_to(v[:, None], shape) for name, v in totals.items()}

    def primal(self, problem, network, curvature, dual, centre, draw, t):
        r"""Return the exact minimiser of the augmented objective plus Gaussian noise.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        curvature : ndarray
            :math:`2\rho|N_k|`, broadcastable to [settings, runs, agents, 1].
        dual : ndarray, shape (settings, runs, agents, P)
            Multipliers.
        centre : ndarray, shape (settings, runs, agents, P)
            Centre of the quadratic term.
        draw : ndarray, shape (runs, agents, P)
            Unit noise of the iteration.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        ndarray, shape (settings, runs, agents, P)
            Messages.
        """
        exact = problem.proximal(dual, curvature, centre, centre)
        return exact + column(self.noise.scale) / neighbourhood_sizes(network)[..., None] * draw


ALGORITHM = ExactADMM
