"""DECOR: pairwise noise that cancels between neighbours (Allouah et al., ICML 2024)."""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from annotated_types import Ge, Le

from private_consensus.privacy.mechanisms import Correlated

from .base import column, origin
from .families.clipped_descent import ClippedDescent


class DECORState(NamedTuple):
    """Messages, and the models of the last mixing, each [settings, runs, agents, dim]."""

    x: np.ndarray
    z: np.ndarray


@dataclass(frozen=True, kw_only=True)
class DECOR(ClippedDescent):
    r"""DECOR: decentralized SGD with pairwise correlated noise.

    The two agents of an edge share a secret seed, from which both sample the same pair noise:

    .. math::
        y_i = z_i - \eta\Bigl(\mathrm{clip}_C(\nabla f_i(z_i)) + v_i + \sum_{j\sim i} v_{ij}\Bigr),
        \qquad z = W y, \qquad v_i \sim N(0, s_{ind}^2 I), \quad
        v_{ij} = -v_{ji} \sim N(0, s_{pair}^2 I)

    The mean over agents has the noise variance :math:`s_{ind}^2/N`. To the eavesdropper, who knows
    no seed, a round is one Gaussian mechanism with the covariance
    :math:`\Sigma = s_{ind}^2 I + s_{pair}^2 L`, L the Laplacian of the graph:

    .. math:: \mu_u^2 = T\Delta^2 [\Sigma^{-1}]_{uu}

    With increasing pair noise, this approaches :math:`T\Delta^2/(N s_{ind}^2)`, the loss of noise
    added by a server. An agent or a coalition that knows seeds has a larger privacy loss. Against a
    coalition of all neighbours of u, only the noise :math:`s_{ind}` remains.

    The parameter ``noise`` is :math:`s_{ind}`, in the unit of the gradient.

    Parameters
    ----------
    ratio : float, optional
        Ratio :math:`s_{pair}/s_{ind}`. The default is :math:`\sqrt{(N-2)/a}` with the algebraic
        connectivity a, for which :math:`\mu^2` is at most twice that of noise added by a server.
    """

    ratio: Annotated[float, Ge(0), Le(1e6)] | None = None

    quantities = ("released", "mixed")
    observer = "an outsider, who receives every message and knows no pair noise"
    source = "Allouah et al., ICML 2024, arXiv 2405.01031, Algorithm 1"

    def pair_ratio(self, network) -> Any:
        """Return :math:`s_{pair}/s_{ind}`, broadcastable to [settings, runs, agents, edges]."""
        if self.ratio is not None:
            return column(self.ratio)
        # On poorly connected graphs, larger pair noises hide an agent among the others.
        connectivity = network.algebraic_connectivity
        return np.reshape(np.sqrt(max(network.n_agents - 2, 0) / connectivity), (-1, 1, 1))

    def mechanisms(self, problem, network, horizon):
        # Both ends of an edge use the same noise, so that the noise of agents is correlated.
        root = pairwise_root(network.adjacency, self.pair_ratio(network))
        change = column(self.eta) * self.change(problem)
        shape = (root.shape[-1], "dim")
        return {"step": Correlated(change, self.message_scale, root=root, shape=shape)}

    def start(self, problem, network, release):
        return DECORState(*2 * (origin(problem, release),))

    def step(self, state, problem, network, release, t):
        # Mixing comes first: messages are those after the step, which have the noise.
        z = network.mix(state.x)
        return DECORState(release("step", self.descent(problem, z)), z)

    def observables(self, state, problem, t):
        return {"released": state.x, "mixed": state.z}


ALGORITHM = DECOR


def pairwise_root(adjacency: np.ndarray, ratio: Any) -> np.ndarray:
    r"""Return R with :math:`RR^\top = I + r^2 L`: unit noise per agent and per pair of agents.

    The adjacency is ([runs,] agents, agents), and ``ratio`` that of pair noise to individual noise,
    r. R has one column per agent and per pair, which is 0 without an edge. The first agent of a
    pair adds the noise of the pair, and the second subtracts it.
    """
    agents = adjacency.shape[-1]
    first, second = np.triu_indices(agents, 1)
    signs = np.eye(agents)[:, first] - np.eye(agents)[:, second]
    pairs = ratio * signs * adjacency[..., None, first, second]
    identity = np.broadcast_to(np.eye(agents), (*pairs.shape[:-1], agents))
    return np.concatenate([identity, pairs], axis=-1)
