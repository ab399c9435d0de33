"""Muffliato-GD: noisy gradient steps, each followed by gossip (Cyffers et al., NeurIPS 2022)."""

from dataclasses import dataclass

import numpy as np

from private_consensus.privacy.mechanisms import Gaussian

from ..parameters import PositiveInt
from .base import NOTHING, Iterates, column
from .families.clipped_descent import ClippedDescent


@dataclass(frozen=True, kw_only=True)
class MuffliatoGD(ClippedDescent):
    r"""Muffliato-GD: noisy gradient steps, each followed by K rounds of gossip.

    Algorithm 3, with K ``rounds`` of gossip per step and one message per round, is

    .. math::
        y_i^{t,0} = z_i^t - \eta\bigl(\mathrm{clip}_C(\nabla f_i(z_i^t)) + N(0, \sigma^2 I)\bigr),
        \qquad y^{t,k+1} = W y^{t,k}, \qquad z^{t+1} = W y^{t,K-1}

    The gradient is clipped *before* the noise is added. K = 1 is decentralized gradient descent
    with independent noise. :math:`z` is a function of messages: for the eavesdropper, each step is
    one Gaussian mechanism, and the gossip is post-processing. No acceleration is used.

    Parameters
    ----------
    rounds : int
        Number K of messages per gradient step; the horizon counts messages.
    """

    rounds: PositiveInt = 1

    source = "Cyffers, Even, Bellet, Massoulié, NeurIPS 2022, Algorithm 3"
    privacy_depends_on = NOTHING

    def mechanisms(self, problem, network, horizon):
        # The settings of a batch may take their steps in different iterations.
        periods = np.unique(self.rounds)
        times = [t for t in range(1, horizon + 1) if np.any((t - 1) % periods == 0)]
        change = column(self.eta) * self.change(problem)
        return {"step": Gaussian(change, self.message_scale, times=tuple(times))}

    def step(self, state, problem, network, release, t):
        # The horizon counts messages: a step is followed by K - 1 rounds of gossip alone.
        is_step = (t - 1) % column(self.rounds) == 0
        mixed = network.mix(state.x)
        # Gossip needs no gradient, which costs more than all else.
        if not np.any(is_step):
            return Iterates(mixed)
        stepped = release("step", self.descent(problem, mixed), where=np.asarray(is_step))
        return Iterates(np.where(is_step, stepped, mixed))


ALGORITHM = MuffliatoGD
