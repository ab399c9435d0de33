"""Privacy losses of sampled messages with hidden random weights (Xiao et al. 2019).

The weights of an aggregate are sampled uniformly on (0, 1) for every agent, coordinate and
iteration. The accumulated losses are [settings, runs, agents], by name. ``realised`` is the mean
over coordinates, with the published sensitivity. ``realised_all`` is the sum over coordinates, with
the sensitivity of the problem, and ``worst_all`` its largest possible value. ``unamplified`` is the
fraction of coordinates of the last message outside their interval, which random weights do not
protect.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from private_consensus.privacy import aggregation

from ..base import DecayingNoise, Internal

LOSSES = "realised", "realised_all", "worst_all", "unamplified"
QUANTITIES = (
    *map(Internal, ("realised", "realised_all", "unamplified", "realised_share")), "worst_all",
)  # fmt: skip
"""Observables with the privacy losses of a run."""


@dataclass(frozen=True, kw_only=True)
class RandomWeights(DecayingNoise):
    """Part of a method that averages messages with weights; the state has ``extra`` arrays.

    Parameters
    ----------
    weights : {"random", "fixed"}
        Weights w: sampled, or their mean 1/2.
    """

    weights: Literal["random", "fixed"] = "random"

    @property
    def has_losses(self) -> bool:
        """Return True if privacy losses of sampled messages are computed: Theorem 2.2 applies."""
        return self.noisy and (self.weights, self.law) == ("random", "laplace")

    def start(self, problem, network, release):
        state: Any = super().start(problem, network, release)
        return state._replace(extra=dict.fromkeys(LOSSES, state.total_loss))

    def observables(self, state, problem, t):
        quantities = dict(super().observables(state, problem, t))
        if self.has_losses:
            means = {name: state.extra[name].mean(-1) for name in LOSSES}
            share = means["realised"] / state.total_loss.mean(-1)
            quantities |= {**means, "realised_share": share}
        return quantities


def add_losses(
    losses: Mapping[str, np.ndarray], problem, position, length, scale, step_size: Any
) -> dict[str, np.ndarray]:
    r"""Return the losses after one more message.

    ``position`` is the message minus the lower end of its interval, and ``length`` that of the
    interval, each [settings, runs, agents, dim]. The noise has the scale :math:`1/\beta`, and the
    gradient in a message the factor :math:`\alpha`, ``step_size``.
    """
    beta = 1.0 / np.asarray(scale)
    published = step_size * problem.published_change
    proven = step_size * problem.record_change("linf")
    realised, corrected = (
        aggregation.realised_loss(position, length, beta, change) for change in (published, proven)
    )
    outside = (position <= 0) | (position >= length)
    worst = np.broadcast_to(beta * proven, (*realised.shape[:-1], 1))[..., 0] * problem.dim
    return {
        "realised": losses["realised"] + realised.mean(-1),
        "realised_all": losses["realised_all"] + corrected.sum(-1),
        "worst_all": losses["worst_all"] + worst,
        "unamplified": outside.mean(-1),
    }
