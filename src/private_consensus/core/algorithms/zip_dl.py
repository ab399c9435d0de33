r"""ZIP-DL: noise that cancels at its sender (Biswas et al., PoPETs 2025(3)).

.. math::
    x_a &\leftarrow x_a - \eta\,\mathrm{clip}_C(\nabla f_a(x_a)), \qquad
        Y_{a\to v} \sim N(0, \eta^2\sigma^2 I) \text{ for v in the closed neighbourhood}, \\
    Z_{a\to v} &= Y_{a\to v} - \frac1{d_a w_{av}}\sum_j w_{aj} Y_{a\to j}, \qquad
        \sum_v w_{av} Z_{a\to v} = 0, \\
    x_v &\leftarrow \sum_a w_{va}(x_a + Z_{a\to v})

where :math:`d_a` is the size of the closed neighbourhood (arXiv 2403.11795). The weighted sum of
all models contains no noise. The guarantee of the paper is for a single neighbour, from marginal
losses; it states nothing for an eavesdropper. For the eavesdropper and any loss function, the
following bound holds. Noise with :math:`Z_{u\to v} = -D` for other agents and
:math:`D(1-w_{uu})/w_{uu}` for itself hides a difference D of the state of agent u. After the round,
the state of u still has the difference D. Differences of successive rounds are therefore added, and
the privacy loss of round t is

.. math:: \mu_t^2 = \frac{(t\,\Delta)^2}{\sigma^2}\,E_u, \qquad
    E_u = \min\{|y|^2 : (P_u y)_v = -1,\ v \ne u\}

with :math:`Z_u = P_u Y_u`, and :math:`E_u = d(d+1)` for equal weights and d neighbours. The total
:math:`\mu^2` grows with the cube of the number of rounds. It is infinite if the change of gradients
is unbounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from private_consensus.common.errors import require
from private_consensus.privacy import Release

from .base import origin
from .families.clipped_descent import ClippedDescent
from .noise import Noise
from .parameters import noise_field


class ZipDLState(NamedTuple):
    """Models after mixing, messages to other agents, and the weighted mean of these messages.

    Models and means are [settings, runs, agents, dim]. Messages are [settings, runs, agents,
    receivers, dim], 0 without an edge. The mean over the messages of an agent has the mixing
    weights of the receivers.
    """

    x: np.ndarray
    sent: np.ndarray
    mean: np.ndarray


@dataclass(frozen=True, kw_only=True)
class ZipDL(ClippedDescent):
    r"""ZIP-DL: gradient steps, each followed by mixing with noise that cancels at the sender.

    The parameter ``noise`` is :math:`\sigma`, in the unit of the gradient.
    """

    noise: Noise = noise_field()

    quantities: ClassVar = ("internal", "released", "links")
    uses = ("smoothness",)
    source: ClassVar[str] = "Biswas et al., PoPETs 2025(3), Algorithm 1"

    def change_of_step(self, problem) -> float:
        r"""Return the largest increase of the difference of two states by a step, over eta.

        The states are those of one agent on neighbouring data sets. With clipping, the increase is
        at most 2C. Without clipping, if a gradient step expands no distance (:math:`\eta L \le 2`),
        the increase is at most the change of the gradient by a record at a fixed point. It is
        unbounded if the smoothness holds for the present records only, or not for all terms, and
        for objectives that may be non-convex.
        """
        if self.clip is not None:
            return 2.0 * float(self.clip)
        convexity = problem.least_convexity
        if "smoothness" in problem.from_data or convexity is None or convexity < 0:
            return float("inf")
        expansion = np.max(np.asarray(problem.smoothness) * np.asarray(self.eta))
        return float(problem.record_change("l2")) if expansion <= 2.0 else float("inf")

    def losses(self, problem, network, horizon):
        """Return the sensitivity of each round, relative to noise of scale 1.

        It is proportional to the number of the round.
        """
        energy = max(map(hiding_energy, network.mixing.reshape(-1, *network.mixing.shape[-2:])))
        times = np.arange(1, horizon + 1)
        return self.change_of_step(problem) * np.sqrt(energy) * times

    def releases(self, problem, network, horizon):
        losses = self.losses(problem, network, horizon)
        if not self.noise or not np.isfinite(losses).all():
            return [Release("exact", sensitivity=float(losses[0]), scale=0.0)]
        scale = np.full(horizon, float(self.noise.scale))
        note = "differences of states accumulate over rounds"
        return [Release("gaussian", losses, scale, note=note)]

    def start(self, problem, network, streams, settings):
        zero = origin(problem, streams, settings)
        links = np.zeros((*zero.shape[:3], problem.n_agents, problem.dim))
        return ZipDLState(zero, links, zero)

    def draws(self, problem, streams):
        agents = problem.n_agents
        return streams.sequence("noise", "normal", (agents, agents, problem.dim))

    def noise_sites(self, problem, network, horizon):
        """Return the white noise in the messages that other agents receive.

        It has one vector per neighbour of an agent, whereas an agent samples one vector more.
        """
        if not self.noise or not network.shared:
            return []
        scale = np.full((horizon, 1, 1), float(self.eta) * float(self.noise.scale))
        moved = self.losses(problem, network, horizon) / float(self.noise.scale)
        return [self.noise.site(scale, moved)]

    def step(self, state, problem, network, draw, t):
        """Return the state after a gradient step and mixing with noise that cancels."""
        x, scale = self.descent(problem, state.x), np.asarray(self.message_scale)[..., None]
        weights = np.asarray(network.mixing)[..., None]
        noise = scale * cancelling(network.mixing, draw)
        messages = (weights > 0) * (x[..., None, :] + noise)
        is_self = np.eye(x.shape[-2], dtype=bool)[..., None]
        sent, retained = messages * ~is_self, (weights * is_self * messages).sum(-2)
        own_weight = (weights * is_self).sum(-2)
        mean = (weights * sent).sum(-2) / (1.0 - own_weight)
        return ZipDLState(network.mix_links(sent) + retained, sent, mean)

    def observables(self, state, problem, t) -> Mapping[str, np.ndarray]:
        """Return the weighted mean of each agent's messages, and all messages as ``links``."""
        return {"released": state.mean, "internal": state.x, "links": state.sent}


