r"""One-shot averaging: the noisy regularised minimiser of each agent, averaged by gossip.

.. math::
    \hat x_i &= \arg\min_x f_i(x) + b_i^T x + \tfrac D2\|x\|_2^2, \\
    x_i^0 &= \hat x_i + n_i, \qquad x^{t+1} = W x^t

with noise on the output, :math:`b_i = 0,\ n_i \sim N(0, \sigma^2 I)`, or in the objective,
:math:`b_i \sim N(0, \sigma^2 I),\ n_i = 0` (Chaudhuri, Monteleoni, Sarwate, JMLR 2011, with
Gaussian noise: Kifer, Smith, Thakurta, COLT 2012). Iteration t = 1, 2, ... sends
:math:`x^{t-1}`; data are used once, and all later messages are functions of the first ones.

A replaced record moves the minimum by at most :math:`\Delta_2/(\mu + D)`, which noise on the
output hides as one Gaussian mechanism. Noise in the objective: where records do not move the
Hessian, a replaced record shifts the :math:`b_i` that leads to a given minimum by what it moves the
gradient, whatever the minimum, which is one Gaussian mechanism of :math:`\mu = \Delta_2/\sigma`;
generalised linear models are accounted for by
:mod:`private_consensus.privacy.objective_perturbation`. Of other problems nothing is proven, and
they are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Release, calibrate
from private_consensus.privacy.objective_perturbation import PerturbedObjective

from ..problems.logistic_regression import LogisticRegression
from .base import CURVATURE, NOTHING, Iterative, Range, column, origin
from .noise import Noise
from .parameters import noise_field, one_of, positive

PERTURBED = ("output", "objective")


class State(NamedTuple):
    """Messages [settings, runs, agents, dim]."""

    x: np.ndarray


@dataclass(frozen=True, kw_only=True)
class OneShotAveraging(Iterative):
    r"""Gossip averages of noisy local minimisers.

    Parameters
    ----------
    D : float
        :math:`D`, curvature that is added to every agent's objective.
    noise : float
        :math:`\sigma`, standard deviation of each coordinate, of the output or in the objective.
    perturbed : {"output", "objective"}
    """

    D: float = positive(0.05)
    noise: Noise = noise_field(None)
    perturbed: str = one_of("output", PERTURBED)

    privacy_depends_on: ClassVar[str] = NOTHING
    source: ClassVar[str] = "Chaudhuri, Monteleoni, Sarwate, JMLR 12, 2011, Algorithms 1 and 2"
    ranges: ClassVar = {"D": Range(0.01, 3.0, 0.2, CURVATURE), "horizon": Range(3, 30, 15)}
    lower_bound_because: ClassVar[str] = (
        "a label flip moves the single minimiser or gradient by the attained part"
    )

    @property
    def where(self) -> str:
        """Return the quantity to which noise is added."""
        return self.perturbed

    def calibrate(self, budget, problem, network, horizon):
        """Return a copy with the smallest noise that meets the budget.

        Parameters
        ----------
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
            Copy with calibrated noise.
        """
        self.check(problem)
        if not budget.private:
            return replace(self, noise=0.0)

        def made(noise):
            return replace(self, noise=noise).releases(problem, network, horizon)

        return replace(self, noise=calibrate(made, budget))

    def check(self, problem) -> None:
        """Require a problem with a proof for noise in the objective."""
        if self.perturbed == "output" or problem.record_curvature == 0:
            return
        free = isinstance(problem, LogisticRegression) and np.isinf(problem.box)
        expected = (
            "quadratic, or logistic_regression without a box, since the objective is perturbed"
        )
        require(bool(free), "problem.name", type(problem).__name__, expected)

    def change(self, problem) -> float:
        """Return the largest l2 change of the quantity to which the noise is added."""
        if self.perturbed == "output":
            return float(np.max(problem.minimiser_change("l2", self.D)))
        return float(problem.record_change("l2"))

    def releases(self, problem, network, horizon):
        """Return the single release of the first message.

        Later messages are functions of the first ones.

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
            return [Release("exact", sensitivity=self.change(problem), scale=0.0)]
        if self.perturbed == "objective" and problem.record_curvature > 0:
            return [Release("profile", profile=self._perturbed_objective(problem))]
        attained = (
            problem.attained_minimiser_share("l2", self.D)
            if self.perturbed == "output"
            else problem.attained_gradient_share("l2")
        )
        attained = None if attained is None else float(np.max(attained))
        return [Release("gaussian", self.change(problem), self.noise.scale, attained=attained)]

    def _perturbed_objective(self, problem) -> PerturbedObjective:
        r"""Return the privacy profile with :math:`\mu = 2w/\sigma`.

        It holds for rows of norm 1, and for a loss whose derivative has one sign.
        """
        curvature = problem.least_convexity + float(self.D)
        mu = 2.0 * problem.weight / float(self.noise.scale)
        return PerturbedObjective(mu, float(problem.record_curvature / curvature), one_sign=True)

    def noise_sites(self, problem, network, horizon):
        """Return the site of the noise: the first message only.

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
            Empty without noise, or with noise in the objective.
        """
        if not self.noise or self.perturbed == "objective":
            return []
        first = np.arange(horizon) == 0
        scale = np.where(first, self.noise.scale, np.nan)[:, None, None]
        moved = first * self.change(problem) / self.noise.scale
        return [self.noise.site(scale, moved)]

    def start(self, problem, network, streams, settings):
        """Return messages at 0, before the first iteration.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        streams : Streams
            Random streams of all runs.
        settings : int
            Number of settings in the batch.

        Returns
        -------
        State
            State before the first iteration.
        """
        return State(origin(problem, streams, settings))

    def step(self, state, problem, network, draw, t):
        """Return the noisy minima in iteration 1, and their mixtures afterwards.

        The added curvature is centred at the starting point, which is public.

        Parameters
        ----------
        state : State
            State before the iteration.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        draw : ndarray, shape (runs, agents, dim)
            Unit noise of the iteration.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        State
            State after the iteration.
        """
        if t > 1:
            return State(network.mix(state.x))
        noise = column(self.noise.scale) * draw + np.zeros_like(state.x)
        within = noise if self.perturbed == "objective" else np.zeros_like(noise)
        penalty = column(self.D) * np.ones((1, 1, 1, 1))
        minimum = problem.proximal(within, penalty, state.x, state.x)
        return State(minimum if self.perturbed == "objective" else minimum + noise)

    def observables(self, state, problem, t):
        """Return the messages of all agents.

        Parameters
        ----------
        state : State
            State after the iteration.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        mapping
            Quantities by name.
        """
        return {"released": state.x}


ALGORITHM = OneShotAveraging
