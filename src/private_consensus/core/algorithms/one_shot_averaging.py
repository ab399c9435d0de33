r"""One-shot averaging: the noisy regularised minimiser of each agent, averaged by gossip.

.. math::
    \hat x_i &= \arg\min_x f_i(x) + b_i^T x + \tfrac D2\|x\|_2^2, \\
    x_i^0 &= \hat x_i + n_i, \qquad x^{t+1} = W x^t

with noise on the output, :math:`b_i = 0,\ n_i \sim N(0, \sigma^2 I)`, or in the objective,
:math:`b_i \sim N(0, \sigma^2 I),\ n_i = 0` (Chaudhuri, Monteleoni, Sarwate, JMLR 2011; with
Gaussian noise Kifer, Smith, Thakurta, COLT 2012). Iteration t = 1, 2, ... sends
:math:`x^{t-1}`. Data are used once, and all later messages are functions of the first ones.

A replaced record changes the minimiser by at most :math:`\Delta_2/(\mu + D)`. Noise on the output
is one Gaussian mechanism with this sensitivity. With noise in the objective, a minimiser determines
:math:`b_i`. If the Hessian does not depend on the records, neighbouring data sets need noises that
differ by the change of the gradient, which is one Gaussian mechanism with
:math:`\mu = \Delta_2/\sigma`. For generalised linear models, see
:mod:`private_consensus.privacy.objective_perturbation`. For other problems, there is no proof, and
calibration raises an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Release
from private_consensus.privacy.objective_perturbation import PerturbedObjective

from ..problems.logistic_regression import LogisticRegression
from .base import CURVATURE, NOTHING, Iterative, Range, column, origin
from .noise import Noise, calibrated
from .parameters import noise_field, one_of, positive

PERTURBED = ("output", "objective")


class OneShotState(NamedTuple):
    """Messages [settings, runs, agents, dim]."""

    x: np.ndarray


@dataclass(frozen=True, kw_only=True)
class OneShotAveraging(Iterative):
    r"""Gossip averages of noisy local minimisers.

    Parameters
    ----------
    D : float
        Curvature D that is added to the objective of every agent.
    noise : float
        Standard deviation :math:`\sigma` of the noise of each coordinate.
    perturbed : {"output", "objective"}
        Quantity to which the noise is added.
    """

    D: float = positive(0.05)
    noise: Noise = noise_field(None)
    perturbed: str = one_of("output", PERTURBED)

    quantities: ClassVar = ("released",)
    privacy_depends_on: ClassVar[str] = NOTHING
    needs: ClassVar[tuple[str, ...]] = ("proximal", "least_convexity")
    source: ClassVar[str] = "Chaudhuri, Monteleoni, Sarwate, JMLR 12, 2011, Algorithms 1 and 2"
    ranges: ClassVar = {"D": Range(0.01, 3.0, 0.2, CURVATURE), "horizon": Range(3, 30, 15)}
    lower_bound_because: ClassVar[str] = (
        "a changed label changes the minimiser or the gradient by the attained fraction"
    )

    @property
    def where(self) -> str:
        """Quantity to which the noise is added."""
        return self.perturbed

    def calibrate(self, budget, problem, network, horizon):
        self.check(problem)
        return calibrated(self, budget, problem, network, horizon)

    def check(self, problem) -> None:
        """Raise an error if there is no privacy proof for noise in the objective."""
        if self.perturbed == "output" or problem.record_curvature == 0:
            return
        is_covered = isinstance(problem, LogisticRegression) and np.isinf(problem.box)
        expected = (
            "quadratic, or logistic_regression without a box, since the objective is perturbed"
        )
        require(bool(is_covered), "problem.name", type(problem).__name__, expected)

    def change(self, problem) -> float:
        """Return the largest l2 change of the quantity to which the noise is added."""
        if self.perturbed == "output":
            return float(np.max(problem.minimiser_change("l2", self.D)))
        return float(problem.record_change("l2"))

    def releases(self, problem, network, horizon):
        """Return the first message only: later messages are functions of it."""
        if self.noise and self.perturbed == "objective" and problem.record_curvature > 0:
            return [Release("profile", profile=self._perturbed_objective(problem))]
        attained = (
            problem.attained_minimiser_share("l2", self.D)
            if self.perturbed == "output"
            else problem.attained_gradient_share("l2")
        )
        attained = None if attained is None else float(np.max(attained))
        return self.noise.releases(self.change(problem), self.noise.scale, attained=attained)

    def _perturbed_objective(self, problem) -> PerturbedObjective:
        r"""Return the privacy profile of a minimiser; the derivative of the loss has one sign."""
        curvature = problem.least_convexity + float(self.D)
        mu = 2.0 * problem.largest_record_gradient / float(self.noise.scale)
        return PerturbedObjective(mu, float(problem.record_curvature / curvature), one_sign=True)

    def noise_sites(self, problem, network, horizon):
        if not self.noise or self.perturbed == "objective":
            return []
        first = np.arange(horizon) == 0
        scale = np.where(first, self.noise.scale, np.nan)[:, None, None]
        moved = first * self.change(problem) / self.noise.scale
        return [self.noise.site(scale, moved)]

    def start(self, problem, network, streams, settings):
        return OneShotState(origin(problem, streams, settings))

    def step(self, state, problem, network, draw, t):
        """Return the noisy minimisers in iteration 1, and the result of a gossip round afterwards.

        The centre of the added curvature is the public starting point.
        """
        if t > 1:
            return OneShotState(network.mix(state.x))
        zero = np.zeros_like(state.x)
        noise = column(self.noise.scale) * draw + zero
        linear, added = (noise, zero) if self.perturbed == "objective" else (zero, noise)
        penalty = column(self.D) * np.ones((1, 1, 1, 1))
        return OneShotState(problem.proximal(linear, penalty, state.x, state.x) + added)

    def observables(self, state, problem, t):
        return {"released": state.x}


ALGORITHM = OneShotAveraging
