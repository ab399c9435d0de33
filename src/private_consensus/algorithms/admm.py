r"""Decentralized ADMM, and the skeleton on which its private versions are built.

With the dual in the form :math:`a_i = 2\lambda_i` (papers 004, DVP, M-ADMM) or
:math:`a_i = -\lambda_i` (paper 001), every version repeats

.. math::
    c_i &= w_i x_i + (1-w_i)\,\bar x_i \qquad \bar x_i = \tfrac1{|N_i|}\sum_{j\in N_i} x_j \\
    \hat x_i &= \arg\min_x f_i(x) + a_i^T x + \tfrac{D_i}2\|x - c_i\|_2^2 \\
    a_i &\leftarrow a_i + \zeta \sum_{j\in N_i} (x_i - x_j) \qquad\text{with the new } x

where :math:`x_i` is what agent i sends. :math:`w_i = 1/2`, :math:`D_i = 2\eta|N_i|` and
:math:`\zeta = \eta` make it the textbook algorithm
:math:`\min f_i + 2\lambda_i^Tx + \eta\sum_j\|x - \frac{x_i+x_j}2\|^2`. A version states what it
changes: where its noise enters (:attr:`ADMM.where`: ``dual`` adds to :math:`a_i` in the
minimisation, ``centre`` to :math:`c_i`, ``output`` to :math:`\hat x_i`), its law, the centre, the
penalty, the minimisation, the message or what is heard of neighbours.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..errors import OutsideRange, require
from ..privacy import Relation, Release
from .base import FOR_CALIBRATION, column
from .noise import LAWS, Draw, Perturbed, initial, printed_change, shown_losses

JACOBIANS = ("paper", "tight")


class State(NamedTuple):
    """Messages x, duals a, minimisers (where the next solve starts) and the gradients there, sums
    of what was heard from neighbours, each [settings, runs, agents, dim]; loss so far [settings,
    runs, agents]."""

    x: np.ndarray
    dual: np.ndarray
    minimiser: np.ndarray
    slope: np.ndarray
    heard: np.ndarray
    spent: np.ndarray


class Noises(NamedTuple):
    """What an iteration adds to dual, centre and output."""

    dual: Any = 0.0
    centre: Any = 0.0
    output: Any = 0.0


@dataclass(frozen=True, kw_only=True)
class ADMM(Perturbed):
    r"""Decentralized ADMM without noise; the private versions inherit from it.

    Parameters
    ----------
    eta : float
        Penalty of a link: :math:`D_i = 2\eta|N_i|`.
    D : float, optional
        The same penalty for all agents instead.
    zeta : float, optional
        Step of the dual; :math:`\eta` where none is given.
    penalty_growth : float
        Penalties are multiplied by it in every iteration.
    spread : float
        Standard deviation of the coordinates of :math:`x_i^0`; 0 starts at the origin.
    """

    eta: float = 0.5
    D: float | None = None
    zeta: float | None = None
    penalty_growth: float = 1.0
    spread: float = 0.0

    relation: ClassVar[Relation] = Relation("record", "replace")
    source: ClassVar[str] = "Shi, Ling, Yuan, Wu, Yin, IEEE TSP 2014; paper 004, eqs. (12)-(13)"
    where: ClassVar[str] = ""

    def __post_init__(self):
        super().__post_init__()
        for key in ("eta", "D", "zeta", "penalty_growth"):
            value = getattr(self, key)
            fine = value is None or bool(np.all(np.asarray(value) > 0))
            require(fine, f"algorithm.{key}", value, "a number above 0")

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
        """:math:`c_i`."""
        return (state.x + state.heard / network.degrees[..., None]) / 2

    def noises(self, unit: np.ndarray, network, t: int) -> Noises:
        """Noise where this version has it."""
        if not self.where:
            return Noises()
        return Noises(**{self.where: self.scale(t) * unit})

    def minimise(self, problem, state, linear, penalty, centre, t: int) -> np.ndarray:
        r""":math:`\hat x_i`."""
        return problem.proximal(linear, penalty, centre, state.minimiser, state.slope)

    def listen(self, network, x: np.ndarray, state) -> np.ndarray:
        """Sum of what agents take their neighbours' values to be."""
        return network.neighbour_sum(x)

    # The loop.

    def start(self, problem, network, streams, settings):
        x = initial(problem, streams, settings, self.spread)
        zero = np.zeros_like(x)
        state = State(x, zero, x, problem.gradient(x), zero, zero[..., 0])
        return state._replace(heard=self.listen(network, x, state))

    def draws(self, problem, streams) -> Iterator[Draw]:
        for noise in self.units(problem, streams):
            yield Draw(noise)

    def step(self, state, problem, network, draw, t):
        penalty = self.penalty(network, t)
        noises = self.noises(draw.noise, network, t)
        centre = self.centre(state, network, draw) + noises.centre
        linear = state.dual + noises.dual
        minimiser = self.minimise(problem, state, linear, penalty, centre, t)
        slope = penalty * (centre - minimiser) - linear  # by the optimality condition
        x = minimiser + noises.output
        heard = self.listen(network, x, state)
        dual = state.dual + self.dual_step * (network.degrees[..., None] * x - heard)
        spent = self.spend(state, problem, network, t)
        return state._replace(
            x=x, dual=dual, minimiser=minimiser, slope=slope, heard=heard, spent=spent
        )

    def seen(self, state, problem, t) -> Mapping[str, np.ndarray]:
        seen = {"internal": state.minimiser, "released": state.x}
        return seen | shown_losses(None, state.spent) if self.noisy else seen

    # Privacy.

    def calibrate(self, budget, problem, network, horizon):
        if not self.where and budget.private and self.calibration != "given":
            require(False, "budget.epsilon", budget.epsilon, "inf: this algorithm is not private")
        return super().calibrate(budget, problem, network, horizon)

    def releases(self, problem, network, horizon):
        return [Release("exact", sensitivity=problem.record_change("l2"), scale=0.0)]

    def loss_by_formula(self, problem, network, t):
        return np.full((1, 1, 1, 1), np.inf)

    def least_penalties(self, network, horizon: int) -> np.ndarray:
        """Smallest penalty of any agent in each iteration, of a single setting; [horizon]."""
        return np.array([np.min(self.penalty(network, t)) for t in range(1, horizon + 1)])

    def convergent(self, problem, network) -> tuple[bool, str]:
        r"""Whether the mean iteration contracts, and the condition.

        For identical quadratic objectives of curvature h on a regular graph, every mode of the
        iteration with :math:`w_i = 1/2` is stable if and only if
        :math:`\zeta|N_i| < D_i + h`, at the mode with Laplacian eigenvalue :math:`2|N_i|`.
        """
        links = np.abs(self.dual_step) * network.degrees[..., None]
        fine = np.all(links < self.penalty(network, 1) + problem.strong_convexity)
        return bool(fine), "zeta * degree < D + mu for every agent"

    def check(self, problem, network):
        fine, condition = self.convergent(problem, network)
        if not fine:
            warnings.warn(
                f"{type(self).__name__}: outside the convergent range, {condition} does not hold",
                OutsideRange,
                stacklevel=4,
            )


