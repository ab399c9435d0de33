"""Noised gradient descent that also reports quantities computed from its messages.

The quantity ``spread`` and the outcome ``average`` are functions of messages. They add no loss to
that of round_noise_descent.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .round_noise_descent import RoundNoiseDescent


@dataclass(frozen=True, kw_only=True)
class MessageReportDescent(RoundNoiseDescent):
    """Noised gradient descent that also reports quantities computed from its messages."""

    quantities: ClassVar[tuple[str, ...]] = ("released", "spread", "average")

    def observables(self, state, problem, t):
        apart = state.x - state.x.mean(-2, keepdims=True)
        return {"released": state.x, "spread": (apart**2).sum((-2, -1))}

    def outcome(self, state, problem, network, t):
        average = state.x.mean(-2, keepdims=True)
        return {"average": average + np.zeros_like(state.x)}


ALGORITHM = MessageReportDescent
EXAMPLE = "mean_estimation"
