r"""Muffliato-GD: noisy gradient steps, each followed by gossip (Cyffers et al., NeurIPS 2022).

Algorithm 3, with K ``rounds`` of gossip per step and one message per round, is

.. math::
    y_i^{t,0} = z_i^t - \eta\bigl(\mathrm{clip}_C(\nabla f_i(z_i^t)) + N(0, \sigma^2 I)\bigr),
    \qquad y^{t,k+1} = W y^{t,k}, \qquad z^{t+1} = W y^{t,K-1}

or accelerated as in :mod:`.muffliato`. The gradient is clipped *before* the noise is added. K = 1
is decentralized gradient descent with independent noise. :math:`z` is a function of messages: for
the eavesdropper, each step is one Gaussian mechanism, and the gossip is post-processing. Rounds of
gossip increase the privacy loss to distant agents (``docs/explanation/observers.md``).
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
        """Return the sensitivity of each noisy step, relative to noise of scale 1.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        ndarray, shape (steps,)
            One value per step, not per message.
        """
        return np.full(int(self.noised(horizon).sum()), self.change(problem))

    def noise_sites(self, problem, network, horizon):
        """Return the noise site: the first message of each step.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        list of NoiseSite
            Empty without noise.
        """
        if not self.noise:
            return []
        first = self.noised(horizon)
        scale = np.where(first, float(self.eta * self.noise.scale), np.nan)[:, None, None]
        moved = first * self.change(problem) / self.noise.scale
        return [self.noise.site(scale, moved)]

    def start(self, problem, network, streams, settings):
        """Return the state before the first iteration, with both messages at the starting point.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        streams : Streams
            Random streams of all runs.
        settings : int
            Number of settings in the batch.

        Returns
        -------
        MuffliatoState
            State before the first iteration.
        """
        zero = origin(problem, streams, settings)
        return MuffliatoState(zero, zero)

    def step(self, state, problem, network, draw, t):
        """Return the state after one message: a noisy gradient step or one gossip round.

        Parameters
        ----------
        state : MuffliatoState
            State before the iteration.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        draw : ndarray, shape (runs, agents, dim)
            Unit noise of the iteration.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        MuffliatoState
            State after the iteration.
        """
        position = (t - 1) % column(self.rounds)
        second = (t - 2) % column(self.rounds) == 0
        mixed = gossip(network, state, second, self.acceleration)
        if not np.any(position == 0):
            return MuffliatoState(mixed, state.x)
        stepped = self.descent(problem, mixed) + self.message_scale * draw
        return MuffliatoState(np.where(position == 0, stepped, mixed), state.x)


ALGORITHM = MuffliatoGD
