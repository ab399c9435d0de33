"""Muffliato: gossip averages of noisy values (Cyffers, Even, Bellet, Massoulié, NeurIPS 2022)."""

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from private_consensus.privacy import gaussian_epsilon
from private_consensus.privacy.mechanisms import Gaussian

from ..parameters import NonNegative
from .base import NOTHING, Algorithm, column, origin
from .families.clipped_descent import mu_of


class MuffliatoState(NamedTuple):
    """The last message and the one before it, each [settings, runs, agents, dim]."""

    x: np.ndarray
    before: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Muffliato(Algorithm):
    r"""Muffliato: private averaging of the agents' means by gossip.

    .. math::
        x_i^0 &= \bar d_i + N(0, \sigma^2 I), \qquad x^1 = W x^0, \\
        x^{t+1} &= W x^t \quad\text{or, accelerated,}\quad
            x^{t+1} = \gamma W x^t + (1-\gamma)\,x^{t-1}, \qquad
        \gamma = \frac{2\bigl(1 - \sqrt{\lambda(1-\lambda/4)}\bigr)}{(1-\lambda/2)^2},
        \quad \lambda = 1 - |\lambda_2(W)|

    This follows arXiv 2206.05091 and its published code. Iteration t = 1, 2, ... sends
    :math:`x^{t-1}`. A replaced record changes :math:`x_i^0` by the change of the agent's mean, and
    all later messages are functions of the first ones. The privacy loss to the eavesdropper is that
    of one Gaussian mechanism, for any number of rounds.

    Parameters
    ----------
    noise : float
        Standard deviation :math:`\sigma` of the noise of each coordinate.
    acceleration : {"none", "chebyshev"}
        Recursion of the gossip, without or with Chebyshev acceleration.
    """

    noise: NonNegative = 0.0
    acceleration: Literal["none", "chebyshev"] = "none"

    privacy_depends_on = NOTHING
    needs = ("means",)
    source = "Cyffers, Even, Bellet, Massoulié, NeurIPS 2022, Algorithm 1"

    def mechanisms(self, problem, network, horizon):
        return {"mean": Gaussian(_change(problem), column(self.noise), times=(1,))}

    def start(self, problem, network, release):
        return MuffliatoState(*2 * (origin(problem, release),))

    def step(self, state, problem, network, release, t):
        # Records are used once; all later messages are averages of these noisy means.
        if t == 1:
            means = np.broadcast_to(problem.means, state.x.shape)
            return MuffliatoState(release("mean", means), state.x)
        mixed = network.mix(state.x)
        # The recursion has two terms, so that the first average W x^0 is not accelerated.
        if self.acceleration == "chebyshev" and t > 2:
            weight = chebyshev_weight(network.consensus_rate)
            mixed = weight * mixed + (1 - weight) * state.before
        return MuffliatoState(mixed, state.x)

    def calibrate(self, budget, problem, network, horizon):
        self.check_needs(problem)
        noise = _change(problem) / mu_of(budget) if budget.private else 0.0
        return replace(self, noise=noise)

    def claimed_epsilon(self, delta, problem, network, horizon):
        """Return the epsilon of the first message, by the exact curve of Gaussian DP."""
        if not self.noise:
            return float("inf")
        return gaussian_epsilon(_change(problem) / self.noise, delta)


ALGORITHM = Muffliato


def chebyshev_weight(rate) -> np.ndarray:
    r"""Return the weight :math:`\gamma` of the acceleration for a consensus rate, [..., 1, 1]."""
    gap = np.reshape(1.0 - rate, (*np.shape(rate), 1, 1))
    return 2.0 * (1.0 - np.sqrt(gap * (1.0 - gap / 4.0))) / (1.0 - gap / 2.0) ** 2


def _change(problem) -> float:
    """Return the largest l2 change of an agent's mean by a replaced record."""
    return float(problem.record_change("l2") / problem.records)
