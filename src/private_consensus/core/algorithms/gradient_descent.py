r"""Private consensus gradient descent (Showkatbakhsh et al., Algorithm 1).

.. math::
    z_i(t) &= \mathrm{Proj}\Bigl(\sum_j w_{ij}\, y_j(t)\Bigr) \quad (9) \\
    x_i(t) &= \mathrm{Proj}\bigl(z_i(t) - \eta_t \nabla f_i(z_i(t))\bigr) \quad (8) \\
    y_i(t+1) &= x_i(t) + n_i(t), \quad n_i(t) \sim N(0, M_t^2 I_p) \quad (11)

Stage I has T such steps from :math:`y_i(1) = 0`. Stage II is consensus without noise (eq. (12)).
Neighbouring data sets differ in one record of one agent; sensitivities are in the l2 norm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Release

from .base import NOTHING, Iterative, Range, column, origin
from .families.descent_theorems import (
    CALIBRATIONS,
    allowance,
    theorem_1_epsilon,
    theorem_2_bound,
)
from .noise import Noise
from .parameters import noise_field, nonnegative, one_of

STAGE_TWO = ("repaired", "literal")
SENSITIVITIES = ("record", "lipschitz")
SPENDINGS = ("theorem_2", "whole")
MAX_AGENTS_OF_BOUND = 256
"""Largest network with the bound of Theorem 2. It needs the second eigenvalue of the mixing matrix,
whose computation takes longer than all iterations in larger networks."""


class GradientDescentState(NamedTuple):
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
        :math:`m`, standard deviation of the noise in units of the first step size
        :math:`\eta_1 = (\mu+L)/(2\mu L)`.
    decay : float
        Exponent :math:`a` of the noise schedule. The value 3/4 of Theorem 2 minimises
        :math:`\sum_t t M_t^2`. The error of the mean is :math:`\sum_t t^2 M_t^2/T^2`, which the
        value 1 minimises.
    shift : float
        Offset of the step sizes :math:`\eta_t = \eta_1/(t + \text{shift})`; 0 in the paper.
    stage_two : {"repaired", "literal"}
        Starting point of Stage II. ``literal``: :math:`x_i(T)`, as in Algorithm 1 and eq. (12),
        which reveals the local gradient exactly. ``repaired``: :math:`x_i(T) + n_i(T)`, as eq. (11)
        and the privacy cost of Theorem 1 imply.
    calibration : {"theorem_1", "gaussian_dp", "zcdp", "advanced_composition"}
        Privacy condition on :math:`\sum_t \Delta_t^2/M_t^2` that sets the noise. ``theorem_1``:
        eq. (14). ``gaussian_dp``: the exact condition for (epsilon, delta)-DP. ``zcdp``: the
        conversion of Canonne, Kamath and Steinke. ``advanced_composition``: equally private steps
        by Proposition 2 under advanced composition, as in Remark 1.
    sensitivity : {"record", "lipschitz"}
        Assumed :math:`\Delta_t/\eta_t`. ``record``: the largest change of a gradient by one
        replaced record (section V). ``lipschitz``: 2G, with G the Lipschitz constant of the local
        sum (Proposition 3 and Theorem 2).
    spending : {"theorem_2", "whole"}
        Value of :math:`\sum_{t \le T} t^{-1/2}` in the calibration. ``theorem_2``: the upper bound
        :math:`2\sqrt T`, which leaves a part of the budget unused. ``whole``: the sum itself.
    """

    noise: Noise = noise_field()
    decay: float = 0.75
    shift: float = nonnegative(0.0)
    stage_two: str = one_of("repaired", STAGE_TWO)
    calibration: str = one_of("theorem_1", CALIBRATIONS, calibration=True)
    sensitivity: str = one_of("record", SENSITIVITIES, calibration=True)
    spending: str = one_of("theorem_2", SPENDINGS, calibration=True)

    quantities: ClassVar = (
        "internal",
        "released",
        "consensus",
        "reconstruction",
        "bound",
        "expected",
    )
    privacy_depends_on: ClassVar[str] = NOTHING
    uses = ("strong_convexity", "smoothness", "lipschitz")
    source: ClassVar[str] = "Showkatbakhsh et al., Algorithm 1, eqs. (8)-(12), Theorems 1 and 2"
    internal_outputs: ClassVar = ("internal", "reconstruction", "bound", "expected")
    ranges: ClassVar = {"decay": Range(0.5, 0.95, 0.75), "horizon": Range(3, 40, 20)}
    lower_bound_because: ClassVar[str] = (
        "records in opposite corners change each projected step by the attained fraction"
    )

    def calibrate(self, budget, problem, network, horizon):
        if np.isinf(budget.epsilon):
            return replace(self, noise=0.0)
        expected = "in (0, 1), since Gaussian noise requires a positive delta"
        require(budget.delta > 0, "budget.delta", budget.delta, expected)
        allowed = allowance(self.calibration, budget.epsilon, budget.delta, horizon)
        noise = self._assumed_change(problem) * np.sqrt(self._squared_ratios(horizon) / allowed)
        return replace(self, noise=noise)

    def _assumed_change(self, problem) -> float:
        if self.sensitivity == "lipschitz":
            return 2.0 * problem.lipschitz
        return problem.record_gradient_change

    def _squared_ratios(self, horizon: int) -> float:
        r"""Return the sum of squared steps over noise, :math:`m^2\sum_t(\eta_t/M_t)^2`."""
        if self.spending == "theorem_2" and self.decay == 0.75 and self.shift == 0:
            return 2.0 * np.sqrt(horizon)
        return float((self._steps_to_noise(horizon) ** 2).sum())

    def _steps_to_noise(self, horizon: int) -> np.ndarray:
        t = np.arange(1.0, horizon + 1)
        return t**self.decay / (t + self.shift)

    def releases(self, problem, network, horizon):
        """Return the noisy steps and the first message of Stage II.

        With ``stage_two: literal`` the last message has no noise.
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
        t, first = np.arange(1.0, horizon + 1), first_step(problem)
        change = problem.record_gradient_change * first / (t + self.shift)
        return change, self.noise.scale * first * t**-self.decay

    def noise_sites(self, problem, network, horizon):
        if not self.noise:
            return []
        change, scale = self._changes_and_scales(problem, horizon)
        return [self.noise.site(scale[:, None, None], change / scale)]

    def epsilon_by_formula(self, delta, problem, network, horizon):
        """Return the epsilon of Theorem 1 with noise on all T messages, as the theorem assumes."""
        if not self.noise:
            return float("inf")
        squared_ratio = (self._assumed_change(problem) / self.noise.scale) ** 2
        squared_steps = float((self._steps_to_noise(horizon) ** 2).sum())
        return theorem_1_epsilon(squared_ratio * squared_steps, delta)

    def start(self, problem, network, streams, settings):
        zero = origin(problem, streams, settings)
        return GradientDescentState(zero, zero, zero)

    def step(self, state, problem, network, draw, t):
        """Return the state after one projected gradient step, (8), (9) and (11)."""
        step_size = first_step(problem) / (t + column(self.shift))
        scale = self.noise_of_step(problem, t)
        z = problem.project(network.mix(state.y))
        x = problem.project(z - step_size * problem.gradient(z))
        return GradientDescentState(z, x, x + scale * draw)

    def noise_of_step(self, problem, t: int):
        """Return the noise scale :math:`M_t` of message t, broadcastable against iterates."""
        return column(self.noise.scale) * first_step(problem) * t ** -column(self.decay)

    def observables(self, state, problem, t) -> Mapping[str, np.ndarray]:
        return {"internal": state.x, "released": state.y}

    def outcome(self, state, problem, network, t):
        """Return the limit of Stage II, and the error of a reconstruction by an eavesdropper.

        The error is relative to the descent target and averaged over agents. If the problem states
        its optimum ``target``, the expected error is included and, with at most
        ``MAX_AGENTS_OF_BOUND`` agents, the bound of Theorem 2.
        """
        broadcast = self.stage_two_start(state)
        reconstructed = reconstruct_descent_target(broadcast, state.z, t + column(self.shift))
        truth = state.z - first_step(problem) * problem.gradient(state.z)
        quantities = {"consensus": consensus_limit(network, broadcast)}
        # Targets of audits may be 0, where the relative error is infinite or NaN.
        with np.errstate(divide="ignore", invalid="ignore"):
            relative_error = ((reconstructed - truth) ** 2).sum(-1) / (truth**2).sum(-1)
            quantities["reconstruction"] = np.sqrt(relative_error).mean(-1)
            if problem.offers("target"):
                if network.n_agents <= MAX_AGENTS_OF_BOUND:
                    quantities["bound"] = self._theorem_2(problem, network, t)
                quantities["expected"] = self.expected_error(problem, t)
        return quantities

    def expected_error(self, problem, T: int) -> np.ndarray:
        r"""Return the expected normalised error of the limit of Stage II, for means without a box.

        A step covers the fraction :math:`\eta_t N_i = 1/(t+s)` of the distance to the local mean.
        Mixing preserves the mean of all agents. The error of this mean is

        .. math::

            \bar y(T) - \bar d = -\frac{s}{T+s}\,\bar d
                + \sum_{t \le T} \frac{t+s}{T+s}\,\bar n(t), \qquad
            E\|\bar n(t)\|_2^2 = \frac{p M_t^2}{N}

        where s is ``shift``, p the number of coordinates and N that of agents. With ``stage_two:
        literal``, Stage II starts without the last noise. The result, [settings, runs], is in units
        of :math:`\|\bar d\|_2^2`.
        """
        t = np.arange(1.0, T + 1)
        noise, decay, shift = (
            np.atleast_1d(value)[:, None] for value in (self.noise.scale, self.decay, self.shift)
        )
        weighted = (t + shift) / (T + shift) * noise * first_step(problem) * t**-decay
        added = weighted if self.stage_two == "repaired" else weighted[:, :-1]
        variance = problem.dim / problem.n_agents * (added**2).sum(-1, keepdims=True)
        return (shift / (T + shift)) ** 2 + variance / (problem.target**2).sum(-1)

    def _theorem_2(self, problem, network, T: int) -> np.ndarray:
        """Return the bound of Theorem 2 on the normalised error, [settings, runs]."""
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

    def stage_two_start(self, state: GradientDescentState) -> np.ndarray:
        """Return the first broadcast of the agents in Stage II."""
        return state.y if self.stage_two == "repaired" else state.x


ALGORITHM = GradientDescent


def first_step(problem) -> float:
    r"""Return the first step size :math:`\eta_1 = (\mu + L)/(2 \mu L)` (Theorem 2)."""
    names = "strong_convexity", "smoothness"
    mu, smooth = (getattr(problem, name, 0.0) for name in names)
    is_positive = bool(np.all(mu > 0) and np.all(smooth > 0))
    require(is_positive, "problem.name", type(problem).__name__, f"positive {' and '.join(names)}")
    return (mu + smooth) / (2.0 * mu * smooth)


def consensus_limit(network, x: np.ndarray) -> np.ndarray:
    r"""Return the limit of Stage II (eq. (12)), :math:`\lim_k W^k x`, of broadcast values.

    W is doubly stochastic and its graph connected, so that the limit is the mean over the agents.
    """
    mixed = network.mix(x)
    return np.broadcast_to(mixed.mean(-2, keepdims=True), mixed.shape)


def reconstruct_descent_target(broadcast: np.ndarray, z: np.ndarray, t) -> np.ndarray:
    r"""Compute the descent target of an agent from the values that an eavesdropper receives.

    The descent target is the result of a step of the first step size,
    :math:`z_i - \eta_1\nabla f_i(z_i)`. It equals :math:`z_i + T (x_i(T) - z_i)`, since
    :math:`x_i(T) = z_i - \eta_1 \nabla f_i(z_i)/T`. If :math:`x_i(T)` is broadcast without noise,
    the result is exact. For mean estimation it is the mean of the agent's records. ``broadcast``
    is the last message, ``z`` the mixed estimate before the last step, a function of messages, and
    ``t`` the ratio of the first to the last step size.
    """
    return z + t * (broadcast - z)
