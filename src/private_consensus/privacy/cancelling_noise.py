"""Noise on the messages of an agent to its neighbours that cancels in its own mixing step."""

import numpy as np

from private_consensus.common.errors import require


def hiding_energy(mixing) -> float:
    r"""Return the largest :math:`E_u` of any agent, the squared noise that hides a unit difference.

    Parameters
    ----------
    mixing : ndarray, shape (agents, agents)
        Mixing matrix of one graph. Agents with equal weights are computed once.
    """
    require(bool((np.diagonal(mixing) > 0).all()), "network.weights", "w_ii = 0", "w_ii > 0")
    require(bool((mixing >= 0).all()), "network.weights", "a negative weight", "weights >= 0")
    energies = {}
    for u, row in enumerate(mixing):
        members = np.flatnonzero(row)
        weights, is_neighbour = row[members], members != u
        has_weight = weights > 0
        neighbour_weights = np.sort(weights[has_weight & is_neighbour])
        key = (weights[~is_neighbour].tobytes(), neighbour_weights.tobytes())
        if key not in energies:
            covariance = noise_covariance(weights[has_weight], is_neighbour[has_weight])
            ones_vector = np.ones(len(covariance))
            energy = ones_vector @ np.linalg.solve(covariance, ones_vector)
            energies[key] = float(energy) * (1 + 1e-9)  # covers rounding errors
    return max(energies.values())


def noise_covariance(weights: np.ndarray, are_others: np.ndarray) -> np.ndarray:
    """Return the covariance of unit noise in the messages of an agent to its neighbours.

    ``weights`` are the mixing weights of the agent and of its neighbours, for whom ``are_others``
    is True.
    """
    projection = np.eye(len(weights)) - weights / (len(weights) * weights[:, None])
    neighbour_rows = projection[are_others]
    return neighbour_rows @ neighbour_rows.T
