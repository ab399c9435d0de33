"""Common base of decentralized ADMM and its private versions."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from scipy.optimize import brentq

from private_consensus.common.errors import OutsideRange, require
from private_consensus.privacy import zcdp_epsilon, zcdp_rho
from private_consensus.privacy.mechanisms import Objective

from ...parameters import CALIBRATION, NonNegative, Positive
from ..base import (
    DEGREES,
    INTERNAL,
    DecayingNoise,
    column,
    least_noise,
    normal_start,
    per_iteration,
)

NOISES = (1e-15, 1e20)
"""Limits of the search for the noise scale that meets a zCDP budget."""

Conversion = Annotated[Literal["shortcut", "safe", "cks"] | None, CALIBRATION]


class ADMMState(NamedTuple):
    """State of decentralized ADMM after an iteration.

    Messages x, dual variables a, minimisers (starting points of the next minimisation) and sums of
    the values received from neighbours are [settings, runs, agents, dim]. The accumulated privacy
    loss ``total_loss`` is [settings, runs, agents]. ``extra`` has further arrays of a version.
    """

    x: np.ndarray
    dual: np.ndarray
    minimiser: np.ndarray
    received: np.ndarray
    total_loss: np.ndarray
    extra: Mapping[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class ADMMFamily(DecayingNoise):
    r"""Decentralized ADMM whose messages are exact minimisers with noise.

    The dual variable is :math:`a_i = 2\lambda_i` (Ding, DVP, M-ADMM) or :math:`a_i = -\lambda_i`
    (Xiao et al.). An iteration is

    .. math::
        c_i &= w_i x_i + (1-w_i)\,\bar x_i \qquad \bar x_i = \tfrac1{|N_i|}\sum_{j\in N_i} x_j \\
        \hat x_i &= \arg\min_x f_i(x) + a_i^T x + \tfrac{D_i}2\|x - c_i\|_2^2 \\
        a_i &\leftarrow a_i + \zeta \sum_{j\in N_i} (x_i - x_j) \qquad\text{with the new } x

    where :math:`x_i` is the message of agent i. The textbook algorithm
    :math:`\min f_i + 2\lambda_i^Tx + \eta\sum_j\|x - \frac{x_i+x_j}2\|^2` has :math:`w_i = 1/2`,
    :math:`D_i = 2\eta|N_i|` and :math:`\zeta = \eta`. The message of the base is
    :math:`x_i = \hat x_i` plus noise. A private version overrides ``step`` and ``mechanisms``.

    Parameters
    ----------
    eta : float
        Penalty parameter :math:`\eta` of an edge; the penalty of agent i is
        :math:`D_i = 2\eta|N_i|`.
    D : float, optional
        Penalty of every agent, which replaces :math:`2\eta|N_i|`.
    zeta : float, optional
        Step size :math:`\zeta` of the dual variable; the default is :math:`\eta`.
    penalty_growth : float
        Factor by which penalties are multiplied in every iteration.
    rho_conversion : {"shortcut", "safe", "cks"}, optional
        Conversion from zero-concentrated differential privacy (zCDP) to (epsilon, delta). If it is
        set, the epsilon by formula is that of :meth:`rho_by_formula`, as in the dissertation of
        Ding.
    """

    eta: Positive = 0.5
    D: Positive | None = None
    zeta: Positive | None = None
    penalty_growth: Positive = 1.0
    init_std: NonNegative = 0.0
    rho_conversion: Conversion = None

    quantities = (INTERNAL, "released", "worst_case")
    privacy_depends_on = DEGREES
    needs = ("proximal", "least_convexity")
    calibrated = ("noise",)
    """Fields that a calibration sets, which are 0 without noise."""

    def penalty(self, network, t: int) -> np.ndarray:
        """Return :math:`D_i` in iteration t, broadcastable to [settings, runs, agents, 1]."""
        if self.D is not None:
            base = column(self.D) * np.ones((1, 1, 1, 1))
        else:
            base = 2.0 * column(self.eta) * network.degrees[..., None]
        return base * column(self.penalty_growth) ** t

    @property
    def dual_step(self) -> Any:
        r"""Step size :math:`\zeta` of the dual; negative for a dual of opposite sign."""
        return column(self.eta if self.zeta is None else self.zeta)

    def mechanisms(self, problem, network, horizon):
        # All earlier messages are known, so that a record changes the new minimiser only.
        def change(t):
            return problem.minimiser_change(self.norm, self.penalty(network, t))

        return {"message": self.additive(per_iteration(change, horizon), horizon)}

    # The algorithm.

    def centre(self, state: ADMMState, network) -> np.ndarray:
        """Return the centre :math:`c_i`: the mean of the message and the neighbours' mean."""
        # Equal weights w_i = 1/2 are those of the textbook algorithm.
        return (state.x + state.received / network.degrees[..., None]) / 2

    def objective(self, state: ADMMState, problem, penalty, centre, added: Any = None) -> Objective:
        r"""Return the augmented objective as a query of objective perturbation.

        ``penalty`` is :math:`D_i`, ``centre`` is :math:`c_i`, and ``added`` the curvature
        :math:`\Phi_i` of an added term :math:`\frac{\Phi_i}2\|x\|^2`. The minimisation starts at
        the previous minimiser.
        """
        if added is not None:
            # D/2 |x - c|^2 + Phi/2 |x|^2 is one square of weight D + Phi, up to a constant.
            penalty, centre = penalty + added, penalty * centre / (penalty + added)

        def solve(noise, **options):
            linear = state.dual + noise
            return problem.proximal(linear, penalty, centre, state.minimiser, **options)

        def gradient(x):
            return problem.gradient(x) + state.dual + penalty * (x - centre)

        return Objective(solve, gradient)

    def receive(self, network, x: np.ndarray) -> np.ndarray:
        """Return the sum over neighbours of the values that an agent receives."""
        return network.neighbour_sum(x)

    def update_duals(
        self, state, problem, network, x, minimiser, t: int, **extra: np.ndarray
    ) -> ADMMState:
        """Return the state after agents receive the messages x and update their duals.

        ``minimiser`` has the minimisers before the noise, and ``extra`` further new arrays.
        """
        received = self.receive(network, x)
        # Duals are functions of messages only, and therefore as public as these.
        dual = state.dual + self.dual_step * (network.degrees[..., None] * x - received)
        total = state.total_loss
        if self.noisy and "worst_case" in self.quantities:
            total = total + self.loss_by_formula(problem, network, t)[..., 0]
        return ADMMState(x, dual, minimiser, received, total, {**state.extra, **extra})

    def start(self, problem, network, release):
        x = normal_start(problem, release, self.init_std)
        zero = np.zeros_like(x)
        return ADMMState(x, zero, x, self.receive(network, x), zero[..., 0], {})

    def step(self, state, problem, network, release, t):
        penalty, centre = self.penalty(network, t), self.centre(state, network)
        minimiser = self.objective(state, problem, penalty, centre).solve(0.0)
        x = release("message", minimiser)
        return self.update_duals(state, problem, network, x, minimiser, t)

    def observables(self, state, problem, t):
        quantities = {"internal": state.minimiser, "released": state.x}
        if self.noisy and "worst_case" in self.quantities:
            quantities["worst_case"] = state.total_loss.mean(-1)
        return quantities

    # Calibration and formulas.

    def calibrate(self, budget, problem, network, horizon):
        """Return a copy with the noise for a budget, and warn if the method may diverge."""
        self.check(problem, network)
        if self.noise_is_given:
            return self
        if not budget.private:
            return replace(self, **dict.fromkeys(self.calibrated, 0.0))
        return self.with_noise_for(budget, problem, network, horizon)

    def with_noise_for(self, budget, problem, network, horizon: int) -> Self:
        """Return a copy whose noise meets a finite budget, by the accountant or by the formula."""
        if self.calibration == "formula" and self.rho_conversion is not None:
            return replace(self, noise=self._by_rho(budget, problem, network, horizon))
        return replace(self, noise=least_noise(self, budget, problem, network, horizon))

    def rho_by_formula(self, problem, network, horizon: int) -> float:
        """Return the total loss in zCDP of the agent with the largest loss, by the paper's formula.

        It is infinite if the paper has no formula.
        """
        return float("inf")

    def claimed_epsilon(self, delta, problem, network, horizon):
        """Return the sum of the losses of all iterations, or the epsilon of the total in zCDP."""
        if self.rho_conversion is None or not self.noisy:
            return super().claimed_epsilon(delta, problem, network, horizon)
        rho = self.rho_by_formula(problem, network, horizon)
        return zcdp_epsilon(rho, delta, conversion=self.rho_conversion)

    def _by_rho(self, budget, problem, network, horizon: int) -> float:
        rho = self.rho_of(budget)

        def excess(log_noise):
            noisy = replace(self, noise=float(np.exp(log_noise)))
            return np.log(noisy.rho_by_formula(problem, network, horizon) / rho)

        # The logarithm of the total is almost linear in that of the noise.
        lowest, highest = np.log(NOISES)
        has_root = excess(highest) < 0 < excess(lowest)
        expected = f"a budget that a noise scale from {NOISES[0]:g} to {NOISES[1]:g} meets"
        require(has_root, "budget.epsilon", budget.epsilon, expected)
        return float(np.exp(brentq(excess, lowest, highest, xtol=1e-13)))

    def rho_of(self, budget) -> float:
        """Return the budget in zero-concentrated differential privacy (zCDP)."""
        require(budget.delta > 0, "budget.delta", budget.delta, "above 0 for a budget in zCDP")
        assert self.rho_conversion is not None
        return zcdp_rho(budget.epsilon, budget.delta, conversion=self.rho_conversion)

    # Convergence.

    def convergent(self, problem, network) -> tuple[bool, str]:
        r"""Return True if a condition for convergence holds, and the condition as text.

        For equal quadratic objectives of curvature h on a regular graph, the iteration with
        :math:`w_i = 1/2` is stable if and only if :math:`\zeta|N_i| < D_i + h`. The critical mode
        has the Laplacian eigenvalue :math:`2|N_i|`.
        """
        dual_gain = np.abs(self.dual_step) * network.degrees[..., None]
        is_stable = np.all(dual_gain < self.penalty(network, 1) + problem.strong_convexity)
        return bool(is_stable), "zeta * degree < D + mu for every agent"

    def check(self, problem, network) -> None:
        """Warn if penalty and dual step violate the condition for convergence."""
        # The means over neighbours need at least one.
        network.require_neighbours()
        is_stable, condition = self.convergent(problem, network)
        if not is_stable:
            text = f"{type(self).__name__} may diverge: the condition {condition} does not hold"
            warnings.warn(text, OutsideRange, stacklevel=4)
