r"""Muffliato-GD: noised gradient steps, each followed by gossip without noise (Cyffers, Even,
Bellet, Massoulie, NeurIPS 2022, Algorithm 3).

With K ``rounds`` of gossip a step, one message a round,

.. math::
    y_i^{t,0} = z_i^t - \eta\bigl(\mathrm{clip}_C(\nabla f_i(z_i^t)) + N(0, \sigma^2 I)\bigr),
    \qquad y^{t,k+1} = W y^{t,k}, \qquad z^{t+1} = W y^{t,K-1}

or accelerated as in :mod:`.muffliato`. The gradient is clipped *before* the noise is added. K = 1
is decentralized gradient descent with independent noise. :math:`z` is a function of messages: for
the eavesdropper each step is one Gaussian mechanism and the rest is post-processing. Rounds without
noise tell single agents what distance would hide (``docs/observers.md``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import column, origin
from .families.clipped_descent import ClippedDescent
from .muffliato import ACCELERATIONS, State, gossip
from .parameters import one_of, whole


@dataclass(frozen=True, kw_only=True)
class MuffliatoGD(ClippedDescent):
    """Noised steps and K messages each.

    Parameters
    ----------
    rounds : int
        K; the horizon counts messages.
    acceleration : {"none", "chebyshev"}
    """

    rounds: int = whole(1)
    acceleration: str = one_of("none", ACCELERATIONS)

    source: ClassVar[str] = "Cyffers, Even, Bellet, Massoulie, NeurIPS 2022, Algorithm 3"
    lower_bound_because: ClassVar[str] = (
        "a label flip moves each gradient by half of the bound at every point"
    )

    def graph_statistics(self, network):
        """Return no statistics, since privacy does not depend on the graph."""

    def noised(self, horizon: int) -> np.ndarray:
        """Return True for each message that is the first of a step, [horizon]."""
        return np.arange(horizon) % int(self.rounds) == 0

    def losses(self, problem, network, horizon):
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
        return State(zero, zero)

    def step(self, state, problem, network, draw, t):
        position = (t - 1) % column(self.rounds)
        second = (t - 2) % column(self.rounds) == 0
        mixed = gossip(network, state, second, self.acceleration)
        if not np.any(position == 0):
            return State(mixed, state.x)
        stepped = self.descent(problem, mixed) + self.message_scale * draw
        return State(np.where(position == 0, stepped, mixed), state.x)


ALGORITHM = MuffliatoGD
