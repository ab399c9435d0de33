r"""Follow the regularised leader with noise of a binary tree.

Record j is used in one round only, :math:`1 + (j \bmod T)`. With :math:`g_s` the sum over the
records of round s of clipped gradients at a mixture of messages, agent i sends

.. math:: x_i(t) = -\eta\Bigl(\frac1N\sum_{s\le t} g_s + \sum_{k\in K(t)} n_k\Bigr)

where K(t) are the nodes of the binary decomposition of 1, ..., t and :math:`n_k\sim
N(0,\sigma^2)`. The messages are functions of the node sums with noise. The node that ends at t is
released in round t, so the composition is adaptive. A replaced record moves one leaf by at most
:math:`2C/N` and is in at most :math:`1+\lfloor\log_2 T\rfloor` released nodes.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from private_consensus.common.errors import require
from private_consensus.core.algorithms.base import column, origin
from private_consensus.core.algorithms.parameters import positive, positive_integer

from ._common import GaussianSeries, clipped, record_gradients

LEVELS = 8
"""Levels of the tree; the horizon is below 2**LEVELS."""


class TreeState(NamedTuple):
    """Messages and sums of gradients [settings, runs, agents, dim]; unit noise of the latest node
    of each level [settings, runs, LEVELS, agents, dim]."""

    x: np.ndarray
    total: np.ndarray
    nodes: np.ndarray


@dataclass(frozen=True, kw_only=True)
class TreeNoiseDescent(GaussianSeries):
    """Follow the regularised leader with noise of a binary tree.

    Parameters
    ----------
    eta : float
        Step length.
    clip : float
        Largest l2 norm of one record's gradient.
    rounds : int
        Horizon, which :meth:`calibrate` sets.
    """

    eta: float = positive(1.0)
    clip: float = positive(0.2)
    rounds: int = positive_integer(1)

    needs: ClassVar[tuple[str, ...]] = ("features",)

    def change(self, problem):
        return 2.0 * self.clip / problem.records

    def count(self, horizon):
        return horizon.bit_length()

    def calibrate(self, budget, problem, network, horizon):
        require(horizon < 2**LEVELS, "horizon", horizon, f"below {2**LEVELS}")
        scaled = super().calibrate(budget, problem, network, horizon)
        return replace(scaled, rounds=horizon)

    def start(self, problem, network, streams, settings):
        zero = origin(problem, streams, settings)
        nodes = np.zeros((*zero.shape[:2], LEVELS, *zero.shape[2:]))
        return TreeState(zero, zero, nodes)

    def draws(self, problem, streams):
        return streams.sequence("noise", "normal", (LEVELS, problem.n_agents, problem.dim))

    def with_node(self, nodes, draw, level):
        """Return the nodes after the node of a level has been completed."""
        after = nodes.copy()
        after[:, :, :level] = 0.0
        after[:, :, level] = draw[:, level]
        return after

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        gradients = clipped(record_gradients(problem, z), self.clip)
        rounds = column(np.asarray(self.rounds, dtype=int))
        turn = np.arange(gradients.shape[-2]) % rounds == t - 1
        total = state.total + (turn[..., None] * gradients).sum(-2) / problem.records
        level = (t & -t).bit_length() - 1
        nodes = self.with_node(state.nodes, draw, level)
        noise = column(self.sigma.scale) * nodes.sum(2)
        return TreeState(-column(self.eta) * (total + noise), total, nodes)


ALGORITHM = TreeNoiseDescent
EXAMPLE = "logistic_regression"
