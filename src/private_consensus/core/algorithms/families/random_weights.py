"""Random weights of aggregates, and the privacy losses of sampled messages (Xiao et al.).

This module is not an algorithm. An algorithm with random weights has a field ``weights``. With
``random``, weights are sampled uniformly on (0, 1) for every agent, coordinate and iteration. With
``fixed``, they equal their mean 1/2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from private_consensus.privacy import aggregation

from ..noise import published_change

WEIGHTS = ("random", "fixed")
ANALYSES = ("realised", "realised_all", "unamplified", "realised_share")
"""Observables with the privacy losses of sampled messages, which no other agent receives."""
QUANTITIES = (*ANALYSES, "worst_all")
"""Observables with the privacy losses of a run with hidden random weights (Xiao et al. 2019)."""


class RandomWeightsDraw(NamedTuple):
    """Unit noise and weights of an iteration, [runs, agents, dim]; None for fixed weights."""

    noise: np.ndarray
    weights: np.ndarray | None = None


def draws(algorithm: Any, problem, streams) -> Iterator[RandomWeightsDraw]:
    """Yield unit noise and random weights, one item per iteration."""
    shape = (problem.n_agents, problem.dim)
    weights = streams.sequence("sampling", "uniform", shape, "weights")
    for noise in algorithm.noise.units(problem, streams):
        yield RandomWeightsDraw(noise, next(weights) if algorithm.weights == "random" else None)


def is_amplified(algorithm: Any) -> bool:
    """Return True if Theorem 2.2 applies: Laplace noise and random weights."""
    return bool(algorithm.noise) and (algorithm.weights, algorithm.law) == ("random", "laplace")


class Losses(NamedTuple):
    """Accumulated privacy losses of the sampled messages, [settings, runs, agents].

    ``realised`` is the mean over coordinates, with the published sensitivity. ``realised_all`` is
    the sum over coordinates, with the sensitivity of the problem. ``worst_all`` is the largest
    possible value of ``realised_all``. ``unamplified`` is the fraction of coordinates of the last
    message outside their interval, which random weights do not protect.
    """

    realised: np.ndarray
    realised_all: np.ndarray
    worst_all: np.ndarray
    unamplified: np.ndarray


def no_losses(settings: int, problem, streams) -> Losses:
    """Return the privacy losses before the first iteration."""
    zero = np.zeros((settings, len(streams.runs), problem.n_agents))
    return Losses(zero, zero, zero, zero)


def add_losses(state: Any, problem, position, length, scale, step_size: Any) -> Any:
    r"""Return a state with the privacy losses of one more message.

    Parameters
    ----------
    state : State
        State after the message, whose fields :class:`Losses` are those before the message.
    position, length : ndarray, shape (settings, runs, agents, dim)
        Message minus the lower end of its interval, and length of the interval.
    scale, step_size : float or ndarray
        Scale :math:`1/\beta` of the noise, and factor :math:`\alpha` of the gradient in a message.
    """
    beta = 1.0 / np.asarray(scale)
    published = step_size * published_change(problem)
    proven = step_size * problem.record_change("linf")
    realised, corrected = aggregation.realised_losses(position, length, beta, [published, proven])
    outside = (position <= 0) | (position >= length)
    worst = np.broadcast_to(beta * proven, (*realised.shape[:-1], 1))[..., 0] * problem.dim
    return state._replace(
        realised=state.realised + realised.mean(-1),
        realised_all=state.realised_all + corrected.sum(-1),
        worst_all=state.worst_all + worst,
        unamplified=outside.mean(-1),
    )


def loss_observables(state: Any) -> dict[str, np.ndarray]:
    """Return the observables with the mean privacy losses over agents, each [settings, runs]."""
    means = {name: getattr(state, name).mean(-1) for name in Losses._fields}
    return means | {"realised_share": means["realised"] / state.total_loss.mean(-1)}
