"""IncA: gossip into which each agent adds its value in parts (Sabater et al., 2025)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from private_consensus.privacy.mechanisms import Gaussian

from ..parameters import NonNegative, PositiveInt
from .base import NOTHING, Algorithm, column, origin


class IncAState(NamedTuple):
    """Messages y, noisy values u and added parts s, each [settings, runs, agents, dim]."""

    y: np.ndarray
    u: np.ndarray
    s: np.ndarray


@dataclass(frozen=True, kw_only=True)
class IncA(Algorithm):
    r"""Incremental averaging: gossip of values that agents add in parts.

    .. math::
        u_i &= \bar d_i + N(0, \sigma^2 I), \qquad
        s_i(t) = \tfrac tK u_i + N(0, (r\sigma)^2 I) \text{ for } t < K, \qquad s_i(t) = u_i
            \text{ for } t \ge K \\
        y_i(t) &= \sum_j w_{ij}\, y_j(t-1) + s_i(t) - s_i(t-1), \qquad y_i(0) = s_i(0) = 0

    This is Algorithm 1 with a fixed mixing matrix. Agents add increments of :math:`s_i`, whose
    noise cancels in the sum: after K rounds, the mean of all messages is that of the :math:`u_i`.
    Iteration t + 1 sends :math:`y(t)`. All messages are functions of :math:`u_i` and of noise that
    does not depend on data. For the eavesdropper, the privacy loss is that of :math:`u_i`, one
    Gaussian mechanism. The cancelling noise protects against agents and coalitions that receive a
    part of the messages.

    Parameters
    ----------
    noise : float
        Standard deviation :math:`\sigma` of the noise that remains.
    ratio : float
        Ratio r of the cancelling noise to the noise that remains.
    rounds : int
        Number K of rounds in which an agent adds its value.
    """

    noise: NonNegative = 0.0
    ratio: NonNegative = 1.0
    rounds: PositiveInt = 10

    privacy_depends_on = NOTHING
    needs = ("means",)
    source = "Sabater, Ben Mokhtar, Ramon 2025, arXiv 2506.03746, Algorithm 1"

    def mechanisms(self, problem, network, horizon):
        change = problem.record_change("l2") / problem.records
        scale, rounds = column(self.noise), int(np.max(self.rounds))
        # This noise cancels in later parts, so that it hides nothing from an observer of all.
        cancelling = column(self.ratio) * scale
        return {
            "value": Gaussian(change, scale, times=(1,)),
            "part": Gaussian(0.0, cancelling, times=range(1, rounds), stream="cancelling"),
        }

    def start(self, problem, network, release):
        return IncAState(*3 * (origin(problem, release),))

    def step(self, state, problem, network, release, t):
        means = np.broadcast_to(problem.means, state.u.shape)
        u = release("value", means) if t == 1 else state.u
        # From round K on, s is the value itself, so that the increments end.
        s, rounds = u, column(self.rounds)
        if np.any(t < rounds):
            s = np.where(t < rounds, release("part", t / rounds * u), u)
        return IncAState(network.mix(state.y) + s - state.s, u, s)

    def observables(self, state, problem, t):
        return {"released": state.y}


ALGORITHM = IncA
EXAMPLE = {"problem": "mean_estimation", "parameters": {"rounds": 2}}
