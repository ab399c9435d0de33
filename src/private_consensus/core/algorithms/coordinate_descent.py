"""Private random coordinate descent (Xiao et al., Appendix K)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from private_consensus.common.errors import require

from ..parameters import Law
from .base import DecayingNoise, Internal, normal_start

EXCESS = 1.0
"""Assumed relative excess a of the number of updates of the most frequent coordinate over the mean.
The paper's noise is :math:`\\sigma^2 = (1+a)(\\mathcal B^c)^2K/(\\epsilon^2\\hat M^2d)`."""


class CoordinateDescentState(NamedTuple):
    """Iterates [settings, runs, agents, dim]; initial gap [settings, runs, agents].

    The gap is the objective at the starting point minus its minimum.
    """

    x: np.ndarray
    first_gap: np.ndarray


@dataclass(frozen=True, kw_only=True)
class CoordinateDescent(DecayingNoise):
    r"""Private randomised coordinate descent.

    Each agent minimises its own objective and does not communicate. The starting point is projected
    to the domain. In iteration k + 1, an agent samples a coordinate :math:`l_{k+1}` uniformly and
    updates

    .. math:: x^{k+1}[l_{k+1}] = x^k[l_{k+1}] - \frac1{\hat M}\nabla f(x^k)[l_{k+1}]
        + \Delta^{k+1}, \qquad \Delta \sim N(0, \sigma^2) \quad (72)

    .. math:: E f(x^k) - f(x^*) \le \Bigl(1-\frac{m}{d\hat M}\Bigr)^k (f(x^0) - f(x^*))
        + \frac{\hat M}{m} C_1\sigma \quad (74)

    where :math:`\hat M` is the smoothness along coordinates, here the bound on the largest
    curvature, and :math:`C_1 \ge \|\nabla f\|_1` over the domain. The last line of (74) lacks the
    factor :math:`f(x^0) - f(x^*)` (erratum E1.10).
    """

    law: Law = "gaussian"

    needs = (
        "objective", "own_optimum", "slope_bound", "strong_convexity", "smoothness",
    )  # fmt: skip
    source = "Xiao et al., Appendix K, eqs. (72)-(74)"
    quantities = (
        "released", Internal("gap"), Internal("bound"), Internal("published_bound"),
    )  # fmt: skip

    def mechanisms(self, problem, network, horizon):
        # The coordinate is sampled independently of the data, and only its noise is used.
        change = problem.record_change("linf") / problem.smoothness
        return {"step": self.additive(change, horizon)}

    def start(self, problem, network, release):
        x = problem.project(normal_start(problem, release, self.init_std))
        return CoordinateDescentState(x, _gap(problem, x))

    def step(self, state, problem, network, release, t):
        uniform = release.random("coordinate", "uniform", (problem.n_agents,))
        sampled = (uniform * problem.dim).astype(int)[..., None] == np.arange(problem.dim)
        change = release("step", -problem.gradient(state.x) / problem.smoothness * sampled)
        # Other coordinates of the noisy step are not used.
        return state._replace(x=problem.project(state.x + change * sampled))

    def observables(self, state, problem, t):
        """Return the iterates, and the means over agents of the gap and of its bounds (74)."""
        rate = problem.strong_convexity / (problem.dim * problem.smoothness)
        published = np.broadcast_to(np.exp(-rate * t), state.first_gap.shape)
        return {
            "released": state.x,
            "gap": _gap(problem, state.x).mean(-1),
            "bound": self.bound(problem, (1 - rate) ** t * state.first_gap).mean(-1),
            "published_bound": self.bound(problem, published).mean(-1),
        }

    def bound(self, problem, first_term: np.ndarray) -> np.ndarray:
        """Return the upper bound (74) on the gap, from the first term of its second or third line.

        The geometric sum in the second line of (74) is replaced by its bound in the third line.
        """
        convexity = problem.strong_convexity
        require(convexity > 0, "problem.strong_convexity", convexity, "a number > 0")
        floor = problem.smoothness / convexity * problem.slope_bound
        return first_term + floor * np.reshape(self.noise, (-1, 1, 1))

    def claimed_epsilon(self, delta, problem, network, horizon):
        r"""Return :math:`\epsilon = \mathcal B^c\sqrt{(1+a)K/d}/(\hat M\sigma)`.

        The paper treats delta as a constant. It claims nothing at delta 0, where the result
        is infinite.
        """
        if not self.noise or delta == 0:
            return float("inf")
        gradient_change = problem.record_change("linf") * np.sqrt(problem.dim)
        # A coordinate is updated K/d times on average, and at most (1 + a) times as often.
        steps = np.sqrt((1 + EXCESS) * horizon / problem.dim)
        return float(gradient_change * steps / (problem.smoothness * self.noise))


ALGORITHM = CoordinateDescent


def _gap(problem, x: np.ndarray) -> np.ndarray:
    return problem.objective(x) - problem.objective(problem.own_optimum)
