r"""Muffliato-GD: noisy gradient steps, each followed by gossip (Cyffers et al., NeurIPS 2022).

Algorithm 3, with K ``rounds`` of gossip per step and one message per round, is

.. math::
    y_i^{t,0} = z_i^t - \eta\bigl(\mathrm{clip}_C(\nabla f_i(z_i^t)) + N(0, \sigma^2 I)\bigr),
    \qquad y^{t,k+1} = W y^{t,k}, \qquad z^{t+1} = W y^{t,K-1}

or accelerated as in :mod:`.muffliato`. The gradient is clipped *before* the noise is added. K = 1
is decentralized gradient descent with independent noise. :math:`z` is a function of messages: for
the eavesdropper, each step is one Gaussian mechanism, and the gossip is post-processing. Rounds of
gossip increase the privacy loss to distant agents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import NOTHING, column, origin
from .families.clipped_descent import ClippedDescent
from .muffliato import ACCELERATIONS, MuffliatoState, gossip
from .parameters import one_of, positive_integer


@dataclass(frozen=True, kw_only=True)
class MuffliatoGD(ClippedDescent):
    """Muffliato-GD: noisy gradient steps, each followed by K rounds of gossip.

    Parameters
    ----------
    rounds : int
        Number K of messages per gradient step; the horizon counts messages.
    acceleration : {"none", "chebyshev"}
        Recursion of the gossip, without or with Chebyshev acceleration.
    """

    rounds: int = positive_integer(1)
    acceleration: str = one_of("none", ACCELERATIONS)

    privacy_depends_on: ClassVar[str] = NOTHING
    source: ClassVar[str] = "Cyffers, Even, Bellet, Massoulié, NeurIPS 2022, Algorithm 3"
    lower_bound_because: ClassVar[str] = (
        "a changed label changes each gradient by half of the bound at every point"
    )

    def noised(self, horizon: int) -> np.ndarray:
        """Return True for each message with noise, the first of its step; [horizon]."""
        return np.arange(horizon) % int(self.rounds) == 0

    def losses(self, problem, network, horizon):
        """Return one sensitivity per step, not per message."""
        return np.full(int(self.noised(horizon).sum()), self.change(problem))

    def noise_sites(self, problem, network, horizon):
        if not self.noise:
            return []
        first = self.noised(horizon)
        scale = np.where(first, float(self.eta * self.noise.scale), np.nan)[:, None, None]
        moved = first * self.change(problem) / self.noise.scale
        return [self.noise.site(scale, moved)]

    def start(self, problem, network, streams, settings):
        zero = origin(problem, streams, settings)
        return MuffliatoState(zero, zero)

    def step(self, state, problem, network, draw, t):
        position = (t - 1) % column(self.rounds)
        second = (t - 2) % column(self.rounds) == 0
        mixed = gossip(network, state, second, self.acceleration)
        if not np.any(position == 0):
            return MuffliatoState(mixed, state.x)
        stepped = self.descent(problem, mixed) + self.message_scale * draw
        return MuffliatoState(np.where(position == 0, stepped, mixed), state.x)


ALGORITHM = MuffliatoGD
