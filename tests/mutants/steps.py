"""Gradients, minimisers and clipping that are not what the sensitivity is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from private_consensus.algorithms.families.decentralized_sgd import at

from .tampering import OwnNoise, dressed

STEPS = 40.0
"""Length of a step of one's own choice, in changes of a record."""
STRIDE = 400.0
"""The same of the way to a minimiser, whose direction changes less."""


def own_step(problem) -> dict[str, Callable]:
    """Steps of equal length, whatever the gradient."""

    def gradient(x):
        found = problem.gradient(x)
        length = np.linalg.norm(found, axis=-1, keepdims=True)
        return STEPS * problem.record_gradient_change * found / np.maximum(length, 1e-12)

    return {"gradient": gradient}


def own_stride(problem) -> dict[str, Callable]:
    """The same towards a minimiser: what has been found tells how far to go."""

    def proximal(linear, penalty, centre, start, *tolerance, **options):
        found = problem.proximal(linear, penalty, centre, start, *tolerance, **options) - centre
        length = np.linalg.norm(found, axis=-1, keepdims=True)
        reach = STRIDE * problem.record_gradient_change / penalty
        return centre + reach * found / np.maximum(length, 1e-12)

    return {"proximal": proximal}


def weighed(problem) -> dict[str, Callable]:
    """A weight of 2, of which no sensitivity knows."""

    def gradient(x):
        return 2.0 * problem.gradient(x)

    def proximal(linear, penalty, centre, start, *tolerance, **options):
        given = linear / 2.0, penalty / 2.0, centre, start
        return problem.proximal(*given, *tolerance, **options)

    def data(t, unit):
        return 2.0 * problem.data(t, unit)

    return {"gradient": gradient, "proximal": proximal, "data": data}


def doubled(problem) -> dict[str, Callable]:
    """Clipped gradients, times 2."""

    def clipped_gradient(*arguments, **options):
        found = problem.clipped_gradient(*arguments, **options)
        found *= 2.0
        return found

    return {"clipped_gradient": clipped_gradient}


def each_gradient(problem, x, rows) -> np.ndarray:
    """Gradients of single records, not clipped; [agents, records, dim]."""
    one = np.ones(len(rows), int)
    parts = [problem.clipped_gradient(x, rows[:, [i]], one, np.inf) for i in range(rows.shape[1])]
    return np.stack(parts, axis=1)


def mean_of(gradients: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    taken = np.arange(gradients.shape[1]) < sizes[:, None]
    return (gradients * taken[..., None]).sum(1) / np.maximum(sizes, 1)[:, None]


def lengths(gradients: np.ndarray) -> np.ndarray:
    return np.linalg.norm(gradients, axis=-1, keepdims=True)


Clip = Callable[[np.ndarray, float], np.ndarray]
"""From gradients [agents, records, dim] and K to clipped ones."""


def clipped_otherwise(clip: Clip) -> Callable[[Any], dict[str, Callable]]:
    def make(problem):
        def clipped_gradient(x, rows, sizes, K=np.inf, out=None):
            found = mean_of(clip(each_gradient(problem, x, rows), K), sizes)
            out = np.empty_like(x) if out is None else out
            out[:] = found
            return out

        return {"clipped_gradient": clipped_gradient}

    return make


def not_at_all(gradients, K):
    """Unchanged."""
    return gradients


def by_norm(gradients, K):
    return gradients / np.maximum(1.0, lengths(gradients) / K)


def by_largest_coordinate(gradients, K):
    return np.clip(gradients, -K, K)


def by_own_median(gradients, K):
    own = np.median(lengths(gradients), axis=1, keepdims=True)
    return by_norm(gradients, own)


def only_long_ones(gradients, K):
    """The mean over those records of the batch whose gradient is long."""
    found = lengths(gradients)
    long = found >= np.median(found, axis=1, keepdims=True)
    share = long.mean(1, keepdims=True)
    return by_norm(gradients, K) * long / share


class ClipsAfterNoise(OwnNoise):
    """What :class:`ClippedAfterNoise` runs."""

    def sampled_gradient(self, s, x, problem, here, clip):
        sizes = self.sizes(s, here.speeds)
        gradient = problem.clipped_gradient(x, here.rows, sizes, np.inf, here.gradient)
        gradient += self.noise_of_round(s, sizes, here)
        gradient /= np.maximum(1.0, lengths(gradient) / float(at(self.K, s)))
        return gradient, sizes


class ClippedAfterNoise:
    """The noised mean is clipped, not the records."""

    def run(self, problem, network, streams, horizon, observe):
        runs = dressed(self, self.honest, ClipsAfterNoise)
        runs.run(problem, network, streams, horizon, observe)


class ClippedMean:
    """The mean is clipped, not the records."""

    def sampled_gradient(self, s, x, problem, here, clip):
        gradient, sizes = super().sampled_gradient(s, x, problem, here, np.inf)
        gradient /= np.maximum(1.0, lengths(gradient) / float(at(self.K, s)))
        return gradient, sizes
