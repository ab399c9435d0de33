"""Private consensus gradient descent (Showkatbakhsh et al., Algorithm 1)."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal, NamedTuple

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy.mechanisms import Exact, Gaussian

from ..parameters import CALIBRATION, NonNegative
from .base import INTERNAL, NOTHING, Algorithm, Internal, column, origin, per_iteration
from .families.descent_theorems import (
    Calibration,
    allowance,
    descent_diagnostics,
    first_step,
    theorem_1_epsilon,
)


class State(NamedTuple):
    """Mixed estimates z, local estimates x and messages y, each [settings, runs, agents, p]."""

    z: np.ndarray
    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, kw_only=True)
class GradientDescent(Algorithm):
    r"""Private consensus gradient descent.

    .. math::
        z_i(t) &= \mathrm{Proj}\Bigl(\sum_j w_{ij}\, y_j(t)\Bigr) \quad (9) \\
        x_i(t) &= \mathrm{Proj}\bigl(z_i(t) - \eta_t \nabla f_i(z_i(t))\bigr) \quad (8) \\
        y_i(t+1) &= x_i(t) + n_i(t), \quad n_i(t) \sim N(0, M_t^2 I_p) \quad (11)

    with :math:`\eta_t = \eta_1/(t + \text{shift})`, :math:`\eta_1 = (\mu+L)/(2\mu L)` and
    :math:`M_t = m\,\eta_1 t^{-a}`. Stage I has T such steps from :math:`y_i(1) = 0`. Stage II is
    consensus without noise (eq. (12)). Neighbouring data sets differ in one record of one agent.

    Parameters
    ----------
    noise : float
        :math:`m`, standard deviation of the noise in units of the first step size.
    decay : float
        Exponent :math:`a`. The value 3/4 of Theorem 2 minimises :math:`\sum_t t M_t^2`; the value 1
        minimises the error of the mean, :math:`\sum_t t^2 M_t^2/T^2`.
    shift : float
        Offset of the step sizes; 0 in the paper.
    stage_two : {"repaired", "literal"}
        Start of Stage II. ``literal``: :math:`x_i(T)`, as in Algorithm 1 and eq. (12), which
        reveals the local gradient. ``repaired``: the message :math:`x_i(T) + n_i(T)`, as eq. (11)
        and the privacy cost of Theorem 1 imply.
    calibration : {"theorem_1", "gaussian_dp", "zcdp", "advanced_composition"}
        Privacy condition on :math:`\sum_t \Delta_t^2/M_t^2` (:mod:`.descent_theorems`).
    sensitivity : {"record", "lipschitz"}
        :math:`\Delta_t/\eta_t` in the calibration: the change of a gradient by one record (section
        V), or 2G with the Lipschitz constant of the local sum (Proposition 3 and Theorem 2).
    spending : {"theorem_2", "whole"}
        :math:`\sum_{t \le T} t^{-1/2}` in the calibration: its bound :math:`2\sqrt T`, which
        leaves a part of the budget unused, or the sum itself.
    """

    noise: NonNegative = 0.0
    decay: float = 0.75
    shift: NonNegative = 0.0
    stage_two: Literal["repaired", "literal"] = "repaired"
    calibration: Calibration = "theorem_1"
    sensitivity: Annotated[Literal["record", "lipschitz"], CALIBRATION] = "record"
    spending: Annotated[Literal["theorem_2", "whole"], CALIBRATION] = "theorem_2"

    source = "Showkatbakhsh et al., Algorithm 1, eqs. (8)-(12), Theorems 1 and 2"
    quantities = (
        INTERNAL, "released", "consensus", *map(Internal, ("reconstruction", "bound", "expected")),
    )  # fmt: skip
    privacy_depends_on = NOTHING
    needs = ("strong_convexity", "smoothness", "lipschitz")

    def step_size(self, problem, t):
        return first_step(problem) / (t + column(self.shift))

    def mechanisms(self, problem, network, horizon):
        change, first = problem.record_change("l2"), first_step(problem)
        shift, noise, decay = map(column, (self.shift, self.noise, self.decay))
        steps = per_iteration(lambda t: change * (first / (t + shift)), horizon)
        # With a < 1, the noise decreases more slowly than the steps: later messages cost less.
        scales = per_iteration(lambda t: noise * first * t**-decay, horizon)
        message = Gaussian(steps, scales)
        if self.stage_two == "repaired":
            return {"message": message}
        return {
            "message": message,
            "stage two": Exact(reason="Stage II broadcasts x(T) without noise"),
        }

    def start(self, problem, network, release):
        return State(*3 * (origin(problem, release),))

    def step(self, state, problem, network, release, t):
        # (9) mixes the own message y too, not x: z is a function of accounted messages.
        z = problem.project(network.mix(state.y))
        x = problem.project(z - self.step_size(problem, t) * problem.gradient(z))
        return State(z, x, release("message", x))

    def observables(self, state, problem, t):
        return {"internal": state.x, "released": state.y}

    def outcome(self, state, problem, network, release, t):
        # (12) starts from x(T), although Theorem 1 counts noise on all T messages.
        start = state.y if self.stage_two == "repaired" else release("stage two", state.x)
        diagnostics = descent_diagnostics(self, state, start, problem, network, t)
        return {"consensus": consensus_limit(network, start), **diagnostics}

    def calibrate(self, budget, problem, network, horizon):
        """Return a copy that meets the condition of ``calibration``, eq. (14) in the paper."""
        if np.isinf(budget.epsilon):
            return replace(self, noise=0.0)
        expected = "in (0, 1), since Gaussian noise requires a positive delta"
        require(budget.delta > 0, "budget.delta", budget.delta, expected)
        allowed = allowance(self.calibration, budget.epsilon, budget.delta, horizon)
        squared = self._squared_steps(horizon)
        # The integral of t^(-1/2) bounds the sum of Theorem 2, for the steps of the theorem only.
        if self.spending == "theorem_2" and self.decay == 0.75 and self.shift == 0:
            squared = 2.0 * np.sqrt(horizon)
        return replace(self, noise=self._assumed_change(problem) * np.sqrt(squared / allowed))

    def claimed_epsilon(self, delta, problem, network, horizon):
        """Return the epsilon of Theorem 1 with noise on all T messages, as the theorem assumes."""
        if not self.noise:
            return float("inf")
        squared_ratio = (self._assumed_change(problem) / self.noise) ** 2
        return theorem_1_epsilon(squared_ratio * self._squared_steps(horizon), delta)

    def _assumed_change(self, problem):
        if self.sensitivity == "lipschitz":
            return 2.0 * problem.lipschitz
        return problem.record_gradient_change

    def _squared_steps(self, horizon):
        r"""Return the sum of squared ratios of step and noise, :math:`m^2\sum_t(\eta_t/M_t)^2`."""
        t = np.arange(1.0, horizon + 1)
        return float(((t**self.decay / (t + self.shift)) ** 2).sum())


ALGORITHM = GradientDescent


def consensus_limit(network, x: np.ndarray) -> np.ndarray:
    r"""Return the limit of Stage II (eq. (12)), :math:`\lim_k W^k x`, in the shape of x.

    W is doubly stochastic and its graph connected, so that the limit is the mean over the agents.
    """
    mixed = network.mix(x)
    return np.broadcast_to(mixed.mean(-2, keepdims=True), mixed.shape)
