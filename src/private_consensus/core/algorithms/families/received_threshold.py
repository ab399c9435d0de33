"""Threshold on the values received from neighbours, for the PR-ADMM of Ding.

This module is not an algorithm. An agent uses the value of a neighbour while its distance to the
value of the agent, summed over iterations, is at most U. Afterwards, the value of the agent
replaces it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..base import column


class Received(NamedTuple):
    """Result of one exchange of values with a threshold.

    ``received_sum`` has the sums of the values that agents use, [settings, runs, agents, dim].
    ``distance`` has the accumulated distances, [settings, runs, agents, agents]. ``replaced`` is
    the fraction of received values that are replaced, [settings, runs].
    """

    received_sum: np.ndarray
    distance: np.ndarray
    replaced: np.ndarray


def received_within(
    network: Any, x: np.ndarray, distance: np.ndarray, limit: Any, *, forgets: bool
) -> Received:
    """Apply the threshold to the new values that agents receive from their neighbours.

    The threshold ``limit`` is U. If ``forgets``, the distance of a replaced value is not added, so
    that the next value may be used. The result has the sums of the used values, the accumulated
    distances, and the fraction of replaced values.
    """
    new_distance = np.linalg.norm(x[..., :, None, :] - x[..., None, :, :], axis=-1)
    total = distance + new_distance
    is_near = total <= column(limit)
    total = np.where(is_near, total, distance) if forgets else total
    used = network.neighbour_sum(np.ones((*x.shape[:-1], 1)), is_near)
    own_weight = network.degrees[..., None] - used
    replaced = 1.0 - used.sum((-1, -2)) / network.degrees.sum(-1)
    return Received(network.neighbour_sum(x, is_near) + own_weight * x, total, replaced)
