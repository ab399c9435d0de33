r"""Common base of decentralized ADMM and its private versions.

The dual variable is :math:`a_i = 2\lambda_i` (Ding, DVP, M-ADMM) or :math:`a_i = -\lambda_i`
(Xiao et al.). An iteration is

.. math::
    c_i &= w_i x_i + (1-w_i)\,\bar x_i \qquad \bar x_i = \tfrac1{|N_i|}\sum_{j\in N_i} x_j \\
    \hat x_i &= \arg\min_x f_i(x) + a_i^T x + \tfrac{D_i}2\|x - c_i\|_2^2 \\
    a_i &\leftarrow a_i + \zeta \sum_{j\in N_i} (x_i - x_j) \qquad\text{with the new } x

where :math:`x_i` is the message of agent i. The textbook algorithm
:math:`\min f_i + 2\lambda_i^Tx + \eta\sum_j\|x - \frac{x_i+x_j}2\|^2` has :math:`w_i = 1/2`,
:math:`D_i = 2\eta|N_i|` and :math:`\zeta = \eta`. A private version overrides

* the quantity to which noise is added (:attr:`ADMMFamily.where`): ``dual`` for :math:`a_i` in the
  minimisation, ``centre`` for :math:`c_i`, or ``output`` for :math:`\hat x_i`;
* the distribution of the noise;
* the centre, the penalty, the minimisation, the message, or the values received from neighbours.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.optimize import brentq

from private_consensus.common.errors import OutsideRange, require
from private_consensus.privacy import CONVERSIONS, Release, zcdp_epsilon, zcdp_rho

from ..base import CURVATURE, DEGREES, Iterative, Range, column, normal_start, overrides
from ..noise import CALIBRATIONS, SCALED, Noise, largest_sum, least_noise
from ..parameters import noise_field, nonnegative, one_of, positive

NOISES = (1e-15, 1e20)
"""Limits of the search for the noise scale that meets a zCDP budget."""


class ADMMState(NamedTuple):
    """State of decentralized ADMM after an iteration.

    Messages x, dual variables a, minimisers (starting points of the next minimisation) and sums of
    the values received from neighbours are [settings, runs, agents, dim]. The accumulated privacy
    loss ``total_loss`` is [settings, runs, agents].
    """

    x: np.ndarray
    dual: np.ndarray
    minimiser: np.ndarray
    received_sum: np.ndarray
    total_loss: np.ndarray


class ADMMDraw(NamedTuple):
    """Unit draws of an iteration, [runs, agents, dim]."""

    noise: Any


class Noises(NamedTuple):
    """Noise of an iteration on dual, centre and output."""

    dual: Any = 0.0
    centre: Any = 0.0
    output: Any = 0.0


@dataclass(frozen=True, kw_only=True)
class ADMMFamily(Iterative):
    r"""Decentralized ADMM, with or without noise.

    Parameters
    ----------
    law : {"laplace", "gaussian", "gamma_norm"}
        Distribution of the noise: independent Laplace or normal coordinates, or a density
        proportional to :math:`\exp(-\|b\|_2/s)` at the scale s.
    noise, growth : float
        Scale of the noise: ``noise / growth**t`` in iteration t = 1, 2, ... The inverse scale
        :math:`\beta_k = 1.02^k` of Xiao et al. is ``noise=1, growth=1.02``.
    calibration : {"accountant", "formula", "given"}
        Rule by which a budget sets the noise: the smallest noise that the accountant accepts, the
        noise at which the paper's formula equals the epsilon of the budget, or unchanged noise.
    eta : float
        Penalty parameter :math:`\eta` of an edge; the penalty of agent i is
        :math:`D_i = 2\eta|N_i|`.
    D : float, optional
        Penalty of every agent, which replaces :math:`2\eta|N_i|`.
    zeta : float, optional
        Step size :math:`\zeta` of the dual variable; the default is :math:`\eta`.
    penalty_growth : float
        Factor by which penalties are multiplied in every iteration.
    init_std : float
        Standard deviation of the coordinates of :math:`x_i^0`; 0 to start at the origin.
    rho_conversion : {"shortcut", "safe", "cks"}, optional
        Conversion from zero-concentrated differential privacy (zCDP) to (epsilon, delta). If it is
        set, the epsilon by formula is that of :meth:`rho_by_formula`, as in the dissertation of
        Ding.
    """

    law: str = one_of("laplace", SCALED)
    noise: Noise = noise_field(None, law=None, scheduled=True)
    growth: float = positive(1.0)
    calibration: str = one_of("accountant", CALIBRATIONS, calibration=True)
    eta: float = positive(0.5)
    D: float | None = positive(None)
    zeta: float | None = positive(None)
    penalty_growth: float = positive(1.0)
    init_std: float = nonnegative(0.0)
    rho_conversion: str | None = one_of(None, CONVERSIONS, calibration=True)

    quantities: ClassVar = ("internal", "released", "worst_case")
    privacy_depends_on: ClassVar[str] = DEGREES
    needs: ClassVar[tuple[str, ...]] = ("proximal", "least_convexity")
    where: ClassVar[str] = ""
    ranges: ClassVar = {"eta": Range(0.03, 3.0, 0.3, CURVATURE), "horizon": Range(2, 15, 8)}

    # Methods that a version may override.

    def penalty(self, network, t: int) -> np.ndarray:
        """Return the penalties :math:`D_i` of iteration t.

        They are broadcastable to [settings, runs, agents, 1].
        """
        if self.D is not None:
            base = column(self.D) * np.ones((1, 1, 1, 1))
        else:
            base = 2.0 * column(self.eta) * network.degrees[..., None]
        return base * column(self.penalty_growth) ** t

    @property
    def dual_step(self) -> Any:
        r"""Step size :math:`\zeta` of the dual; negative for a dual of opposite sign."""
        return column(self.eta if self.zeta is None else self.zeta)

    def centre(self, state, network, draw: ADMMDraw) -> np.ndarray:
        """Compute the centre :math:`c_i` of the penalty, [settings, runs, agents, dim].

        It is the mean of the agent's message and its neighbours' mean message.
        """
        return (state.x + state.received_sum / network.degrees[..., None]) / 2

    def scale(self, t: int) -> Any:
        """Return the noise scale of iteration t, broadcastable against iterates."""
        return self.noise.at(t)

    def scales(self, horizon: int) -> np.ndarray:
        """Return the noise scales of a single setting, [horizon]."""
        return self.noise.scales(horizon)

    @property
    def noisy(self) -> bool:
        """Return True if every setting of the batch has noise."""
        return bool(self.noise)

    def noises(self, unit: np.ndarray, network, t: int) -> Noises:
        """Return the noise of an iteration on dual, centre and output, according to :attr:`where`.

        ``unit`` are unit draws, [runs, agents, dim]. Quantities without noise are 0.
        """
        if not self.where:
            return Noises()
        return Noises(**{self.where: self.scale(t) * unit})

    def added_curvature(self, problem) -> Any:
        r"""Return the curvature :math:`\Phi_i` added to each local objective, or None."""
        return None

    @property
    def tolerance(self) -> Any:
        """Gradient norm at which a minimisation ends; None for the default of the solver."""
        return None

    def minimise(self, problem, state, linear, penalty, centre, t: int) -> np.ndarray:
        r"""Compute the minimiser :math:`\hat x_i` of the augmented objective.

        Added curvature :math:`\Phi_i` increases the penalty to :math:`D_i + \Phi_i` and moves its
        centre to :math:`D_i c_i/(D_i + \Phi_i)`.

        Parameters
        ----------
        problem, state
        linear : ndarray, shape (settings, runs, agents, dim)
            Coefficients of the linear term, :math:`a_i` and its noise.
        penalty : ndarray
            :math:`D_i`, broadcastable to [settings, runs, agents, 1].
        centre : ndarray, shape (settings, runs, agents, dim)
            :math:`c_i`.
        t

        Returns
        -------
        ndarray, shape (settings, runs, agents, dim)
        """
        added = self.added_curvature(problem)
        if added is not None:
            total = penalty + added
            penalty, centre = total, penalty * centre / total
        options = {} if self.tolerance is None else {"tolerance": self.tolerance}
        return problem.proximal(linear, penalty, centre, state.minimiser, **options)

    def message(self, problem, state, minimiser, noise, draw) -> tuple[np.ndarray, dict[str, Any]]:
        r"""Compute the messages :math:`x_i`, and the fields of the state that they change.

        Parameters
        ----------
        problem, state
        minimiser : ndarray, shape (settings, runs, agents, dim)
            :math:`\hat x_i`.
        noise : ndarray or float
            Noise on the output, broadcastable to ``minimiser``.
        draw
        """
        return minimiser + noise, {}

    def receive(self, state, network):
        """Return the state with the sum over neighbours of the values that an agent uses.

        ``state`` has the new messages; the result has a new ``received_sum``.
        """
        return state._replace(received_sum=network.neighbour_sum(state.x))

    def disagreement(self, network, x: np.ndarray, received: np.ndarray) -> np.ndarray:
        r"""Return the direction of the dual step, :math:`\sum_{j\in N_i}(x_i - x_j)`.

        Parameters
        ----------
        network
        x, received : ndarray, shape (settings, runs, agents, dim)
            Messages of the iteration, and sums of the received values.
        """
        return network.degrees[..., None] * x - received

    # The loop.

    def start(self, problem, network, streams, settings):
        x = normal_start(problem, streams, settings, self.init_std)
        zero = np.zeros_like(x)
        return self.receive(ADMMState(x, zero, x, zero, zero[..., 0]), network)

    def draws(self, problem, streams) -> Iterator[ADMMDraw]:
        for noise in self.noise.units(problem, streams):
            yield ADMMDraw(noise)

    def step(self, state, problem, network, draw, t):
        penalty = self.penalty(network, t)
        noises = self.noises(draw.noise, network, t)
        centre = self.centre(state, network, draw) + noises.centre
        linear = state.dual + noises.dual
        minimiser = self.minimise(problem, state, linear, penalty, centre, t)
        x, changed = self.message(problem, state, minimiser, noises.output, draw)
        after = self.receive(state._replace(x=x, minimiser=minimiser, **changed), network)
        disagreement = self.disagreement(network, x, after.received_sum)
        return after._replace(
            dual=state.dual + self.dual_step * disagreement,
            total_loss=self.accumulated_loss(state, problem, network, t),
        )

    def observables(self, state, problem, t) -> Mapping[str, np.ndarray]:
        quantities = {"internal": state.minimiser, "released": state.x}
        if self.noisy and overrides(self, ADMMFamily, "loss_by_formula"):
            quantities["worst_case"] = state.total_loss.mean(-1)
        return quantities

    # Privacy.

    def calibrate(self, budget, problem, network, horizon):
        """Return a copy with the noise for a budget; fixed noise remains unchanged."""
        self.check(problem, network)
        if self.noise_is_given:
            return self
        if not budget.private:
            return self.without_noise()
        expected = "inf, since this algorithm is not private"
        require(bool(self.where), "budget.epsilon", budget.epsilon, expected)
        return self.with_noise_for(budget, problem, network, horizon)

    def without_noise(self) -> Self:
        """Return a copy without noise."""
        return replace(self, noise=0.0)

    def with_noise_for(self, budget, problem, network, horizon: int) -> Self:
        """Return a copy whose noise meets a finite budget, by the accountant or by the formula."""
        if self.calibration == "formula" and self.rho_conversion is not None:
            return replace(self, noise=self._by_rho(budget, problem, network, horizon))
        return replace(self, noise=least_noise(self, budget, problem, network, horizon))

    def releases(self, problem, network, horizon):
        return [Release("exact", sensitivity=problem.record_change("l2"), scale=0.0)]

    def releases_of_minimisers(
        self, problem, network, horizon: int, **attack_fields: Any
    ) -> list[Release]:
        r"""Return the releases of messages that are exact minimisers plus noise.

        A replaced record changes a minimiser by at most :math:`\Delta/(\mu + D_i)`. At points far
        from the origin, the change is that of the gradient divided by the curvature.
        ``attack_fields`` replace the fields ``attained`` and ``reached`` of the release.
        """
        penalties, norm = self.least_penalties(network, horizon), self.noise.norm
        first = problem.attained_minimiser_share("l2", penalties[:1])
        default_fields = {
            "attained": problem.attained_minimiser_share(norm, penalties),
            "reached": self.noise.reached(problem, horizon, first),
        }
        sensitivity = problem.minimiser_change(norm, penalties)
        return self.noise.releases(
            sensitivity, self.scales(horizon), **(default_fields | attack_fields)
        )

    def loss_by_formula(self, problem, network, t: int) -> Any:
        """Return the privacy loss of iteration t by the paper's formula; infinite if it has none.

        The result is broadcastable against [settings, runs, agents, 1].
        """
        return np.full((1, 1, 1, 1), np.inf)

    def accumulated_loss(self, state, problem, network, t: int) -> np.ndarray:
        """Return the loss, [settings, runs, agents], after iteration t; unchanged without noise."""
        if not self.noisy:
            return state.total_loss
        return state.total_loss + self.loss_by_formula(problem, network, t)[..., 0]

    def rho_by_formula(self, problem, network, horizon: int) -> float:
        """Return the total privacy loss in zCDP of the agent with the largest loss, by formula.

        It is infinite if the paper has no formula.
        """
        return float("inf")

    def epsilon_by_formula(self, delta, problem, network, horizon):
        """Return the epsilon of the run by the formula of the paper, or by that of Ding.

        It is the sum of the losses of all iterations or, if ``rho_conversion`` is set, the epsilon
        of the total in zCDP.
        """
        if not self.noisy:
            return float("inf")
        if self.rho_conversion is None:
            times = range(1, horizon + 1)
            return largest_sum(self.loss_by_formula(problem, network, t) for t in times)
        rho = self.rho_by_formula(problem, network, horizon)
        return zcdp_epsilon(rho, delta, conversion=self.rho_conversion)

    def _by_rho(self, budget, problem, network, horizon: int) -> float:
        rho = self.rho_of(budget)

        def excess(log_noise):
            noisy = replace(self, noise=float(np.exp(log_noise)))
            return np.log(noisy.rho_by_formula(problem, network, horizon) / rho)

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

    def least_penalties(self, network, horizon: int) -> np.ndarray:
        """Return the smallest :math:`D_i` of each iteration, [horizon], for a single setting."""
        return self.penalties(network, horizon).reshape(horizon, -1).min(1)

    def penalties(self, network, horizon: int) -> np.ndarray:
        """Return the penalties :math:`D_i` of all iterations, one array of :meth:`penalty` each."""
        return np.stack([self.penalty(network, t) for t in range(1, horizon + 1)])

    def convergent(self, problem, network) -> tuple[bool, str]:
        r"""Test a condition for convergence, and return the result with the condition as text.

        For equal quadratic objectives of curvature h on a regular graph, the iteration with
        :math:`w_i = 1/2` is stable if and only if :math:`\zeta|N_i| < D_i + h`. The critical mode
        has the Laplacian eigenvalue :math:`2|N_i|`.
        """
        dual_gain = np.abs(self.dual_step) * network.degrees[..., None]
        is_stable = np.all(dual_gain < self.penalty(network, 1) + problem.strong_convexity)
        return bool(is_stable), "zeta * degree < D + mu for every agent"

    def noise_sites(self, problem, network, horizon):
        (release,) = self.releases(problem, network, horizon)[:1]
        return [self.noise.site_of(release, self.scales(horizon))]

    def check(self, problem, network) -> None:
        """Warn if the penalty and the dual step violate the convergence condition."""
        is_stable, condition = self.convergent(problem, network)
        if not is_stable:
            warnings.warn(
                f"{type(self).__name__} may diverge: the condition {condition} does not hold",
                OutsideRange,
                stacklevel=4,
            )


def of_agents(penalty: np.ndarray) -> np.ndarray:
    """Return the penalties of a single setting in the shape [agents, 1]."""
    return penalty.reshape(penalty.shape[-2:])
