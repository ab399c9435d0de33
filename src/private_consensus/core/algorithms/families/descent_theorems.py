r"""Theorems 1 and 2 of Showkatbakhsh et al., other privacy conditions, and diagnostics of a run.

Step t of T noisy gradient steps has the sensitivity :math:`\Delta_t` and Gaussian noise of
standard deviation :math:`M_t`. A privacy condition bounds :math:`\sum_t \Delta_t^2/M_t^2`.
"""

from functools import cache
from typing import Annotated, Literal

import numpy as np
from scipy.optimize import brentq

from private_consensus.common.errors import require
from private_consensus.privacy import gaussian_mu, zcdp_rho

from ...parameters import CALIBRATION
from ..base import column

Calibration = Annotated[
    Literal["theorem_1", "gaussian_dp", "advanced_composition", "zcdp"], CALIBRATION
]
"""Names of the privacy conditions."""

MAX_AGENTS_OF_BOUND = 256
"""Largest network with the bound of Theorem 2. It needs the second eigenvalue of the mixing matrix,
whose computation takes longer than all iterations in larger networks."""


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


def first_step(problem) -> float:
    r"""Return the first step size :math:`\eta_1 = (\mu + L)/(2 \mu L)` (Theorem 2)."""
    names = "strong_convexity", "smoothness"
    mu, smooth = (getattr(problem, name, 0.0) for name in names)
    is_positive = bool(np.all(mu > 0) and np.all(smooth > 0))
    require(is_positive, "problem.name", type(problem).__name__, f"positive {' and '.join(names)}")
    return (mu + smooth) / (2.0 * mu * smooth)


def theorem_2_bound(T, inverse_kappa, G, first, p, beta, *, distance):
    r"""Return the right side of Theorem 2, an upper bound on the squared error.

    Parameters
    ----------
    inverse_kappa : float or ndarray
        :math:`1/\kappa = m^2/(2\sqrt T)`.
    G, first : float
        Lipschitz constant of the local sum, and first step size :math:`\eta_1`.
    beta : float or ndarray
        Second largest absolute eigenvalue of the mixing matrix.
    distance : float or ndarray
        Squared initial error, :math:`\|x_i(0) - x^*\|_2^2`.
    """
    gap = 1.0 - beta
    step_term = G**2 * (1.0 + 1.0 / gap) * first**2 * np.log(T) / T
    mixed = 2.0 * np.sqrt(2.0 * p) * G * np.sqrt(inverse_kappa) * (4.0 + 3.0 / gap) * first**2
    noise_term = 2.0 * p * inverse_kappa * first**2
    return distance / T + step_term + mixed / T**0.25 + noise_term


def descent_diagnostics(algorithm, state, broadcast, problem, network, t) -> dict[str, np.ndarray]:
    r"""Return the error of a reconstruction by an eavesdropper, and the error that theory states.

    The eavesdropper reconstructs the descent target of each agent, the result of a step of the
    first step size, :math:`z_i - \eta_1\nabla f_i(z_i) = z_i + T (x_i(T) - z_i)`. For mean
    estimation, it is the mean of the agent's records. The error is relative to the descent target
    and averaged over agents. If the problem states its optimum ``target``, the expected error is
    included and, with at most ``MAX_AGENTS_OF_BOUND`` agents, the bound of Theorem 2. All are
    [settings, runs]. ``broadcast`` has the first values that the agents broadcast in Stage II,
    [settings, runs, agents, p], and t is the last iteration.
    """
    first = first_step(problem)
    # x(T) = z - eta_1 gradient / T; without noise on x(T), the reconstruction is exact.
    reconstructed = state.z + (t + column(algorithm.shift)) * (broadcast - state.z)
    truth = state.z - first * problem.gradient(state.z)
    # Targets of audits may be 0, where the relative error is infinite or NaN.
    with np.errstate(divide="ignore", invalid="ignore"):
        relative_error = ((reconstructed - truth) ** 2).sum(-1) / (truth**2).sum(-1)
        quantities = {"reconstruction": np.sqrt(relative_error).mean(-1)}
        if problem.offers("target"):
            if network.n_agents <= MAX_AGENTS_OF_BOUND:
                quantities["bound"] = _theorem_2(algorithm, first, problem, network, t)
            quantities["expected"] = expected_error(algorithm, first, problem, t)
    return quantities


def expected_error(algorithm, first, problem, T: int) -> np.ndarray:
    r"""Return the expected normalised error of the limit of Stage II, for means without a box.

    A step covers the fraction :math:`\eta_t N_i = 1/(t+s)` of the distance to the local mean.
    Mixing preserves the mean of all agents. The error of this mean is

    .. math::
        \bar y(T) - \bar d = -\frac{s}{T+s}\,\bar d
            + \sum_{t \le T} \frac{t+s}{T+s}\,\bar n(t), \qquad
        E\|\bar n(t)\|_2^2 = \frac{p M_t^2}{N}

    where s is ``shift``, and ``first`` the first step size. With ``stage_two: literal``, Stage II
    starts without the last noise. The result is [settings, runs], in units of
    :math:`\|\bar d\|_2^2`.
    """
    t = np.arange(1.0, T + 1)
    noise, decay, shift = (
        np.atleast_1d(value)[:, None]
        for value in (algorithm.noise, algorithm.decay, algorithm.shift)
    )
    weighted = (t + shift) / (T + shift) * noise * first * t**-decay
    added = weighted if algorithm.stage_two == "repaired" else weighted[:, :-1]
    variance = problem.dim / problem.n_agents * (added**2).sum(-1, keepdims=True)
    return (shift / (T + shift)) ** 2 + variance / (problem.target**2).sum(-1)


def _theorem_2(algorithm, first, problem, network, T: int) -> np.ndarray:
    """Return the bound of Theorem 2 on the normalised error, [settings, runs].

    It holds for the schedule of the theorem: ``decay`` 3/4 and ``shift`` 0.
    """
    inverse_kappa = np.atleast_1d(algorithm.noise)[:, None] ** 2 / (2.0 * np.sqrt(T))
    distance, rate = (problem.target**2).sum(-1), network.consensus_rate
    bound = theorem_2_bound(
        T, inverse_kappa, problem.lipschitz, first, problem.dim, rate, distance=distance
    )
    return bound / distance
