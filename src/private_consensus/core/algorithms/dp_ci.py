"""DP-CI, private consensus + innovations (Wang et al., eq. (3))."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal, NamedTuple

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Relation
from private_consensus.privacy.mechanisms import Laplace

from ..parameters import CALIBRATION, Fraction, NonNegative, Positive, UnitInterval
from .base import INTERNAL, Algorithm, column, per_iteration


class DPCIState(NamedTuple):
    """Estimates x(t) and messages x(t) + n(t), each [settings, runs, agents, n]."""

    x: np.ndarray
    sent: np.ndarray


@dataclass(frozen=True, kw_only=True)
class DPCI(Algorithm):
    r"""DP-CI, private consensus + innovations, with both noise schedules of Wang et al.

    For t = 0, 1, ...,

    .. math::
        \tilde x_i(t) &= x_i(t) + n_i(t), \qquad n_i(t) \sim \mathrm{Lap}(0, \sigma_t)
            \text{ in each coordinate} \\
        x_i(t+1) &= \tilde x_i(t) - \alpha(t) \sum_{j \in N_i} (\tilde x_i(t) - \tilde x_j(t))
            + \alpha(t) H_i(t)^\top \bigl(y_i(t) - H_i(t) \tilde x_i(t)\bigr) \quad (3)

    An agent continues from its own NOISY value. Given earlier messages, message t + 1 therefore
    depends on :math:`y_i(t)` only (E3.4). The noise has weight 1, not :math:`\alpha(t)`. The
    matrices :math:`H_i(t)` are public.

    In neighbouring data sets, measurements of one agent differ by at most :math:`\delta` each, in
    l1 norm: one measurement (Definition 3.1), or all measurements of the agent.

    Parameters
    ----------
    schedule : {"power", "exponential"}
        Schedule of step sizes and noise. ``power``: :math:`\alpha(t) = c/(t+s)^\gamma` and
        :math:`\sigma_t = \kappa\,\alpha(t-1)\,\delta H_{\max}` (Theorem 4.5, with
        :math:`\kappa = 1/\varepsilon`). ``exponential``: :math:`\alpha(t) = c\,q^{t+1}` and
        :math:`\sigma_t = \kappa\,c\,p^t\,\delta H_{\max}` (Theorem 4.16, with
        :math:`\kappa = 1`).
    c, gamma, shift, q, p : float
        Parameters :math:`c, \gamma, s, q, p` of the schedules. With s = 1, the step
        :math:`1/t^\gamma` of the paper is defined from t = 0. The simulation of the paper has
        s = 2 and c = 2.
    noise : float
        Noise :math:`\kappa` in units of its schedule; 0 for none.
    delta : float
        Largest change :math:`\delta` of a measurement, in l1 norm.
    hmax : {"constant", "time_varying"}
        Value of :math:`H_{\max}`: the supremum over all times, as in the simulation of the paper,
        or the value at time t - 1 (eq. (4)), which is never larger.
    initial_noise : bool
        Whether noise is added to the message :math:`x_i(0)`, which does not depend on data.
    unit : {"measurement", "stream"}
        Neighbouring relation: one measurement or all measurements of one agent differ.
    calibration : {"budget", "theorem"}
        Rule that sets the noise: the budget, or :math:`\kappa = 1` as in Theorem 4.16.
    """

    schedule: Literal["power", "exponential"] = "power"
    c: Positive = 1.0
    gamma: UnitInterval = 1.0
    shift: Positive = 1.0
    q: Fraction = 0.4
    p: Fraction = 0.8
    noise: NonNegative = 0.0
    delta: Positive = 0.2
    hmax: Literal["constant", "time_varying"] = "constant"
    initial_noise: bool = False
    unit: Annotated[Literal["measurement", "stream"], CALIBRATION] = "measurement"
    calibration: Annotated[Literal["budget", "theorem"], CALIBRATION] = "budget"

    quantities = (INTERNAL, "released")
    needs = ("data", "matrices", "largest_row_norm")
    source = "Wang et al., eqs. (1)-(4), Theorems 4.5, 4.11-4.17"

    def __post_init__(self):
        super().__post_init__()
        if self.schedule == "exponential":
            is_larger = bool(np.all(np.asarray(self.p) > self.q))
            require(is_larger, "algorithm.p", self.p, "a number in (q, 1)")
        elif self.initial_noise:
            expected = "a number > 1: the noise at t = 0 is proportional to the step at t = -1"
            is_late = bool(np.all(np.asarray(self.shift) > 1))
            require(is_late, "algorithm.shift", self.shift, expected)

    @property
    def largest_change(self):
        return float(self.delta)

    @property
    def relation(self) -> Relation:
        return Relation(self.unit, "replace")

    def step_size(self, t: float | np.ndarray):
        r"""Return the step size :math:`\alpha(t)`."""
        if self.schedule == "exponential":
            return self.c * self.q ** (t + 1)
        return self.c / (t + self.shift) ** self.gamma

    def noise_scale(self, problem, t: int):
        r"""Return the scale :math:`\sigma_t` of message t, counted from 0."""
        if t == 0 and not self.initial_noise:
            return 0.0 * self.noise
        row_norm = problem.largest_row_norm
        if self.hmax == "time_varying":
            row_norm = float(problem.row_norm(t - 1).max())
        step = self.c * self.p**t if self.schedule == "exponential" else self.step_size(t - 1)
        return self.noise * self.delta * row_norm * step

    def calibrate(self, budget, problem, network, horizon):
        r"""Return a copy with the noise for a budget, by the theorems of the paper.

        With ``power``, the epsilon of the budget is that of each message (Theorem 4.5) or, if the
        unit is a stream, that of all ``horizon`` messages (Theorem 4.15). With ``exponential``, it
        is the total of Theorem 4.17, :math:`\tfrac1\kappa\,p/(p-q)`.
        """
        self.check_needs(problem)
        if np.isinf(budget.epsilon):
            return replace(self, noise=0.0)
        if self.calibration == "theorem":
            return replace(self, noise=1.0)
        if self.schedule == "exponential":
            return replace(self, noise=self.p / (self.p - self.q) / budget.epsilon)
        # For a stream, the paper adds the losses of all messages (Theorem 4.15).
        messages = horizon if self.unit == "stream" else 1
        return replace(self, noise=messages / budget.epsilon)

    def claimed_epsilon(self, delta, problem, network, horizon):
        r"""Return the total epsilon of all messages, by Theorem 4.15 or 4.17.

        For :math:`\kappa = 1` it is :math:`T` or :math:`p/(p-q)`. The paper composes the losses of
        all messages, although its neighbouring data sets differ at one time only.
        """
        if not self.noise:
            return float("inf")
        if self.schedule == "exponential":
            return self.p / (self.p - self.q) / self.noise
        return horizon / self.noise

    def mechanisms(self, problem, network, horizon):
        r"""Declare the messages from t = 1 on; message 0 does not depend on data.

        Given earlier messages, message t of agent i depends only on :math:`y_i(t-1)`. It changes by
        at most :math:`\alpha(t-1)\,\delta\,S_i(t-1)` in l1, with :math:`S_i` the largest row sum of
        :math:`|H_i|`, which is public. A measurement therefore affects one message of one agent.
        """
        rows = problem.row_norms(np.arange(horizon))[..., None]
        changes = per_iteration(
            lambda t: column(self.step_size(t - 1)) * column(self.delta) * rows[t - 1], horizon
        )
        scales = per_iteration(lambda t: column(self.noise_scale(problem, t)), horizon)
        if self.unit == "stream":
            return {"message": Laplace(changes, scales)}
        # A measurement at one time enters one message, since agents continue from noisy values.
        note = "each measurement affects one message; this is the message with the largest loss"
        return {"message": Laplace(changes, scales, touched=1, note=note)}

    def start(self, problem, network, release):
        shape = (release.settings, release.runs, problem.n_agents, problem.dim)
        x = np.broadcast_to(problem.initial, shape).copy()
        # Message 0 does not depend on data, so that no mechanism covers its noise.
        unit = release.once("initial message", "laplace", shape[2:], "noise")
        return DPCIState(x, x + column(self.noise_scale(problem, 0)) * unit)

    def step(self, state, problem, network, release, t):
        # The paper counts from t = 0: message t depends on the measurement at t - 1.
        before = t - 1
        unit = release.random("observations", "uniform", problem.constant.shape[:2], "data")
        H, sent = problem.matrices(before), state.sent
        residual = problem.data(before, unit) - (H * sent[..., None, :]).sum(-1)
        innovation = (H * residual[..., None]).sum(-2)
        disagreement = network.degrees[..., None] * sent - network.neighbour_sum(sent)
        x = sent + column(self.step_size(before)) * (innovation - disagreement)
        return DPCIState(x, release("message", x))

    def observables(self, state, problem, t):
        return {"internal": state.x, "released": state.sent}


ALGORITHM = DPCI
