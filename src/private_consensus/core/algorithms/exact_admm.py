"""ADMM with exact primal updates and Gaussian noise: the model (15) of D-ZOA (Gratton et al.)."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import gaussian_epsilon, gaussian_mu
from private_consensus.privacy.mechanisms import Gaussian

from ..parameters import CALIBRATION
from .base import column
from .families.consensus_admm import (
    ConsensusADMM,
    check_budget,
    neighbourhood_sizes,
    provable,
    total_epsilon,
)


@dataclass(frozen=True, kw_only=True)
class ExactADMM(ConsensusADMM):
    r"""ADMM with exact primal updates and explicit Gaussian noise, in the outer loop of D-ZOA.

    .. math:: \beta_k = \arg\min F_k + \xi_k, \qquad \xi_k \sim N(0, \sigma_k^2 I) \quad (15)

    :math:`F_k` is :math:`2\rho|N_k|`-strongly convex. A replaced record of weight w therefore
    changes its minimiser by at most :math:`\Delta_k = 2wc_1/(2\rho|N_k|)`. This is (24) for
    :math:`w = 1/N_k`, and :math:`N_k` times (24) for losses summed over records. If the gradients
    of the loss are bounded by :math:`c_1` (Huber loss), the sensitivity is proven, and Gaussian DP
    accounts exactly for the run. The squared loss has no such bound (E2.6): its sensitivity is
    infinite, and :math:`c_1` is an assumption.

    Parameters
    ----------
    calibration : {"paper", "gaussian_dp"}
        Rule by which a budget sets the noise. ``paper``: :math:`\sigma_k` of (25).
        ``gaussian_dp``: the smallest noise with which all M releases together are
        :math:`(\bar\epsilon, \delta)`-DP by Gaussian DP, with :math:`\bar\epsilon` the claimed
        total (29). It requires a problem that bounds the gradient of a record.
    """

    calibration: Annotated[Literal["paper", "gaussian_dp"], CALIBRATION] = "paper"

    quantities = ("released", "total_printed", "total_exact")
    needs = ("proximal", "least_convexity")
    source = "Gratton et al., eqs. (15), (17)-(20), (24), (25)"

    def calibrate(self, budget, problem, network, horizon):
        if self.calibration == "paper":
            return super().calibrate(budget, problem, network, horizon)
        check_budget(budget)
        bounded = bool(np.isfinite(problem.record_change("l2")))
        expected = "paper: no noise suffices, since the gradient of a record is unbounded"
        require(bounded, "algorithm.calibration", self.calibration, expected)
        # All M iterations together may cost what the paper claims for them.
        total = total_epsilon(budget.epsilon, budget.delta, horizon)
        mu = gaussian_mu(total, budget.delta) / np.sqrt(horizon)
        return self.claiming(budget, float(self._unit_sensitivity(problem) / mu))

    def _unit_sensitivity(self, problem) -> float:
        r"""Return the sensitivity times the neighbourhood size, :math:`\Delta_k|N_k|`."""
        problem.required_convexity()
        return problem.record_change("l2") / (2.0 * self.rho)

    def mechanisms(self, problem, network, horizon):
        sizes, bounded = neighbourhood_sizes(network)[..., None], problem.record_change("l2")
        # The curvature of F_k is proportional to |N_k|, the change of its minimiser to 1/|N_k|.
        change = column(self._unit_sensitivity(problem)) / sizes
        return {"estimate": Gaussian(change, column(self.noise) / sizes, **provable(bounded))}

    def outcome(self, state, problem, network, release, t):
        """Return the total epsilon of t iterations, by (29) and by Gaussian DP."""
        shape = state.b.shape[:2]
        fields = self.epsilon, self.delta, self.noise, self._unit_sensitivity(problem)
        columns = [np.broadcast_to(field, shape[0]) for field in fields]
        printed, exact = np.full((2, shape[0], 1), np.inf)
        for s, (epsilon, delta, noise, change) in enumerate(zip(*columns, strict=True)):
            if noise > 0:
                printed[s] = total_epsilon(epsilon, delta, t)
                exact[s] = gaussian_epsilon(change / noise * np.sqrt(t), delta)
        unit = np.ones(shape)
        return {"total_printed": printed * unit, "total_exact": exact * unit}

    def primal(self, problem, network, curvature, dual, centre, release, t):
        return release("estimate", problem.proximal(dual, curvature, centre, centre))


ALGORITHM = ExactADMM
