r"""DECOR: pairwise noise that cancels between neighbours (Allouah et al., ICML 2024).

The two agents of an edge share a secret seed, from which both sample the same pair noise:

.. math::
    y_i = z_i - \eta\Bigl(\mathrm{clip}_C(\nabla f_i(z_i)) + v_i + \sum_{j\sim i} v_{ij}\Bigr),
    \qquad z = W y, \qquad v_i \sim N(0, s_{ind}^2 I), \quad
    v_{ij} = -v_{ji} \sim N(0, s_{pair}^2 I)

("The privacy power of correlated noise in decentralized learning", arXiv 2405.01031). The mean over
agents has the noise variance :math:`s_{ind}^2/N`. To the eavesdropper, who knows no seed, a round
is one Gaussian mechanism with the covariance :math:`\Sigma = s_{ind}^2 I + s_{pair}^2 L`, L the
Laplacian of the graph:

.. math:: \mu_u^2 = T\Delta^2 [\Sigma^{-1}]_{uu}

With increasing pair noise, this approaches :math:`T\Delta^2/(N s_{ind}^2)`, the loss of noise added
by a server. An agent or a coalition that knows seeds has a larger privacy loss. Against a coalition
of all neighbours of u, only the noise :math:`s_{ind}` remains.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..networks import laplacian
from .base import DRAW, column
from .families.clipped_descent import ClippedDescent, ClippedDescentState
from .parameters import nonnegative

ROUNDING = 1e-12
"""Bound on the rounding error of the eigenvalues of a Laplacian, relative to the largest one."""
MAX_RATIO = 1e6
"""Largest ratio of pair noise to individual noise whose sum keeps the individual noise."""


class DECORDraw(NamedTuple):
    r"""Unit draws of a round.

    ``noise`` has two forms. The first form is a pair of arrays: one vector per agent [runs, agents,
    dim], and one per pair of agents [runs, agents, agents, dim], of which the upper triangle is
    used. The second form, for audits, is white noise z [runs, agents, dim]; the noise of a round is
    then :math:`\Sigma^{1/2} z`.
    """

    noise: Any


@dataclass(frozen=True, kw_only=True)
class DECOR(ClippedDescent):
    r"""DECOR: decentralized SGD with pairwise correlated noise.

    The parameter ``noise`` is :math:`s_{ind}`, in the unit of the gradient.

    Parameters
    ----------
    ratio : float, optional
        Ratio :math:`s_{pair}/s_{ind}`, at most :data:`MAX_RATIO`. The default is
        :math:`\sqrt{(N-2)/a}` with the algebraic connectivity a, for which :math:`\mu^2` is at most
        twice that of noise added by a server.
    """

    ratio: float | None = nonnegative(None, max_value=MAX_RATIO)

    observer: ClassVar[str] = "an outsider, who receives every message and knows no pair noise"
    source: ClassVar[str] = "Allouah et al., ICML 2024, Algorithm 1"
    lower_bound_because: ClassVar[str] = (
        "a changed label changes each gradient by half of the bound at every point"
    )

    def pair_ratio(self, network) -> Any:
        """Return the ratio of pair noise to individual noise, :math:`s_{pair}/s_{ind}`.

        It broadcasts to [settings, runs, agents, dim].
        """
        if self.ratio is not None:
            return column(self.ratio)
        if network.n_agents <= 2:
            return 0.0
        ratio = np.sqrt((network.n_agents - 2) / network.algebraic_connectivity)
        return float(ratio) if network.shared else np.reshape(ratio, (-1, 1, 1))

    def covariance(self, network) -> np.ndarray:
        r"""Return the relative covariance :math:`\Sigma/s_{ind}^2` of a single setting.

        Its shape is [agents, agents], with an axis of runs if the graphs of the runs differ.
        """
        graph = network.adjacency
        squared = np.reshape(self.pair_ratio(network), -1) ** 2
        weights = np.reshape(squared, (*graph.shape[:-2], 1, 1)) if len(squared) > 1 else squared
        return np.eye(network.n_agents) + weights * laplacian(graph)

    def losses(self, problem, network, horizon):
        """Return the sensitivity of each round, relative to noise of scale 1.

        It is that of the agent with the largest privacy loss.
        """
        largest = self._largest_inverse(network)
        return np.full(horizon, self.change(problem) * float(np.sqrt(largest)) * (1 + 1e-9))

    def _largest_inverse(self, network) -> float:
        r"""Return the largest diagonal entry of :math:`\Sigma^{-1}s_{ind}^2`.

        Reduced eigenvalues of the Laplacian bound it from above for any ratio. An inverse of the
        covariance is wrong for a large ratio, since the condition number grows with its square.
        """
        eigenvalues, vectors = np.linalg.eigh(laplacian(network.adjacency))
        reduced = np.maximum(eigenvalues - ROUNDING * eigenvalues[..., -1:], 0.0)
        squared = np.reshape(self.pair_ratio(network), (-1, 1)) ** 2
        return float((vectors**2 / (1 + squared * reduced)[..., None, :]).sum(-1).max())

    def noise_sites(self, problem, network, horizon):
        if not self.noise:
            return []
        moved = self.losses(problem, network, horizon) / self.noise.scale
        return [self.noise.site(np.ones((horizon, 1, 1)), moved, DRAW)]

    def draws(self, problem, streams) -> Iterator[DECORDraw]:
        shape = (problem.n_agents, problem.dim)
        agent_noise = streams.sequence("noise", "normal", shape)
        pairs = streams.sequence("noise", "normal", (problem.n_agents, *shape), "pairs")
        return (DECORDraw((unit, next(pairs))) for unit in agent_noise)

    def step(self, state, problem, network, draw, t):
        z = network.mix(state.x)
        total = self.total_noise(network, draw.noise)
        return ClippedDescentState(self.descent(problem, z) + self.message_scale * total)

    def total_noise(self, network, noise) -> np.ndarray:
        r"""Return the relative noise of each message, :math:`(v_i + \sum_j v_{ij})/s_{ind}`.

        ``noise`` is unit noise in one of the two forms of :class:`DECORDraw`. The result is
        broadcastable to [settings, runs, agents, dim].
        """
        if not isinstance(noise, tuple):
            return np.linalg.cholesky(self.covariance(network)) @ noise
        agent_noise, pairs = noise
        return agent_noise + self.pair_ratio(network) * _summed(network.adjacency, pairs)


ALGORITHM = DECOR


def _summed(adjacency: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return the sum of the signed pair noise of each agent, [runs, agents, dim].

    The first agent of a pair adds the noise of the pair, and the second agent subtracts it.
    ``pairs`` is [runs, agents, agents, dim]; pairs without an edge are ignored.
    """
    if adjacency.ndim > 2:
        used = np.triu(adjacency)[..., None] * pairs
        return used.sum(-2) - used.sum(-3)
    added, subtracted = np.zeros((2, *pairs.shape[:-3], *pairs.shape[-2:]))
    for first, neighbour_row in enumerate(np.triu(adjacency)):
        linked = np.flatnonzero(neighbour_row)
        pair_noise = pairs[..., first, linked, :]
        added[..., first, :] = pair_noise.sum(-2)
        subtracted[..., linked, :] += pair_noise
    return added - subtracted
