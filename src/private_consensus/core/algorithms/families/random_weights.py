"""Random weights of aggregates, and the privacy losses of single outputs (Xiao et al.).

This module is not an algorithm. An algorithm with random weights has a field ``weights``.
Weights are sampled uniformly on (0, 1) for every agent, coordinate and iteration
(``random``), or equal their mean 1/2 (``fixed``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from private_consensus.privacy import aggregation

from .spending import printed_change

WEIGHTS = ("random", "fixed")
ANALYSES = ("realised", "realised_all", "unamplified", "realised_share")
"""Privacy losses of the sampled messages, which depend on data and weights; they stay internal."""


class Draw(NamedTuple):
    """Unit draws of an iteration, [runs, agents, dim]; weights only if they are random."""

    noise: np.ndarray
    weights: np.ndarray | None = None


def draws(algorithm: Any, problem, streams) -> Iterator[Draw]:
    """Yield noise and weights, one item per iteration.

    Parameters
    ----------
    algorithm : RandomAggregates
        Algorithm with the fields ``noise`` and ``weights``.
    problem : Problem
        Objectives and data of the agents, with their sensitivities.
    streams : Streams
        Random streams of all runs.

    Yields
    ------
    Draw
        Unit draws of one iteration.
    """
    shape = (problem.n_agents, problem.dim)
    weights = streams.sequence("sampling", "uniform", shape, "weights")
    for noise in algorithm.noise.units(problem, streams):
        yield Draw(noise, next(weights) if algorithm.weights == "random" else None)


def amplify(algorithm: Any) -> bool:
    """Return True if Theorem 2.2 applies: Laplace noise and random weights."""
    return bool(algorithm.noise) and (algorithm.weights, algorithm.law) == ("random", "laplace")


class Losses(NamedTuple):
    """Accumulated losses of single messages, [settings, runs, agents].

    ``realised``: mean over coordinates, with the published constant. ``realised_all``: sum
    over coordinates, with the bound that holds for the problem's labels. ``worst_all``: worst
    case of ``realised_all``. ``unamplified``: fraction of this iteration's coordinates
    outside their interval, which have the loss without random weights.
    """

    realised: np.ndarray
    realised_all: np.ndarray
    worst_all: np.ndarray
    unamplified: np.ndarray


def no_losses(settings: int, problem, streams) -> Losses:
    """Return the losses before the first iteration.

    Parameters
    ----------
    settings : int
        Number of settings in the batch.
    problem : Problem
        Number of agents.
    streams : Streams
        Random streams of all runs.

    Returns
    -------
    Losses
        Zeros.
    """
    zero = np.zeros((settings, len(streams.runs), problem.n_agents))
    return Losses(zero, zero, zero, zero)


def losses_of(state: Any) -> Losses:
    """Return the losses that a state contains."""
    return Losses(*(getattr(state, name) for name in Losses._fields))


def add_losses(
    losses: Losses, problem, position, length, scale, step_size: Any, *, dim: int
) -> Losses:
    r"""Return the losses after one more output.

    Parameters
    ----------
    losses : Losses
        Losses before the output.
    problem : Problem
        Sensitivities: the published constant and the bound in linf.
    position, length : ndarray, shape (settings, runs, agents, dim)
        Output minus the lower end of its interval, and the interval's length.
    scale : float or ndarray
        :math:`1/\beta`.
    step_size : float or ndarray
        :math:`\alpha`, the factor of a change of the gradient.
    dim : int
        Number of coordinates of an output.

    Returns
    -------
    Losses
        Accumulated losses.
    """
    beta = 1.0 / np.asarray(scale)
    published = step_size * printed_change(problem)
    proven = step_size * problem.record_change("linf")
    realised, corrected = aggregation.realised_losses(position, length, beta, [published, proven])
    outside = (position <= 0) | (position >= length)
    worst = np.broadcast_to(beta * proven, (*realised.shape[:-1], 1))[..., 0] * dim
    return Losses(
        losses.realised + realised.mean(-1),
        losses.realised_all + corrected.sum(-1),
        losses.worst_all + worst,
        outside.mean(-1),
    )


def shown(state: Any) -> dict[str, np.ndarray]:
    """Return the mean losses over agents, each [settings, runs]."""
    means = {name: value.mean(-1) for name, value in losses_of(state)._asdict().items()}
    return means | {"realised_share": means["realised"] / state.total_loss.mean(-1)}
