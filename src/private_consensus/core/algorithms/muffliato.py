r"""Muffliato: gossip averages of noisy values (Cyffers, Even, Bellet, Massoulié, NeurIPS 2022).

.. math::
    x_i^0 &= \bar d_i + N(0, \sigma^2 I), \qquad x^1 = W x^0, \\
    x^{t+1} &= W x^t \quad\text{or, accelerated,}\quad
        x^{t+1} = \gamma W x^t + (1-\gamma)\,x^{t-1}, \qquad
    \gamma = \frac{2\bigl(1 - \sqrt{\lambda(1-\lambda/4)}\bigr)}{(1-\lambda/2)^2},
    \quad \lambda = 1 - |\lambda_2(W)|

This follows arXiv 2206.05091 and its published code. Iteration t = 1, 2, ... sends
:math:`x^{t-1}`. A replaced record changes :math:`x_i^0` by the change of the agent's mean, and all
later messages are functions of the first ones. The privacy loss to the eavesdropper is that of one
Gaussian mechanism, for any number of rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from private_consensus.privacy import gaussian_epsilon

from .base import NOTHING, Iterative, Range, column, origin
from .families.clipped_descent import mu_of
from .noise import Noise
from .parameters import noise_field, one_of

ACCELERATIONS = ("none", "chebyshev")


class MuffliatoState(NamedTuple):
    """The last message and the one before it, each [settings, runs, agents, dim]."""

    x: np.ndarray
    before: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Muffliato(Iterative):
    r"""Muffliato: private averaging of the agents' means by gossip.

    Parameters
    ----------
    noise : float
        Standard deviation :math:`\sigma` of the noise of each coordinate.
    acceleration : {"none", "chebyshev"}
        Recursion of the gossip, without or with Chebyshev acceleration.
    """

    noise: Noise = noise_field()
    acceleration: str = one_of("none", ACCELERATIONS)

    quantities: ClassVar = ("released",)
    privacy_depends_on: ClassVar[str] = NOTHING
    needs: ClassVar[tuple[str, ...]] = ("means",)
    source: ClassVar[str] = "Cyffers, Even, Bellet, Massoulié, NeurIPS 2022, Algorithm 1"
    ranges: ClassVar = {"horizon": Range(3, 40, 20)}
    lower_bound_because: ClassVar[str] = (
        "records in opposite corners change the noisy mean by exactly the sensitivity"
    )

    def calibrate(self, budget, problem, network, horizon):
        self.check_needs(problem)
        if not budget.private:
            return replace(self, noise=0.0)
        return replace(self, noise=_change(problem) / mu_of(budget))

    def releases(self, problem, network, horizon):
        """Return the first message only: later messages are functions of it."""
        return self.noise.releases(_change(problem), self.noise.scale, attained=1.0)

    def epsilon_by_formula(self, delta, problem, network, horizon):
        """Return the epsilon of the first message, by the exact curve of Gaussian DP."""
        if not self.noise:
            return float("inf")
        return gaussian_epsilon(_change(problem) / self.noise.scale, delta)

    def noise_sites(self, problem, network, horizon):
        if not self.noise:
            return []
        first = np.arange(horizon) == 0
        scale = np.where(first, self.noise.scale, np.nan)[:, None, None]
        return [self.noise.site(scale, first * _change(problem) / self.noise.scale)]

    def start(self, problem, network, streams, settings):
        zero = origin(problem, streams, settings)
        return MuffliatoState(zero, zero)

    def step(self, state, problem, network, draw, t):
        if t == 1:
            return MuffliatoState(problem.means + column(self.noise.scale) * draw, state.x)
        return MuffliatoState(gossip(network, state, t == 2, self.acceleration), state.x)

    def observables(self, state, problem, t):
        return {"released": state.x}


ALGORITHM = Muffliato


def gossip(network, state, first, acceleration: str) -> np.ndarray:
    """Return the next messages of a gossip phase, [settings, runs, agents, dim].

    ``first`` is True if the next message is the second of its phase, which does not use
    ``state.before``. The acceleration is ``none`` or ``chebyshev``.
    """
    mixed = network.mix(state.x)
    if acceleration == "none":
        return mixed
    weight = _weight_of(network.consensus_rate)
    return np.where(first, mixed, weight * mixed + (1 - weight) * state.before)


def _weight_of(rate) -> np.ndarray:
    gap = np.reshape(1.0 - rate, (*np.shape(rate), 1, 1))
    return 2.0 * (1.0 - np.sqrt(gap * (1.0 - gap / 4.0))) / (1.0 - gap / 2.0) ** 2


def _change(problem) -> float:
    """Return the largest l2 change of an agent's mean by a replaced record."""
    return float(problem.record_change("l2") / problem.records)
