"""DP-ADMM, the baseline of Gratton et al. (Huang, Hu, Guo, Chan-Tin, Gong, IEEE TIFS 2020)."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from private_consensus.privacy.mechanisms import Gaussian

from ..parameters import AssumedBound, NonNegative, Positive, StepSize
from .base import INTERNAL, Algorithm, column, origin, per_iteration
from .families.consensus_admm import check_budget, provable


class DPADMMState(NamedTuple):
    """Noisy estimates, exact estimates and multipliers; the average of the server.

    The first three are [settings, runs, agents, P], the last is [settings, runs, 1, P].
    """

    noisy: np.ndarray
    exact: np.ndarray
    dual: np.ndarray
    server: np.ndarray


@dataclass(frozen=True, kw_only=True)
class DPADMM(Algorithm):
    r"""DP-ADMM for non-smooth objectives: linearised steps with Gaussian noise.

    Each agent linearises its objective at its noisy estimate, and a server averages the estimates:

    .. math::
        w_i &= \frac{\rho w + \gamma_i + \tilde w_i/\eta_t - f_i'(\tilde w_i)}{\rho + 1/\eta_t} \\
        \tilde w_i &\leftarrow w_i + N(0, s_t^2 I), \qquad
          s_t = \frac{2c_1\sqrt{2\ln(1.25/\delta)}}{N_i\,\epsilon\,(\rho + 1/\eta_t)} \\
        w &\leftarrow \tfrac1n\sum_i \tilde w_i - \tfrac1{n\rho}\sum_i\gamma_i, \qquad
        \gamma_i \leftarrow \gamma_i - \rho(\tilde w_i - w), \qquad \eta_t = \eta_0/\sqrt t

    with :math:`f_i'` a subgradient. The budget (epsilon, delta) applies to every iteration. Gratton
    et al. tune DP-ADMM, but do not state the tuned parameters or the method. Here, :math:`\rho` and
    :math:`\eta_0` are tuned.

    Parameters
    ----------
    rho : float
        Penalty :math:`\rho`.
    eta_0 : float
        First step size :math:`\eta_0`.
    c1 : float
        Assumed bound :math:`c_1` on the gradient of a record's loss, which sets the noise. The
        squared loss has no such bound.
    noise : float
        Noise in units of the gradient, :math:`s_t(\rho + 1/\eta_t)`; set by :meth:`calibrate`.
    """

    rho: Positive = 4.0
    eta_0: StepSize = 0.1
    c1: AssumedBound = 1.0
    noise: NonNegative = 0.0

    quantities = (INTERNAL, "released")
    needs = ("records",)
    source = "Huang et al., IEEE TIFS 2020; Gratton et al., section VI"

    def calibrate(self, budget, problem, network, horizon):
        """Return a copy with the noise of the paper's formula, for the budget of one iteration."""
        check_budget(budget)
        level = np.sqrt(2.0 * np.log(1.25 / budget.delta))
        noise = 2.0 * self.c1 * level / (problem.records * budget.epsilon)
        return replace(self, noise=float(noise))

    def claimed_epsilon(self, delta, problem, network, horizon):
        r"""Return the epsilon :math:`2\sqrt{\rho_M\ln(1/\delta)}` of all iterations.

        It is the epsilon of the moments accountant without the term :math:`\rho_M`.
        """
        if not self.noise:
            return float("inf")
        rho = horizon * (2.0 * self.c1 / problem.records / self.noise) ** 2 / 2.0
        return float(2.0 * np.sqrt(rho * np.log(1.0 / delta)))

    def weight(self, t):
        """Return the denominator of the linearised step."""
        return column(self.rho) + np.sqrt(t) / column(self.eta_0)

    def mechanisms(self, problem, network, horizon):
        bounded = problem.record_change("l2")
        changes = per_iteration(lambda t: bounded / self.weight(t), horizon)
        scales = per_iteration(lambda t: column(self.noise) / self.weight(t), horizon)
        return {"estimate": Gaussian(changes, scales, **provable(bounded))}

    def start(self, problem, network, release):
        zero = origin(problem, release)
        return DPADMMState(zero, zero, zero, zero[..., :1, :])

    def step(self, state, problem, network, release, t):
        rho, inverse_step = column(self.rho), np.sqrt(t) / column(self.eta_0)
        target = rho * state.server + state.dual + inverse_step * state.noisy
        # A linearised objective has its minimiser in closed form.
        exact = (target - problem.gradient(state.noisy)) / self.weight(t)
        noisy = release("estimate", exact)
        # The server receives noisy estimates; multipliers are functions of these.
        server = network.combine(noisy, mean) - network.combine(state.dual, mean) / rho
        return DPADMMState(noisy, exact, state.dual - rho * (noisy - server), server)

    def observables(self, state, problem, t):
        return {"internal": state.exact, "released": state.noisy}


def mean(x: np.ndarray) -> np.ndarray:
    """Return the mean of the values of all agents, [settings, runs, 1, dim]."""
    return x.mean(-2, keepdims=True)


ALGORITHM = DPADMM
