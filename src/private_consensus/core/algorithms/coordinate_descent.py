r"""Private random coordinate descent (Xiao et al., Appendix K).

Each agent minimises its own objective and does not communicate. In iteration k + 1, it samples a
coordinate :math:`l_{k+1}` uniformly and updates

.. math:: x^{k+1}[l_{k+1}] = x^k[l_{k+1}] - \frac1{\hat M}\nabla f(x^k)[l_{k+1}] + \Delta^{k+1},
    \qquad \Delta \sim N(0, \sigma^2) \quad (72)

.. math:: E f(x^k) - f(x^*) \le \Bigl(1-\frac{m}{d\hat M}\Bigr)^k (f(x^0) - f(x^*))
    + \frac{\hat M}{m} C_1\sigma \quad (74)

where :math:`\hat M` is the smoothness along coordinates, here the bound on the largest curvature,
and :math:`C_1 \ge \|\nabla f\|_1` over the domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import log_ndtr

from private_consensus.common.errors import require
from private_consensus.privacy import Release

from .base import Iterative, Range, normal_start
from .noise import CALIBRATIONS, SCALED, Noise, calibrated
from .parameters import noise_field, nonnegative, one_of, positive


def _log_survival_of_laplace(x: np.ndarray) -> np.ndarray:
    """Return the logarithm of the survival function of Laplace noise of scale 1."""
    return np.where(x >= 0, -np.abs(x) - np.log(2.0), np.log1p(-0.5 * np.exp(-np.abs(x))))


LOG_SURVIVAL = {"gaussian": lambda x: log_ndtr(-x), "laplace": _log_survival_of_laplace}
"""Logarithm of the survival function P(X > x) of one coordinate of unit noise, by distribution."""


class CoordinateDescentState(NamedTuple):
    """Iterates [settings, runs, agents, dim]; initial gap and loss [settings, runs, agents].

    The gap is the objective at the starting point minus its minimum.
    """

    x: np.ndarray
    first_gap: np.ndarray
    total_loss: np.ndarray


class CoordinateDescentDraw(NamedTuple):
    """Unit noise and a mask of the sampled coordinates, each [runs, agents, dim]."""

    noise: np.ndarray
    coordinate_mask: np.ndarray


@dataclass(frozen=True, kw_only=True)
class CoordinateDescent(Iterative):
    r"""Private randomised coordinate descent.

    Parameters
    ----------
    law : {"gaussian", "laplace", "gamma_norm"}
        Distribution of the noise.
    noise, growth : float
        Scale :math:`\sigma` of the noise: ``noise / growth**t`` in iteration t.
    calibration : {"accountant", "formula", "given"}
        Rule by which a budget sets the noise: the smallest noise that the accountant accepts, the
        noise of the paper's formula, or unchanged noise.
    init_std : float
        Standard deviation of the coordinates of :math:`x^0` before the projection to the domain.
    excess : float
        Assumed relative excess a of the number of updates of the most frequent coordinate over the
        mean. The paper's noise is
        :math:`\sigma^2 = (1+a)(\mathcal B^c)^2K/(\epsilon^2\hat M^2d)`.
    """

    law: str = one_of("gaussian", SCALED)
    noise: Noise = noise_field(law=None, scheduled=True)
    growth: float = positive(1.0)
    calibration: str = one_of("accountant", CALIBRATIONS, calibration=True)
    init_std: float = nonnegative(1.0)
    excess: float = 1.0

    uses = ("strong_convexity", "smoothness")
    needs: ClassVar[tuple[str, ...]] = ("objective", "own_optimum", "slope_bound")
    source: ClassVar[str] = "Xiao et al., Appendix K, eqs. (72)-(74)"
    quantities: ClassVar = ("released", "gap", "bound")
    internal_outputs: ClassVar = ("internal", "gap", "bound")
    lower_bound_because: ClassVar[str] = "one sequence of messages has a known likelihood ratio"
    ranges: ClassVar = {"horizon": Range(3, 40, 20)}

    def start(self, problem, network, streams, settings):
        """Return normal starting points, projected to the domain, and their gaps."""
        x = problem.project(normal_start(problem, streams, settings, self.init_std))
        gap = problem.objective(x) - problem.objective(problem.own_optimum)
        return CoordinateDescentState(x, gap, np.zeros_like(gap))

    def draws(self, problem, streams):
        uniforms = streams.sequence("sampling", "uniform", (problem.n_agents,), "coordinate")
        for noise in self.noise.units(problem, streams):
            coordinates = (next(uniforms) * problem.dim).astype(int)
            yield CoordinateDescentDraw(noise, coordinates[..., None] == np.arange(problem.dim))

    def step(self, state, problem, network, draw, t):
        """Return the state after one coordinate step (72)."""
        change = -problem.gradient(state.x) / problem.smoothness + self.noise.at(t) * draw.noise
        return state._replace(x=problem.project(state.x + change * draw.coordinate_mask))

    def observables(self, state, problem, t) -> Mapping[str, np.ndarray]:
        """Return the iterates, and the means over agents of the gap and of its bound (74)."""
        gap = problem.objective(state.x) - problem.objective(problem.own_optimum)
        return {
            "released": state.x,
            "gap": gap.mean(-1),
            "bound": self.bound(problem, state.first_gap, t).mean(-1),
        }

    def bound(self, problem, first_gap: np.ndarray, t: int) -> np.ndarray:
        """Return the upper bound (74) on the gap between objective and minimum.

        It is [settings, runs, agents]. The geometric sum in the second line of (74) is replaced by
        its bound in the third line. ``first_gap`` is the gap at the starting points.
        """
        convexity = problem.strong_convexity
        require(convexity > 0, "problem.strong_convexity", convexity, "a number > 0")
        rate = convexity / (problem.dim * problem.smoothness)
        floor = problem.smoothness / convexity * problem.slope_bound
        return (1 - rate) ** t * first_gap + floor * np.reshape(self.noise.scale, (-1, 1, 1))

    # Privacy.

    def calibrate(self, budget, problem, network, horizon):
        return calibrated(self, budget, problem, network, horizon)

    def noise_sites(self, problem, network, horizon):
        (release,) = self.releases(problem, network, horizon)
        return [self.noise.site_of(release, self.noise.scales(horizon))]

    def epsilon_by_formula(self, delta, problem, network, horizon):
        r"""Return :math:`\epsilon = \mathcal B^c\sqrt{(1+a)K/d}/(\hat M\sigma)`.

        The paper treats delta as a constant. It claims nothing at delta 0, where the result
        is infinite.
        """
        if not self.noise or delta == 0:
            return float("inf")
        gradient_change = problem.record_change("linf") * np.sqrt(problem.dim)
        steps = np.sqrt((1 + self.excess) * horizon / problem.dim)
        return float(gradient_change * steps / (problem.smoothness * self.noise.scale))

    def releases(self, problem, network, horizon):
        """Return one release per iteration: the coordinate is sampled independently of the data."""
        moved = problem.record_change("linf") / problem.smoothness
        attained_loss = self.attack_fields(problem, horizon)
        return self.noise.releases(
            np.full(horizon, moved), self.noise.scales(horizon), **attained_loss
        )

    def attack_fields(self, problem, horizon: int) -> dict[str, Any]:
        r"""Return the loss that a pair of neighbouring data sets attains at delta 0, if known.

        One record is a unit row along the first axis, all others are 0, and the label of this
        record differs. The step of the first coordinate then differs by :math:`s = w/\hat M` at
        every point. With positive probability, the first coordinate is sampled in all iterations.

        Without a box, the loss of Gaussian noise is unbounded: no finite epsilon holds at delta 0.
        With a box, the largest loss is finite. It occurs if, from the second iteration on, the
        first coordinate stays on the upper face R and the others stay inside. With m the smaller of
        the two steps from R, and S the survival function of the noise, each iteration has the loss
        :math:`\ln S(R - m - s) - \ln S(R - m)`.
        """
        log_survival = LOG_SURVIVAL.get(self.law)
        fraction = problem.attained_gradient_share("linf")
        if not self.noise or log_survival is None or fraction is None:
            return {}
        box = problem.box
        if np.isinf(box):
            return {"reached": fraction}
        upper, lower = problem.upper_face_steps(1.0 / problem.smoothness)
        scales = self.noise.scales(horizon)
        losses = log_survival((box - upper) / scales) - log_survival((box - lower) / scales)
        losses = np.where(np.arange(horizon) == 0, 0.0, losses)
        return {"attack": Release("pure", epsilon=losses, reached=1.0)}


ALGORITHM = CoordinateDescent
