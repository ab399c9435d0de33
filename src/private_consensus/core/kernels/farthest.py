"""Farthest pair of members of each neighbourhood, for distance matrices that fit into the cache."""

from __future__ import annotations

import numpy as np

from private_consensus.common.errors import InvalidInput

from .compiling import AVAILABLE, compiled
from .entries import require_indices, require_layout

__all__ = ["AVAILABLE", "farthest_pairs"]


def farthest_pairs(x: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Compute ``x[a] - x[b]`` for the farthest pair (a, b) of each neighbourhood in l1 distance.

    The first pair is used if several have the largest distance.

    Parameters
    ----------
    x : ndarray, shape (..., [runs,] agents, dim)
        Points of the agents.
    members : ndarray of int, shape ([runs,] agents, members)
        Members of each agent's neighbourhood.

    Returns
    -------
    ndarray, shape of x
    """
    agents = x.shape[-2]
    require_layout("farthest_pairs", "members", members, (-1,) * (members.ndim - 2) + (agents, -1))
    require_indices("farthest_pairs", "members", members, agents)
    flat = np.ascontiguousarray(x, float).reshape(-1, *x.shape[-2:])
    out, distance = np.zeros(flat.shape), np.empty((x.shape[-2], x.shape[-2]))
    neighbourhoods = np.ascontiguousarray(members, np.int64).reshape(-1, *members.shape[-2:])
    if len(flat) % len(neighbourhoods):
        expected = f"as many runs as x has, {x.shape[:-2]}"
        raise InvalidInput("farthest_pairs.members", members.shape[:-2], expected)
    _farthest(flat, neighbourhoods, distance, np.empty(x.shape[-2]), out)
    return out.reshape(x.shape)


@compiled
def _farthest(x, members, distance, column, out):
    places, agents, dim = x.shape
    for p in range(places):
        distance[:] = 0.0
        for k in range(dim):
            for a in range(agents):
                column[a] = x[p, a, k]
            for a in range(agents):
                for b in range(agents):
                    distance[a, b] += abs(column[a] - column[b])
        own = members[p % len(members)]
        for i in range(agents):
            most, first, second = -1.0, i, i
            for u in range(own.shape[1]):
                for w in range(u + 1, own.shape[1]):
                    apart = distance[own[i, u], own[i, w]]
                    if apart > most:
                        most, first, second = apart, own[i, u], own[i, w]
            for k in range(dim):
                out[p, i, k] = x[p, first, k] - x[p, second, k]
