r"""Theorems 1 and 2 of Showkatbakhsh et al., and other privacy conditions on the noise.

Step t of T noisy gradient steps has the sensitivity :math:`\Delta_t` and Gaussian noise of
standard deviation :math:`M_t`. A privacy condition bounds :math:`\sum_t \Delta_t^2/M_t^2`.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

import numpy as np
from scipy.optimize import brentq

from private_consensus.privacy import gaussian_mu, zcdp_rho

from ...parameters import CALIBRATION

Calibration = Annotated[
    Literal["theorem_1", "gaussian_dp", "advanced_composition", "zcdp"], CALIBRATION
]
"""Names of the privacy conditions."""


@cache
def allowance(calibration: str, epsilon: float, delta: float, horizon: int) -> float:
    r"""Return the largest :math:`\sum_t \Delta_t^2/M_t^2` that a privacy condition permits.

    The conditions are those of :class:`..gradient_descent.GradientDescent`.
    """
    if calibration == "theorem_1":
        return theorem_1_allowance(epsilon, delta)
    if calibration == "zcdp":
        return 2.0 * float(zcdp_rho(epsilon, delta, conversion="cks"))
    if calibration == "advanced_composition":
        return advanced_composition_allowance(epsilon, delta, horizon)
    return float(gaussian_mu(epsilon, delta)) ** 2


def theorem_1_allowance(epsilon: float, delta: float) -> float:
    r"""Return the largest :math:`\sum_t \Delta_t^2/M_t^2` that Theorem 1 permits.

    It is :math:`\varepsilon^2/(\varepsilon + 2\ln(2/\delta))`, the right side of eq. (14).
    """
    squared = epsilon**2 if epsilon < 1e150 else np.inf
    return squared / (epsilon + 2.0 * np.log(2.0 / delta))


def advanced_composition_allowance(epsilon: float, delta: float, steps: int) -> float:
    r"""Return the largest :math:`\sum_t \Delta_t^2/M_t^2` that advanced composition permits.

    All steps are equally private. One half of delta is for the composition (Dwork and Roth, Theorem
    3.20), the other half for the steps. A step then has
    :math:`\Delta^2/M^2 = \varepsilon_0^2/(2\ln(1.25/\delta_0))` (Proposition 2).
    """
    slope = np.sqrt(2.0 * steps * np.log(2.0 / delta))

    def excess(step_epsilon):
        return slope * step_epsilon + steps * step_epsilon * np.expm1(step_epsilon) - epsilon

    step_epsilon = brentq(excess, 0.0, epsilon / slope * 2)
    return steps * step_epsilon**2 / (2.0 * np.log(1.25 * 2 * steps / delta))


def theorem_1_epsilon(squared_ratio_sum: float, delta: float) -> float:
    r"""Return the epsilon for which eq. (14) of Theorem 1 is an equality.

    The argument is :math:`\sum_t \Delta_t^2/M_t^2`.
    """
    return (
        squared_ratio_sum
        + np.sqrt(squared_ratio_sum**2 + 8.0 * squared_ratio_sum * np.log(2.0 / delta))
    ) / 2.0


def theorem_2_bound(T, inverse_kappa, G, first, p, beta, *, distance):
    r"""Return the right side of Theorem 2, an upper bound on the squared error.

    Parameters
    ----------
    inverse_kappa : float or ndarray
        :math:`1/\kappa = m^2/(2\sqrt T)`.
    G : float
        Lipschitz constant of the local sum.
    first : float
        First step size :math:`\eta_1`.
    beta : float or ndarray
        Second largest absolute eigenvalue of the mixing matrix.
    distance : float or ndarray
        Squared initial error, :math:`\|x_i(0) - x^*\|_2^2`.

    Returns
    -------
    float or ndarray
        With the broadcast shape of the arguments.
    """
    gap = 1.0 - beta
    step_term = G**2 * (1.0 + 1.0 / gap) * first**2 * np.log(T) / T
    mixed = 2.0 * np.sqrt(2.0 * p) * G * np.sqrt(inverse_kappa) * (4.0 + 3.0 / gap) * first**2
    noise_term = 2.0 * p * inverse_kappa * first**2
    return distance / T + step_term + mixed / T**0.25 + noise_term
