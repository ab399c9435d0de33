"""ZIP-DL: noise that cancels at its sender (Biswas et al., PoPETs 2025(3))."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from private_consensus.privacy.mechanisms import CancellingLinks

from .base import INTERNAL, column, origin, per_iteration
from .families.clipped_descent import ClippedDescent


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

    .. math::
        x_a &\leftarrow x_a - \eta\,\mathrm{clip}_C(\nabla f_a(x_a)), \qquad
            Y_{a\to v} \sim N(0, \eta^2\sigma^2 I) \text{ for v in the closed neighbourhood}, \\
        Z_{a\to v} &= Y_{a\to v} - \frac1{d_a w_{av}}\sum_j w_{aj} Y_{a\to j}, \qquad
            \sum_v w_{av} Z_{a\to v} = 0, \\
        x_v &\leftarrow \sum_a w_{va}(x_a + Z_{a\to v})

    where :math:`d_a` is the size of the closed neighbourhood (arXiv 2403.11795). The weighted sum
    of all models contains no noise. The guarantee of the paper is for a single neighbour, from
    marginal losses; it states nothing for an eavesdropper. For the eavesdropper and any loss
    function, the following bound holds. Noise with :math:`Z_{u\to v} = -D` for other agents and
    :math:`D(1-w_{uu})/w_{uu}` for itself hides a difference D of the state of agent u. After the
    round, the state of u still has the difference D. Differences of successive rounds are therefore
    added, and the privacy loss of round t is

    .. math:: \mu_t^2 = \frac{(t\,\Delta)^2}{\sigma^2}\,E_u, \qquad
        E_u = \min\{|y|^2 : (P_u y)_v = -1,\ v \ne u\}

    with :math:`Z_u = P_u Y_u`, and :math:`E_u = d(d+1)` for equal weights and d neighbours. The
    total :math:`\mu^2` grows with the cube of the number of rounds. It is infinite if the change of
    gradients is unbounded.

    The parameter ``noise`` is :math:`\sigma`, in the unit of the gradient.
    """

    quantities = (INTERNAL, "released", "links")
    needs = ("smoothness",)
    source = "Biswas et al., PoPETs 2025(3), Algorithm 1"

    def change(self, problem):
        r"""Return the largest increase of the difference of two states by a step, over eta.

        The states are those of one agent on neighbouring data sets. With clipping, the increase is
        at most 2C. Without clipping, if a gradient step expands no distance (:math:`\eta L \le 2`),
        the increase is at most the change of the gradient by a record at a fixed point. It is
        unbounded if the smoothness holds for the present records only, or not for all terms, and
        for objectives that may be non-convex.
        """
        if self.clip is not None:
            return 2.0 * column(self.clip)
        convexity = problem.least_convexity
        if "smoothness" in problem.from_data or convexity is None or convexity < 0:
            return float("inf")
        expansion = np.max(np.asarray(problem.smoothness) * np.asarray(self.eta))
        return float(problem.record_change("l2")) if expansion <= 2.0 else float("inf")

    def mechanisms(self, problem, network, horizon):
        network.require_neighbours()
        mixing = network.mixing
        step = column(self.eta) * self.change(problem)
        # The state keeps its difference, to which each round adds.
        changes = per_iteration(lambda t: t * step, horizon)
        note = "differences of states accumulate over rounds"
        return {
            "links": CancellingLinks(
                changes, self.message_scale, mixing=mixing, note=note,
                shape=("agents", "agents", "dim"),
            )
        }  # fmt: skip

    def start(self, problem, network, release):
        zero = origin(problem, release)
        links = np.zeros((*zero.shape[:3], problem.n_agents, problem.dim))
        return ZipDLState(zero, links, zero)

    def step(self, state, problem, network, release, t):
        messages = release("links", self.descent(problem, state.x))
        # The noisy value that an agent sends to itself stays hidden, but enters its next model.
        to_itself = np.eye(problem.n_agents, dtype=bool)[..., None]
        sent = np.where(to_itself, 0.0, messages)
        retained = np.where(to_itself, messages, 0.0).sum(-2)
        weight = network.own_weights[..., None]
        # The weights of the messages to others add to 1 - w_aa.
        mean = network.sum_links(sent) / (1.0 - weight)
        return ZipDLState(network.mix_links(sent) + weight * retained, sent, mean)

    def observables(self, state, problem, t):
        return {"released": state.mean, "internal": state.x, "links": state.sent}


ALGORITHM = ZipDL
