r"""Private consensus gradient descent (paper 000, Algorithm 1).

.. math::
    z_i(t) &= \mathrm{Proj}\Bigl(\sum_j w_{ij}\, y_j(t)\Bigr) \quad (9) \\
    x_i(t) &= \mathrm{Proj}\bigl(z_i(t) - \eta_t \nabla f_i(z_i(t))\bigr) \quad (8) \\
    y_i(t+1) &= x_i(t) + n_i(t), \quad n_i(t) \sim N(0, M_t^2 I_p) \quad (11)

with :math:`y_i(1) = 0` for T steps, then consensus without noise (Stage II, eq. (12)).
Neighbouring data sets replace one record of one agent; sensitivities are l2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.optimize import brentq

from private_consensus.common.errors import require
from private_consensus.privacy import Release, gaussian_mu, zcdp_rho

from .base import NOTHING, Iterative, Range, column, origin
from .noise import Noise
from .parameters import noise_field, one_of

STAGE_TWO = ("repaired", "literal")
CALIBRATIONS = ("theorem_1", "gaussian_dp", "advanced_composition", "zcdp")
SENSITIVITIES = ("record", "lipschitz")
SPENDINGS = ("theorem_2", "whole")


class State(NamedTuple):
    """Mixed estimates z, local estimates x and messages y, each [settings, runs, agents, p]."""

    z: np.ndarray
    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, kw_only=True)
class GradientDescent(Iterative):
    r"""Private consensus gradient descent with the noise schedule :math:`M_t = m\,\eta_1 t^{-a}`.

    Parameters
    ----------
    noise : float
        :math:`m`, the noise in units of the first step size :math:`\eta_1 = (\mu+L)/(2\mu L)`.
    decay : float
        :math:`a`; 3/4 in Theorem 2, which minimises :math:`\sum_t t M_t^2`. The error of the mean
        is :math:`\sum_t t^2 M_t^2/T^2`, for which 1 is optimal.
    shift : float
        Step sizes are :math:`\eta_t = \eta_1/(t + \text{shift})`; 0 in the paper.
    stage_two : {"repaired", "literal"}
        ``literal`` starts Stage II from :math:`x_i(T)` as Algorithm 1 and eq. (12) print it, which
        reveals the local gradient exactly; ``repaired`` starts it from :math:`x_i(T) + n_i(T)`,
        which eq. (11) announces and Theorem 1 pays for.
    calibration : {"theorem_1", "gaussian_dp", "zcdp", "advanced_composition"}
        The condition on :math:`\sum_t \Delta_t^2/M_t^2`: eq. (14); the largest value that is
        (epsilon, delta)-DP, by the exact trade-off of Gaussian DP; what zCDP permits (Canonne,
        Kamath and Steinke's conversion); or what remains if equally private steps by Proposition 2
        are put together by advanced composition, the practice of Remark 1.
    sensitivity : {"record", "lipschitz"}
        :math:`\Delta_t/\eta_t`: what replacing one record does to a gradient, as in section V; or
        2G with G the Lipschitz constant of the local sum, as Proposition 3 and Theorem 2 have it.
    spending : {"theorem_2", "whole"}
        Theorem 2 bounds :math:`\sum_{t \le T} t^{-1/2}` by :math:`2\sqrt T` and leaves a part of
        the budget unused; ``whole`` uses the sum itself.
    """

    noise: Noise = noise_field()
    decay: float = 0.75
    shift: float = 0.0
    stage_two: str = one_of("repaired", STAGE_TWO)
    calibration: str = one_of("theorem_1", CALIBRATIONS, calibration=True)
    sensitivity: str = one_of("record", SENSITIVITIES, calibration=True)
    spending: str = one_of("theorem_2", SPENDINGS, calibration=True)

    privacy_depends_on: ClassVar[str] = NOTHING
    uses: ClassVar[tuple[str, ...]] = ("strong_convexity", "smoothness", "lipschitz")
    source: ClassVar[str] = "Paper 000, Algorithm 1, eqs. (8)-(12), Theorems 1 and 2"
    internal_outputs: ClassVar = ("internal", "reconstruction", "bound", "expected")
    ranges: ClassVar = {"decay": Range(0.5, 0.95, 0.75), "horizon": Range(3, 40, 20)}
    lower_bound_because: ClassVar[str] = (
        "records in opposite corners move each projected step by the attained part at every point"
    )

    def calibrate(self, budget, problem, network, horizon):
        """Return a copy whose noise meets the condition that ``calibration`` names.

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
        if np.isinf(budget.epsilon):
            return replace(self, noise=0.0)
        require(
            budget.delta > 0, "budget.delta", budget.delta, "in (0, 1): Gaussian noise needs it"
        )
        allowed = allowance(self.calibration, budget.epsilon, budget.delta, horizon)
        return replace(
            self, noise=self._assumed_change(problem) * np.sqrt(self._spent(horizon) / allowed)
        )

    def _assumed_change(self, problem) -> float:
        if self.sensitivity == "lipschitz":
            return 2.0 * problem.lipschitz
        return problem.record_gradient_change

    def _spent(self, horizon: int) -> float:
        r"""Return :math:`\sum_t (\eta_t/M_t)^2` in units of :math:`1/m^2`."""
        if self.spending == "theorem_2" and self.decay == 0.75 and self.shift == 0:
            return 2.0 * np.sqrt(horizon)
        return float((self._steps_to_noise(horizon) ** 2).sum())

    def _steps_to_noise(self, horizon: int) -> np.ndarray:
        t = np.arange(1, horizon + 1)
        return t**self.decay / (t + self.shift)

    def releases(self, problem, network, horizon):
        """Return the releases of the noisy steps and of the first message of Stage II.

        With ``stage_two: literal`` the last message has no noise.

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
            return [Release("exact", sensitivity=problem.record_gradient_change, scale=0.0)]
        t = np.arange(1, horizon + 1)
        sensitivity, scale = self._changes_and_scales(problem, horizon)
        attained = problem.attained_step_share(first_step(problem) / (t + self.shift))
        if self.stage_two == "repaired":
            return [Release("gaussian", sensitivity=sensitivity, scale=scale, attained=attained)]
        last = Release(
            "exact",
            sensitivity=float(sensitivity[-1]),
            scale=0.0,
            note="Stage II broadcasts x(T) without noise",
            attained=None if attained is None else float(attained[-1]),
        )
        if horizon == 1:
            return [last]
        earlier = Release("gaussian", sensitivity=sensitivity[:-1], scale=scale[:-1])
        return [earlier, last]

    def _changes_and_scales(self, problem, horizon: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the change of each message by one record and the scale of its noise, [horizon]."""
        t, first = np.arange(1, horizon + 1), first_step(problem)
        change = problem.record_gradient_change * first / (t + self.shift)
        return change, self.noise.scale * first * t**-self.decay

    def noise_sites(self, problem, network, horizon):
        """Return the site of the noise: the messages, with one scale per step.

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
        change, scale = self._changes_and_scales(problem, horizon)
        return [self.noise.site(scale[:, None, None], change / scale)]

    def epsilon_by_formula(self, delta, problem, network, horizon):
        """Return the epsilon of Theorem 1 with noise on all T messages, as the theorem assumes.

        Parameters
        ----------
        delta : float
            Delta at which epsilon is stated.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        float
            Infinite without noise.
        """
        if not self.noise:
            return float("inf")
        squared_ratio = (self._assumed_change(problem) / self.noise.scale) ** 2
        return theorem_1_epsilon(
            squared_ratio * float((self._steps_to_noise(horizon) ** 2).sum()), delta
        )

    def start(self, problem, network, streams, settings):
        """Return the state before the first iteration, with all values at 0.

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
        zero = origin(problem, streams, settings)
        return State(zero, zero, zero)

    def step(self, state, problem, network, draw, t):
        """Return the state after one projected gradient step, (8), (9) and (11).

        Parameters
        ----------
        state : State
            State before the iteration.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        draw : ndarray, shape (runs, agents, p)
            Unit noise of the iteration.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        State
            State after the iteration.
        """
        length = first_step(problem) / (t + column(self.shift))
        scale = self.noise_of_step(problem, t)
        z = problem.project(network.mix(state.y))
        x = problem.project(z - length * problem.gradient(z))
        return State(z, x, x + scale * draw)

    def noise_of_step(self, problem, t: int):
        """Return the noise scale of message t, broadcastable against iterates.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        float or ndarray
            :math:`M_t`.
        """
        return column(self.noise.scale) * first_step(problem) * t ** -column(self.decay)

    def observables(self, state, problem, t) -> Mapping[str, np.ndarray]:
        """Return the local estimates and the messages.

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
        return {"internal": state.x, "released": state.y}

    def outcome(self, state, problem, network, t):
        """Return the limit of Stage II, and the error of an eavesdropper's reconstruction.

        The error is relative to the descent target and averaged over agents. If the problem has a
        target, the bound of Theorem 2 and the expected error are included.

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
            ``consensus`` [settings, runs, agents, p]; other quantities [settings, runs].
        """
        broadcast = self.stage_two_start(state)
        reconstructed = reconstruct_descent_target(broadcast, state.z, t + column(self.shift))
        truth = state.z - first_step(problem) * problem.gradient(state.z)
        ended = {"consensus": consensus_limit(network, broadcast)}
        # Audits have targets of length 0, for which a relative error is undefined. The result is
        # infinite, or NaN if the distance is 0 too.
        with np.errstate(divide="ignore", invalid="ignore"):
            missed = ((reconstructed - truth) ** 2).sum(-1) / (truth**2).sum(-1)
            ended["reconstruction"] = np.sqrt(missed).mean(-1)
            if problem.offers("target"):
                ended["bound"] = self._theorem_2(problem, network, t)
                ended["expected"] = self.expected_error(problem, t)
        return ended

    def expected_error(self, problem, T: int) -> np.ndarray:
        r"""Return the expected normalised error of the limit of Stage II, for means without a box.

        A step covers the fraction :math:`\eta_t N_i = 1/(t+s)` of the distance to the local mean.
        Mixing keeps the mean of all agents. The error of this mean is

        .. math::
            \bar y(T) - \bar d = -\frac{s}{T+s}\,\bar d
                + \sum_{t \le T} \frac{t+s}{T+s}\,\bar n(t), \qquad
            E\|\bar n(t)\|_2^2 = \frac{p M_t^2}{N}

        where s is ``shift``. With ``stage_two: literal``, Stage II starts without the last noise.

        Parameters
        ----------
        problem : MeanEstimation
            p coordinates, N agents; the data are fixed.
        T : int
            Number of steps, at least 1.

        Returns
        -------
        ndarray, shape (settings, runs)
            In units of :math:`\|\bar d\|_2^2`.
        """
        t = np.arange(1, T + 1)
        noise, decay, shift = (
            np.atleast_1d(value)[:, None] for value in (self.noise.scale, self.decay, self.shift)
        )
        weighted = (t + shift) / (T + shift) * noise * first_step(problem) * t**-decay
        paid = weighted if self.stage_two == "repaired" else weighted[:, :-1]
        spread = problem.dim / problem.n_agents * (paid**2).sum(-1, keepdims=True)
        return (shift / (T + shift)) ** 2 + spread / (problem.target**2).sum(-1)

    def _theorem_2(self, problem, network, T: int) -> np.ndarray:
        """Return the bound of Theorem 2 at the set noise, in units of the normalised error.

        The result has shape [settings, runs]. It holds for the theorem's own schedule, ``decay``
        3/4 and ``shift`` 0.
        """
        inverse_kappa = np.atleast_1d(self.noise.scale)[:, None] ** 2 / (2.0 * np.sqrt(T))
        distance = (problem.target**2).sum(-1)
        rate = network.consensus_rate
        bound = theorem_2_bound(
            T,
            inverse_kappa,
            problem.lipschitz,
            first_step(problem),
            problem.dim,
            rate,
            distance=distance,
        )
        return bound / distance

    def stage_two_start(self, state: State) -> np.ndarray:
        """Return the first broadcast of the agents in Stage II."""
        return state.y if self.stage_two == "repaired" else state.x


ALGORITHM = GradientDescent


def first_step(problem) -> float:
    r"""Return the first step size :math:`\eta_1 = (\mu + L)/(2 \mu L)` (Theorem 2)."""
    mu, smooth = problem.strong_convexity, problem.smoothness
    return (mu + smooth) / (2.0 * mu * smooth)


@cache
def allowance(calibration: str, epsilon: float, delta: float, horizon: int) -> float:
    r"""Return the largest :math:`\sum_t \Delta_t^2/M_t^2` that a calibration permits.

    Parameters
    ----------
    calibration : {"theorem_1", "gaussian_dp", "zcdp", "advanced_composition"}
        Condition, as in :class:`GradientDescent`.
    epsilon : float
        Epsilon of the budget.
    delta : float
        Delta of the budget.
    horizon : int
        Number of iterations.

    Returns
    -------
    float
        Sum of squared ratios of sensitivity to noise.
    """
    if calibration == "theorem_1":
        return theorem_1_allowance(epsilon, delta)
    if calibration == "zcdp":
        return 2.0 * float(zcdp_rho(epsilon, delta, conversion="cks"))
    if calibration == "advanced_composition":
        return advanced_composition_allowance(epsilon, delta, horizon)
    return float(gaussian_mu(epsilon, delta)) ** 2


def theorem_1_allowance(epsilon: float, delta: float) -> float:
    r"""Return :math:`\varepsilon^2/(\varepsilon + 2\ln(2/\delta))`, the right side of eq. (14).

    Parameters
    ----------
    epsilon : float
        Epsilon of the budget.
    delta : float
        Delta of the budget.

    Returns
    -------
    float
        Largest :math:`\sum_t \Delta_t^2/M_t^2`.
    """
    squared = epsilon**2 if epsilon < 1e150 else np.inf
    return squared / (epsilon + 2.0 * np.log(2.0 / delta))


def advanced_composition_allowance(epsilon: float, delta: float, steps: int) -> float:
    r"""Return :math:`\sum_t \Delta_t^2/M_t^2` of equally private steps by advanced composition.

    One half of delta is charged to the composition (Dwork and Roth, Theorem 3.20), the other half
    to the steps. A step then has :math:`\Delta^2/M^2 = \varepsilon_0^2/(2\ln(1.25/\delta_0))`
    (Proposition 2).

    Parameters
    ----------
    epsilon : float
        Epsilon of the budget.
    delta : float
        Delta of the budget.
    steps : int
        Number of composed steps.

    Returns
    -------
    float
        Sum over all steps.
    """
    root = np.sqrt(2.0 * steps * np.log(2.0 / delta))
    step_epsilon = brentq(
        lambda e: root * e + steps * e * np.expm1(e) - epsilon, 0.0, epsilon / root * 2
    )
    return steps * step_epsilon**2 / (2.0 * np.log(1.25 * 2 * steps / delta))


def theorem_2_bound(T, inverse_kappa, G, first, p, beta, *, distance):
    r"""Return the right side of Theorem 2, an upper bound on the squared error.

    Parameters
    ----------
    T : int
        Number of steps.
    inverse_kappa : float or ndarray
        :math:`1/\kappa = m^2/(2\sqrt T)`.
    G : float
        Lipschitz constant of the local sum.
    first : float
        First step size :math:`\eta_1`.
    p : int
        Number of coordinates.
    beta : float or ndarray
        Second largest absolute eigenvalue of the mixing matrix.
    distance : float or ndarray
        :math:`\|x_i(0) - x^*\|_2^2`.

    Returns
    -------
    float or ndarray
        In the broadcast shape of the arguments.
    """
    gap = 1.0 - beta
    slow = 2.0 * np.sqrt(2.0 * p) * G * np.sqrt(inverse_kappa) * (4.0 + 3.0 / gap) * first**2
    steps = G**2 * (1.0 + 1.0 / gap) * first**2
    floor = 2.0 * p * inverse_kappa * first**2
    return distance / T + steps * np.log(T) / T + slow / T**0.25 + floor


def theorem_1_epsilon(squared_ratio_sum: float, delta: float) -> float:
    r"""Return the epsilon for which eq. (14) is an equality.

    Parameters
    ----------
    squared_ratio_sum : float
        :math:`\sum_t \Delta_t^2/M_t^2`.
    delta : float
        Delta of the guarantee.

    Returns
    -------
    float
        Epsilon of Theorem 1.
    """
    return (
        squared_ratio_sum
        + np.sqrt(squared_ratio_sum**2 + 8.0 * squared_ratio_sum * np.log(2.0 / delta))
    ) / 2.0


def consensus_limit(
    network, x: np.ndarray, *, tolerance: float = 1e-9, max_rounds: int = 100_000
) -> np.ndarray:
    r"""Return the limit of Stage II (eq. (12)), :math:`\lim_k W^k x`.

    W is doubly stochastic and its graph connected, so that the limit is the mean over the agents.
    If messages are lost, the rounds are simulated until no value changes by more than ``tolerance``
    relative to the largest value of the run.

    Parameters
    ----------
    network : Network
        Communication graph with its mixing matrix.
    x : ndarray, shape (..., n, d)
        First values that the agents broadcast.
    tolerance : float
        Relative change at which the rounds with lost messages end.
    max_rounds : int
        Maximum number of these rounds.

    Returns
    -------
    ndarray, shape (..., n, d)
        Values of all agents in the limit.
    """
    mixed = network.mix(x)
    if network.lossless:
        return np.broadcast_to(mixed.mean(-2, keepdims=True), mixed.shape)
    active = np.ones((*x.shape[:-2], 1, 1), dtype=bool)
    for _ in range(max_rounds):
        change = np.abs(mixed - x).max((-2, -1), keepdims=True)
        x = np.where(active, mixed, x)
        active = active & (change > tolerance * np.abs(mixed).max((-2, -1), keepdims=True))
        if not active.any():
            break
        mixed = network.mix(x)
    return x


def reconstruct_descent_target(broadcast: np.ndarray, z: np.ndarray, t) -> np.ndarray:
    r"""Reconstruct the descent target of an agent from public values, as an eavesdropper can.

    With :math:`x_i(T) = z_i - \eta_1 \nabla f_i(z_i)/T`, the point :math:`z_i + T (x_i(T) - z_i) =
    z_i - \eta_1\nabla f_i(z_i)` follows from public values if :math:`x_i(T)` is broadcast without
    noise. For mean estimation it is the mean of the agent's records.

    Parameters
    ----------
    broadcast : ndarray, shape (..., p)
        Last message.
    z : ndarray, shape (..., p)
        Mixed estimates before the last step, a function of messages.
    t : float or ndarray
        Ratio of the first to the last step size.

    Returns
    -------
    ndarray, shape (..., p)
        Reconstructed points.
    """
    return z + t * (broadcast - z)
