r"""Privacy loss between two agents of a random walk, for one visit of each agent.

Agent u adds noise to a model that walks at random. If the walk reaches agent v for the first time
s visits later, v receives the model with the noise of s visits. For convex smooth losses, the loss
of u to v is then that of a Gaussian mechanism with :math:`\mu/\sqrt s`, where :math:`\mu` is the
loss to the eavesdropper.
"""

import numpy as np
from scipy.optimize import brentq

from private_consensus.privacy.conversions import gaussian_delta, zcdp_epsilon

LONGEST = 1000
"""Number of visits from which the loss is that of the number itself, an upper bound."""


def arrival_probabilities(mixing: np.ndarray, observer: int) -> np.ndarray:
    """Return the probability that the walk first reaches an observer after s = 1, 2, ... visits.

    The result, [LONGEST, agents], has one column per agent from which the walk with the transition
    matrix ``mixing`` starts; the last row has the remaining probability.
    """
    unabsorbed = np.where(np.arange(len(mixing)) == observer, 0.0, mixing)
    arrivals = [mixing[:, observer]]
    for _ in range(LONGEST - 2):
        arrivals.append(unabsorbed @ arrivals[-1])
    probabilities = np.array(arrivals)
    return np.vstack([probabilities, 1.0 - probabilities.sum(0)])


def walk_epsilon(mixing: np.ndarray, observer: int, mu: float, delta: float) -> np.ndarray:
    r"""Return epsilon of each agent to an observing agent, by f-DP (arXiv 2510.19934).

    The observer may know the walk: :math:`\delta(\epsilon) = \sum_s p_s \delta_{\mu/\sqrt s}
    (\epsilon)` with the probabilities of :func:`arrival_probabilities`. ``mu`` is the loss of one
    visit to the eavesdropper.
    """
    probabilities = arrival_probabilities(mixing, observer)
    losses = mu / np.sqrt(np.arange(1, LONGEST + 1))

    def excess(epsilon: float, agent: int) -> float:
        return float(probabilities[:, agent] @ gaussian_delta(losses, epsilon)) - delta

    return np.array([
        brentq(excess, 0.0, 1e3, args=(agent,)) if excess(0.0, agent) > 0 else 0.0
        for agent in range(len(mixing))
    ])  # fmt: skip


def walk_renyi_epsilon(mixing: np.ndarray, visits: int, mu: float, delta: float) -> np.ndarray:
    r"""Return epsilon between all pairs of agents by Rényi DP (arXiv 2402.07471, Theorem 3).

    One visit costs :math:`\rho_{uv} = \mu^2 (H_T/N + [-\log(I - W + J/N)]_{uv})` in zCDP, with the
    symmetric transition matrix W, ``mixing``, the loss ``mu`` of one visit to the eavesdropper, and
    the harmonic number :math:`H_T` of all ``visits`` of the walk.
    """
    agents = len(mixing)
    values, vectors = np.linalg.eigh(np.eye(agents) - mixing + 1.0 / agents)
    logarithm = -(vectors * np.log(values)) @ vectors.T
    harmonic = (1.0 / np.arange(1, visits + 1)).sum()
    return np.asarray(zcdp_epsilon(mu**2 * (harmonic / agents + logarithm), delta))
