r"""The skeleton of decentralized ADMM, on which its private versions are built.

With the dual in the form :math:`a_i = 2\lambda_i` (papers 004, DVP, M-ADMM) or
:math:`a_i = -\lambda_i` (paper 001), every version repeats

.. math::
    c_i &= w_i x_i + (1-w_i)\,\bar x_i \qquad \bar x_i = \tfrac1{|N_i|}\sum_{j\in N_i} x_j \\
    \hat x_i &= \arg\min_x f_i(x) + a_i^T x + \tfrac{D_i}2\|x - c_i\|_2^2 \\
    a_i &\leftarrow a_i + \zeta \sum_{j\in N_i} (x_i - x_j) \qquad\text{with the new } x

where :math:`x_i` is what agent i sends. :math:`w_i = 1/2`, :math:`D_i = 2\eta|N_i|` and
:math:`\zeta = \eta` make it the textbook algorithm
:math:`\min f_i + 2\lambda_i^Tx + \eta\sum_j\|x - \frac{x_i+x_j}2\|^2`. A version states what it
changes: where its noise enters (:attr:`ADMMFamily.where`: ``dual`` adds to :math:`a_i` in the
minimisation, ``centre`` to :math:`c_i`, ``output`` to :math:`\hat x_i`), its law, the centre, the
penalty, the minimisation, the message or what is received from neighbours.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.optimize import brentq

from ...errors import OutsideRange, require
from ...privacy import CONVERSIONS, Release, zcdp_epsilon, zcdp_rho
from ..base import CURVATURE, Iterative, Range, column, normal_start
from ..noise import SCALED, Noise
from ..parameters import noise_field, noiseless, nonnegative, one_of, positive
from .spending import CALIBRATIONS, GIVEN, largest_sum, least_noise, spent_after

NOISES = (1e-15, 1e20)
"""Scales of noise between which a budget in zCDP is looked for."""


class State(NamedTuple):
    """Messages x, duals a, minimisers (where the next solve starts), sums of what was received from
    neighbours, each [settings, runs, agents, dim]; loss so far [settings, runs, agents]."""

    x: np.ndarray
    dual: np.ndarray
    minimiser: np.ndarray
    received_sum: np.ndarray
    spent: np.ndarray


class Draw(NamedTuple):
    """Unit draws of an iteration, [runs, agents, dim]."""

    noise: Any


class Noises(NamedTuple):
    """Noise of an iteration on dual, centre and output."""

    dual: Any = 0.0
    centre: Any = 0.0
    output: Any = 0.0


@dataclass(frozen=True, kw_only=True)
class ADMMFamily(Iterative):
    r"""Decentralized ADMM; a version says what it does differently.

    Parameters
    ----------
    law : {"laplace", "gaussian", "gamma_norm"}
        Independent Laplace or normal coordinates, or density proportional to exp(-zeta ||b||_2).
    noise, growth : float
        Scale ``noise / growth**t`` in iteration t = 1, 2, ...: paper 001's
        :math:`\beta_k = 1.02^k`, an INVERSE scale, is ``noise=1, growth=1.02``.
    calibration : {"accountant", "formula", "given"}
        What a budget does: the least noise that the accountant lets pass; the noise for which the
        paper's own formula gives the budget's epsilon; or nothing, the noise is as it is stated,
        as in experiments that fix it.
    eta : float
        Penalty of a link: :math:`D_i = 2\eta|N_i|`.
    D : float, optional
        The same penalty for all agents instead.
    zeta : float, optional
        Step of the dual; :math:`\eta` where none is given.
    penalty_growth : float
        Penalties are multiplied by it in every iteration.
    init_std : float
        Standard deviation of the coordinates of :math:`x_i^0`; 0 starts at the origin.
    rho_conversion : {"shortcut", "safe", "cks"}, optional
        Where given, the formula is paper 004's: the run's total in zero-concentrated differential
        privacy (:meth:`rho_by_formula`), converted so, for every version alike.
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

    needs: ClassVar[tuple[str, ...]] = ("proximal",)
    where: ClassVar[str] = ""
    ranges: ClassVar = {"eta": Range(0.03, 3.0, 0.3, CURVATURE), "horizon": Range(2, 15, 8)}

    # What a version may state.

    def penalty(self, network, t: int) -> np.ndarray:
        """:math:`D_i` in iteration t, broadcastable to [settings, runs, agents, 1]."""
        if self.D is not None:
            base = column(self.D) * np.ones((1, 1, 1, 1))
        else:
            base = 2.0 * column(self.eta) * network.degrees[..., None]
        return base * column(self.penalty_growth) ** t

    @property
    def dual_step(self) -> Any:
        r""":math:`\zeta`, as it broadcasts; negative where the sign is reversed."""
        return column(self.eta if self.zeta is None else self.zeta)

    def centre(self, state, network, draw: Draw) -> np.ndarray:
        """Compute the centre :math:`c_i` of the penalty."""
        return (state.x + state.received_sum / network.degrees[..., None]) / 2

    def scale(self, t: int) -> Any:
        """Scale of the noise of iteration t, as it broadcasts against iterates."""
        return self.noise.at(t)

    def scales(self, horizon: int) -> np.ndarray:
        """Scales of a single setting; [horizon]."""
        return self.noise.scales(horizon)

    @property
    def noisy(self) -> bool:
        """Return True if every setting of the batch has noise."""
        return bool(self.noise)

    def noises(self, unit: np.ndarray, network, t: int) -> Noises:
        """Noise where this version has it."""
        if not self.where:
            return Noises()
        return Noises(**{self.where: self.scale(t) * unit})

    def added_curvature(self, problem) -> Any:
        r""":math:`\Phi_i` of :math:`\frac{\Phi_i}2\|x\|_2^2` in the objective; None for none."""
        return None

    @property
    def tolerance(self) -> Any:
        """Gradient norm at which a minimisation ends; the solver's own where None."""
        return None

    def minimise(self, problem, state, linear, penalty, centre, t: int) -> np.ndarray:
        r""":math:`\hat x_i`; added curvature joins the penalty, whose centre comes nearer to 0."""
        added = self.added_curvature(problem)
        if added is not None:
            total = penalty + added
            penalty, centre = total, penalty * centre / total
        ends = {} if self.tolerance is None else {"tolerance": self.tolerance}
        return problem.proximal(linear, penalty, centre, state.minimiser, **ends)

    def message(self, problem, state, minimiser, noise, draw) -> tuple[np.ndarray, dict[str, Any]]:
        """Compute the message, and the resulting changes of the state."""
        return minimiser + noise, {}

    def receive(self, state, network):
        """The state with the sum of what agents take their neighbours' new values to be."""
        return state._replace(received_sum=network.neighbour_sum(state.x))

    def disagreement(self, network, x: np.ndarray, received: np.ndarray) -> np.ndarray:
        r""":math:`\sum_{j\in N_i}(x_i - x_j)`, by which the dual moves."""
        return network.degrees[..., None] * x - received

    # The loop.

    def start(self, problem, network, streams, settings):
        x = normal_start(problem, streams, settings, self.init_std)
        zero = np.zeros_like(x)
        return self.receive(State(x, zero, x, zero, zero[..., 0]), network)

    def draws(self, problem, streams) -> Iterator[Draw]:
        for noise in self.noise.units(problem, streams):
            yield Draw(noise)

    def step(self, state, problem, network, draw, t):
        penalty = self.penalty(network, t)
        noises = self.noises(draw.noise, network, t)
        centre = self.centre(state, network, draw) + noises.centre
        linear = state.dual + noises.dual
        minimiser = self.minimise(problem, state, linear, penalty, centre, t)
        x, changed = self.message(problem, state, minimiser, noises.output, draw)
        after = self.receive(state._replace(x=x, minimiser=minimiser, **changed), network)
        apart = self.disagreement(network, x, after.received_sum)
        return after._replace(
            dual=state.dual + self.dual_step * apart, spent=self.spend(state, problem, network, t)
        )

    def observables(self, state, problem, t) -> Mapping[str, np.ndarray]:
        shown = {"internal": state.minimiser, "released": state.x}
        return shown | {"worst_case": state.spent.mean(-1)} if self.noisy else shown

    # Privacy.

    @property
    def noise_is_given(self) -> bool:
        return self.calibration == GIVEN

    def calibrate(self, budget, problem, network, horizon):
        require(horizon >= 1, "horizon", horizon, "a whole number >= 1")
        self.check(problem, network)
        if self.noise_is_given:
            return self
        if not budget.private:
            return self.silent()
        expected = "inf: this algorithm is not private"
        require(bool(self.where), "budget.epsilon", budget.epsilon, expected)
        return self.spending(budget, problem, network, horizon)

    def silent(self) -> Self:
        """A copy without noise."""
        return replace(self, noise=0.0)

    def spending(self, budget, problem, network, horizon: int) -> Self:
        """A copy whose noise spends a budget, by the accountant or by the formula."""
        if self.calibration == "formula" and self.rho_conversion is not None:
            return replace(self, noise=self._by_rho(budget, problem, network, horizon))
        return replace(self, noise=least_noise(self, budget, problem, network, horizon))

    def graph_statistics(self, network):
        """Degrees, of which the smallest and the largest decide."""
        return int(network.degrees.min()), int(network.degrees.max())

    def noise_in_minimisation(self, minimiser, state, problem, network, t: int) -> np.ndarray:
        r""":math:`-\nabla f_i(\hat x_i) - a_i - D_i(\hat x_i - c_i) - \Phi_i\hat x_i`: the linear
        term that leads to a minimiser [runs, agents, dim], of a batch of one setting."""
        centre = self.centre(state, network, Draw(np.zeros_like(minimiser)))[0]
        penalty = of_agents(self.penalty(network, t))
        slope = problem.gradient(minimiser) + state.dual[0] + penalty * (minimiser - centre)
        added = self.added_curvature(problem)
        return -(slope if added is None else slope + np.max(added) * minimiser)

    def releases(self, problem, network, horizon):
        return [Release("exact", sensitivity=problem.record_change("l2"), scale=0.0)]

    def releases_of_minimisers(self, problem, network, horizon: int, **known: Any) -> list[Release]:
        r"""Exact minimisers with noise on them: a record moves one by :math:`\Delta/(\mu + D_i)`.

        At points far out the minimiser moves by the change of the gradient over the curvature.
        ``known`` replaces what is known to be attained of that.
        """
        penalties, norm = self.least_penalties(network, horizon), self.noise.norm
        first = problem.attained_minimiser_share("l2", penalties[:1])
        own = {
            "attained": problem.attained_minimiser_share(norm, penalties),
            "reached": self.noise.reached(problem, horizon, first),
        }
        moved = problem.minimiser_change(norm, penalties)
        return self.noise.releases(moved, self.scales(horizon), **(own | known))

    def loss_by_formula(self, problem, network, t: int) -> Any:
        """Privacy loss that the paper charges for iteration t, a coordinate; broadcasts against
        [settings, runs, agents, 1]."""
        return np.full((1, 1, 1, 1), np.inf)

    def spend(self, state, problem, network, t: int) -> np.ndarray:
        """``state.spent`` after iteration t; without noise there is nothing to add up."""
        if not self.noisy:
            return state.spent
        return spent_after(state.spent, self.loss_by_formula(problem, network, t))

    def rho_by_formula(self, problem, network, horizon: int) -> float:
        """Total in zero-concentrated differential privacy, of the agent that loses most."""
        return float("inf")

    def epsilon_by_formula(self, delta, problem, network, horizon):
        """Sum of the losses a coordinate, or by ``rho_conversion``."""
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

        least, most = np.log(NOISES)
        expected = "a budget that some noise meets"
        require(excess(most) < 0 < excess(least), "budget.epsilon", budget.epsilon, expected)
        return float(np.exp(brentq(excess, least, most, xtol=1e-13)))

    def rho_of(self, budget) -> float:
        """The budget in zero-concentrated differential privacy, by ``rho_conversion``."""
        require(budget.delta > 0, "budget.delta", budget.delta, "above 0 for a budget in zCDP")
        return zcdp_rho(budget.epsilon, budget.delta, conversion=self.rho_conversion)

    def least_penalties(self, network, horizon: int) -> np.ndarray:
        """Smallest penalty of any agent in each iteration, of a single setting; [horizon]."""
        return self.penalties(network, horizon).reshape(horizon, -1).min(1)

    def penalties(self, network, horizon: int) -> np.ndarray:
        """:meth:`penalty` in iterations 1, 2, ...; [horizon, ...]. Calibration, which tries many
        noises, has them computed once a network."""
        known = vars(network).setdefault("_penalties", {})
        key = type(self), horizon, *(getattr(self, name) for name in noiseless(type(self)))
        if key not in known:
            found = np.stack([self.penalty(network, t) for t in range(1, horizon + 1)])
            found.flags.writeable = False
            known[key] = found
        return known[key]

    def convergent(self, problem, network) -> tuple[bool, str]:
        r"""Return whether the mean iteration contracts, and the condition.

        For identical quadratic objectives of curvature h on a regular graph, every mode of the
        iteration with :math:`w_i = 1/2` is stable if and only if
        :math:`\zeta|N_i| < D_i + h`, at the mode with Laplacian eigenvalue :math:`2|N_i|`.
        """
        links = np.abs(self.dual_step) * network.degrees[..., None]
        fine = np.all(links < self.penalty(network, 1) + problem.strong_convexity)
        return bool(fine), "zeta * degree < D + mu for every agent"

    def noise_sites(self, problem, network, horizon):
        """Noise of the law and scale of each iteration, where a version adds it."""
        (release,) = self.releases(problem, network, horizon)[:1]
        return [self.noise.site_of(release, self.scales(horizon))]

    def check(self, problem, network) -> None:
        """Warn where a known condition does not cover the setting."""
        fine, condition = self.convergent(problem, network)
        if not fine:
            warnings.warn(
                f"{type(self).__name__}: outside the convergent range, {condition} does not hold",
                OutsideRange,
                stacklevel=4,
            )


def of_agents(penalty: np.ndarray) -> np.ndarray:
    """Penalties of one setting, [agents, 1]."""
    return penalty.reshape(penalty.shape[-2:])
