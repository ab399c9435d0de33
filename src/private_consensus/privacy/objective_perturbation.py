r"""Gaussian objective perturbation of generalised linear models, in Renyi divergences.

The release is the exact minimiser :math:`o = \arg\min_x J_D(x) + b^Tx`, :math:`b\sim
N(0,\sigma^2I)`, of an objective with curvature of at least m, in which a record has the term
:math:`w\,\ell(z^Tx)`, :math:`\|z\|_2\le R,\ |\ell'|\le L,\ 0\le\ell''\le c_1`. On neighbouring
data, z replaced by z', the noise that gives an equal o is :math:`b - \Delta`, and the log-ratio of
the densities at o is

.. math:: -\frac{b^T\Delta}{\sigma^2} + \frac{\|\Delta\|_2^2}{2\sigma^2}
    + \ln\frac{\det\nabla^2J_D}{\det\nabla^2J_{D'}}, \qquad
    \Delta = w\left(\ell'(z'^To)\,z' - \ell'(z^To)\,z\right).

:math:`\Delta` depends on b, through o. Therefore this is no Gaussian mechanism (errata E4.3). Its
direction stays in the span of two rows (Redberg, Koskela, Wang, "Improving the privacy and
practicality of objective perturbation for differentially private linear learners", NeurIPS 2023,
for adding or removing a record). The last term is at most :math:`\ln(1+\kappa)`,
:math:`\kappa = w c_1R^2/m`: each record adds one positive eigenvalue. The other terms have
two bounds, with :math:`\mu = 2wLR/\sigma`, :math:`s = \alpha - 1`, :math:`X\sim N(0,1)`:

*Any shift.* :math:`\|g'z'-gz\|^2 \le 2\|g'z'\|^2 + 2\|gz\|^2` bounds them by the mean of
two terms, one per record. By Cauchy and Schwarz the moment is at most the larger of theirs.
If :math:`\ell'` has one sign per record, as for a logistic loss, a term is at most
:math:`\max(0, \mu X+\mu^2/2)`:

.. math:: E_1 = \Phi(-\mu/2) + e^{\alpha s\mu^2/2}\,\Phi((\alpha-\tfrac12)\mu).

*Slow shifts.* Along z' the derivative :math:`\ell'(z'^To)` decreases in
:math:`X = b^Tz'/(\sigma\|z'\|)` by at most :math:`c_1\sigma R/m` per unit, since
:math:`\partial o/\partial b` is minus the inverse of the Hessian. It is its value at X = 0, which
is independent of X, plus a remainder that adds at most :math:`\kappa X^2`. The remainder of z has
the opposite sign and only decreases the loss. Hence, by Cauchy and Schwarz again, for
:math:`4s\kappa<1`,

.. math:: E_2 = \exp\left(\frac{s\mu^2}2 + \frac{s^2\mu^2}4
    \left(1+\frac1{1-4s\kappa}\right)\right)(1-4s\kappa)^{-1/4}.

The divergence of order :math:`\alpha` is at most :math:`\ln(1+\kappa) + \ln\min(E_1, E_2)/s` in
both directions: z and z' may be exchanged. For :math:`\kappa\to0` it is :math:`\alpha\mu^2/2`,
that of the Gaussian mechanism.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from private_consensus.common.errors import require

from .releases import PrivacyProfile


@dataclass(frozen=True)
class PerturbedObjective(PrivacyProfile):
    r"""Privacy profile of an exact minimiser with Gaussian noise in its objective.

    It holds for the replacement of one record and losses whose derivative has one sign per record.
    Only the minimiser is released, and no projection is applied between it and the noise.

    Parameters
    ----------
    mu : float
        :math:`2wLR/\sigma`: twice the largest l2 norm of a record's gradient over the standard
        deviation of the noise's coordinates.
    kappa : float
        :math:`wc_1R^2/m`: the largest eigenvalue of a record's Hessian over the smallest curvature.

    Raises
    ------
    InvalidInput
        For a negative or infinite number.
    """

    mu: float
    kappa: float

    def __post_init__(self):
        for key in ("mu", "kappa"):
            value = getattr(self, key)
            is_valid = bool(np.isfinite(value)) and value >= 0
            require(is_valid, f"objective.{key}", value, "a finite number >= 0")

    def divergence(self, order: Any) -> Any:
        r"""Return a bound on the Renyi divergence at orders :math:`\alpha>1`."""
        excess = order - 1
        log_moment = np.minimum(self._any_shift(order), self._slow_shift(order))
        return np.log1p(self.kappa) + log_moment / excess

    def _any_shift(self, order: np.ndarray) -> np.ndarray:
        r"""Return :math:`\ln E_1`."""
        shifted = order * (order - 1) * self.mu**2 / 2 + log_ndtr((order - 0.5) * self.mu)
        return np.logaddexp(log_ndtr(-self.mu / 2), shifted)

    def _slow_shift(self, order: np.ndarray) -> np.ndarray:
        r"""Return :math:`\ln E_2`, or infinity where it does not exist."""
        excess = order - 1
        margin = 1 - 4 * excess * self.kappa
        safe_margin = np.where(margin > 0, margin, 1.0)
        log_bound = excess * self.mu**2 / 2 + (excess * self.mu / 2) ** 2 * (1 + 1 / safe_margin)
        return np.where(margin > 0, log_bound - np.log(safe_margin) / 4, np.inf)

    def mu_if_sampled(self) -> float:
        r"""Return :math:`\mu`, since no batch is sampled."""
        return self.mu