ALGORITHM = ADMM


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbed(ADMM):
    r"""ADMM whose minimiser is let out exactly, with noise in the linear term of its objective.

    Replacing a record moves the noise that leads to a given minimiser by the change of the
    gradient, and changes the Jacobian; the loss of an iteration is

    .. math:: \frac{\Delta}{s} + J, \qquad J = 2.8\kappa \ \text{or}\ \ln(1+\kappa),
        \quad \kappa = \frac{w c_1}{\mu + D_i}

    with s the scale of the noise as it enters the gradient, w the weight of a record and
    :math:`c_1` the largest second derivative of its loss. :math:`2.8\kappa` needs
    :math:`\kappa \le 1/2` (Chaudhuri, Monteleoni, Sarwate 2011; Zhang, Khalili, Liu 2018);
    :math:`\ln(1+\kappa)` holds always, since the Hessian's change has one positive eigenvalue.

    Parameters
    ----------
    jacobian : {"paper", "tight"}
    """

    jacobian: str = field(default="paper", metadata=FOR_CALIBRATION)

    def __post_init__(self):
        super().__post_init__()
        self.require_known("jacobian", JACOBIANS)

    def linear_scale(self, penalty: Any, scale: Any) -> Any:
        """Scale of the noise in the gradient."""
        return penalty * scale

    def loss_by_formula(self, problem, network, t):
        r"""Paper 001's reading a coordinate: :math:`\mathcal B_\infty/s + 2.8 w/D_i`."""
        penalty = self.penalty(network, t)
        moved = printed_change(problem) / self.linear_scale(penalty, self.scale(t))
        return moved + 2.8 * printed_change(problem) / penalty

    def releases(self, problem, network, horizon):
        penalties = self.least_penalties(network, horizon)
        kappa = problem.record_curvature / (np.min(problem.strong_convexity) + penalties)
        if self.jacobian == "paper":
            largest = float(kappa.max())
            require(largest <= 0.5, "kappa", largest, "at most 1/2 for the Jacobian term 2.8 kappa")
        paid = 2.8 * kappa if self.jacobian == "paper" else np.log1p(kappa)
        moved = problem.record_change(LAWS[self.law].norm)
        scales = self.linear_scale(penalties, self.scales(horizon))
        return [*self.spread_of_noise(moved, scales), Release("pure", epsilon=paid)]


def minimiser_change(problem, penalty: Any, norm: str) -> Any:
    r"""How far a replaced record moves :math:`\hat x_i`: :math:`\Delta_2/(\mu + D_i)` in l2.

    By strong monotonicity of the gradient; in l1 times :math:`\sqrt d`.
    """
    moved = problem.record_change("l2") / (np.min(problem.strong_convexity) + penalty)
    return moved * (np.sqrt(problem.dim) if norm == "l1" else 1.0)
