"""Threshold on the values received from neighbours, for the PR-ADMM of Ding.

This module is not an algorithm. An agent uses the value of a neighbour while its distance to the
value of the agent, summed over iterations, is at most U. Afterwards, the value of the agent
replaces it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...networks import SparseNetwork
from ..base import column


class Received(NamedTuple):
    """Result of one exchange of values with a threshold.

    ``received_sum`` has the sums of the values that agents use, [settings, runs, agents, dim].
    ``distance`` has the accumulated distances, [settings, runs, agents, agents] or, on a sparse
    network, [settings, [runs,] edges]. ``replaced`` is the fraction of received values that are
    replaced, [settings, runs].
    """

    received_sum: np.ndarray
    distance: np.ndarray
    replaced: np.ndarray


def no_distance(network: Any, x: np.ndarray) -> np.ndarray:
    """Return accumulated distances of 0, of all pairs of agents or per edge if sparse."""
    if isinstance(network, SparseNetwork):
        return np.zeros(network.own_ends(x).shape[:-1])
    return np.zeros((*x.shape[:-1], x.shape[-2]))


def received_within(
    network: Any, x: np.ndarray, distance: np.ndarray, limit: Any, *, forgets: bool
) -> Received:
    """Apply the threshold to the new values that agents receive from their neighbours.

    The threshold ``limit`` is U. If ``forgets``, the distance of a replaced value is not added, so
    that the next value may be used. The result has the sums of the used values, the accumulated
    distances, and the fraction of replaced values.
    """
    if isinstance(network, SparseNetwork):
        return _over_links(network, x, distance, limit, forgets)
    new_distance = np.linalg.norm(x[..., :, None, :] - x[..., None, :, :], axis=-1)
    near, total = _near(distance, new_distance, column(limit), forgets)
    accepted = near & _are_neighbours(network)
    used = accepted.astype(float)
    own_weight = network.degrees[..., None] - used.sum(-1, keepdims=True)
    replaced = 1.0 - accepted.sum((-1, -2)) / network.degrees.sum(-1)
    return Received(used @ x + own_weight * x, total, replaced)


def _are_neighbours(network: Any) -> np.ndarray:
    """Return True for each pair of neighbours, [agents, agents] or [runs, agents, agents]."""
    neighbours = network.open_neighbourhoods
    pairs = np.zeros((*neighbours.shape[:-1], network.n_agents), bool)
    np.put_along_axis(pairs, neighbours, True, axis=-1)
    return pairs


def _over_links(network: SparseNetwork, x, distance, limit, forgets: bool) -> Received:
    """Apply the threshold on a sparse network, edge by edge."""
    own_values, neighbour_values = network.own_ends(x), network.other_ends(x)
    limit = np.reshape(limit, (-1, *(1,) * (distance.ndim - 1)))
    near, total = _near(
        distance, np.linalg.norm(own_values - neighbour_values, axis=-1), limit, forgets
    )
    used = network.sum_at_links(near[..., None].astype(float))
    received = network.sum_at_links(np.where(near[..., None], neighbour_values, 0.0))
    received += (network.degrees[..., None] - used) * x
    return Received(received, total, 1.0 - used.sum((-1, -2)) / network.degrees.sum(-1))


def _near(distance, new_distance, limit, forgets: bool) -> tuple[np.ndarray, np.ndarray]:
    total = distance + new_distance
    near = total <= limit
    return near, np.where(near, total, distance) if forgets else total
