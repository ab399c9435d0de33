"""One-shot averaging: the noisy regularised minimiser of each agent, averaged by gossip."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy.mechanisms import Gaussian, Objective, ObjectivePerturbation

from ..parameters import NonNegative, Positive
from ..problems.logistic_regression import LogisticRegression
from .base import NOTHING, Algorithm, Iterates, column


@dataclass(frozen=True, kw_only=True)
class OneShotAveraging(Algorithm):
    r"""Gossip averages of noisy local minimisers.

    .. math::
        \hat x_i &= \arg\min_x f_i(x) + b_i^T x + \tfrac D2\|x\|_2^2, \\
        x_i^0 &= \hat x_i + n_i, \qquad x^{t+1} = W x^t

    with noise on the output, :math:`b_i = 0,\ n_i \sim N(0, \sigma^2 I)`, or in the objective,
    :math:`b_i \sim N(0, \sigma^2 I),\ n_i = 0` (Chaudhuri, Monteleoni, Sarwate, JMLR 2011; with
    Gaussian noise Kifer, Smith, Thakurta, COLT 2012). Iteration t = 1, 2, ... sends
    :math:`x^{t-1}`. Data are used once, and all later messages are functions of the first ones.

    A replaced record changes the minimiser by at most :math:`\Delta_2/(\mu + D)`. Noise on the
    output is one Gaussian mechanism with this sensitivity. With noise in the objective, a minimiser
    determines :math:`b_i`. If the Hessian does not depend on the records, neighbouring data sets
    need noises that differ by the change of the gradient, which is one Gaussian mechanism with
    :math:`\mu = \Delta_2/\sigma`. For generalised linear models, see
    :mod:`private_consensus.privacy.objective_perturbation`. For other problems, there is no proof,
    and calibration raises an error.

    Parameters
    ----------
    D : float
        Curvature D that is added to the objective of every agent.
    noise : float
        Standard deviation :math:`\sigma` of the noise of each coordinate.
    perturbed : {"output", "objective"}
        Quantity to which the noise is added.
    """

    D: Positive = 0.05
    noise: NonNegative = 0.0
    perturbed: Literal["output", "objective"] = "output"

    privacy_depends_on = NOTHING
    needs = ("proximal", "least_convexity")
    source = "Chaudhuri, Monteleoni, Sarwate, JMLR 12, 2011, Algorithms 1 and 2"

    def mechanisms(self, problem, network, horizon):
        if self.perturbed == "output":
            change = problem.minimiser_change("l2", column(self.D))
            return {"minimiser": Gaussian(change, column(self.noise), times=(1,))}
        curvature = problem.least_convexity + np.max(self.D)
        kappa = float(problem.record_curvature / curvature)
        perturbation = ObjectivePerturbation(
            float(problem.record_change("l2")), column(self.noise), times=(1,), kappa=kappa
        )
        return {"minimiser": perturbation}

    def calibrate(self, budget, problem, network, horizon):
        # With a constant Hessian, the loss is that of a Gaussian mechanism.
        if self.perturbed == "objective" and problem.record_curvature > 0:
            is_covered = isinstance(problem, LogisticRegression) and np.isinf(problem.box)
            expected = (
                "quadratic, or logistic_regression without a box, since the objective is perturbed"
            )
            require(bool(is_covered), "problem.name", type(problem).__name__, expected)
        return super().calibrate(budget, problem, network, horizon)

    def step(self, state, problem, network, release, t):
        if t > 1:
            # No record is used after the first iteration.
            return Iterates(network.mix(state.x))
        centre, penalty = state.x, column(self.D) * np.ones((1, 1, 1, 1))

        def solve(linear: np.ndarray) -> np.ndarray:
            return problem.proximal(linear + np.zeros_like(centre), penalty, centre, centre)

        if self.perturbed == "output":
            return Iterates(release("minimiser", solve(np.zeros_like(centre))))
        objective = Objective(solve, lambda x: problem.gradient(x) + penalty * (x - centre))
        return Iterates(release("minimiser", objective))


ALGORITHM = OneShotAveraging