ALGORITHM = ZipDL


def cancelling(mixing: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return the noise Z of all pairs of agents, which cancels at the sender, for unit noise Y.

    Both are [..., agents, receivers, dim]; Z is 0 without an edge.
    """
    weights = np.asarray(mixing)[..., None]
    members = (weights > 0).astype(float)
    sums = (weights * members * unit).sum(-2, keepdims=True)
    sizes = members.sum(-2, keepdims=True)
    shares = np.divide(members, sizes * weights, out=np.zeros_like(weights), where=weights > 0)
    return members * unit - shares * sums


def noise_covariance(mixing: np.ndarray, u: int) -> np.ndarray:
    """Return the covariance, [neighbours, neighbours], of the noise in an agent's messages.

    The sampled noise has the variance 1. ``mixing`` is the matrix of one graph.
    """
    members = np.flatnonzero(mixing[u])
    return _covariance_of(mixing[u, members], members != u)


def _covariance_of(weights: np.ndarray, are_others: np.ndarray) -> np.ndarray:
    projection = np.eye(len(weights)) - weights / (len(weights) * weights[:, None])
    neighbour_rows = projection[are_others]
    return neighbour_rows @ neighbour_rows.T


def hiding_energy(mixing) -> float:
    """Return the largest :math:`E_u` of any agent, the squared noise that hides a unit difference.

    ``mixing`` is the matrix of one graph. Agents with equal weights are computed once.
    """
    mixing = csr_array(mixing)
    require(bool((mixing.diagonal() > 0).all()), "network.weights", "w_ii = 0", "w_ii > 0")
    require(bool((mixing.data >= 0).all()), "network.weights", "a negative weight", "weights >= 0")
    energies = {}
    for u, (begin, end) in enumerate(pairwise(mixing.indptr)):
        weights, is_neighbour = mixing.data[begin:end], mixing.indices[begin:end] != u
        has_weight = weights > 0
        neighbour_weights = np.sort(weights[has_weight & is_neighbour])
        key = (weights[~is_neighbour].tobytes(), neighbour_weights.tobytes())
        if key not in energies:
            covariance = _covariance_of(weights[has_weight], is_neighbour[has_weight])
            ones_vector = np.ones(len(covariance))
            energy = ones_vector @ np.linalg.solve(covariance, ones_vector)
            energies[key] = float(energy) * (1 + 1e-9)  # covers rounding errors
    return max(energies.values())
