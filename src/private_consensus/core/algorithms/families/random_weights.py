"""Random weights of aggregates, and the privacy losses of sampled messages (Xiao et al.).

This module is not an algorithm. An algorithm with random weights has a field ``weights``. With
``random``, weights are sampled uniformly on (0, 1) for every agent, coordinate and iteration. With
``fixed``, they equal their mean 1/2.
"""

from typing import Any, NamedTuple

import numpy as np

from private_consensus.privacy import aggregation

from ..base import Internal

QUANTITIES = (
    *map(Internal, ("realised", "realised_all", "unamplified", "realised_share")), "worst_all",
)  # fmt: skip
"""Observables with the privacy losses of a run with hidden random weights (Xiao et al. 2019)."""


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


def add_losses(state: Any, problem, position, length, scale, step_size: Any) -> Any:
    r"""Return a state with the privacy losses of one more message.

    Parameters
    ----------
    state : State
        State after the message, whose fields :class:`Losses` are those before the message.
    problem
    position, length : ndarray, shape (settings, runs, agents, dim)
        Message minus the lower end of its interval, and length of the interval.
    scale : float or ndarray
        Scale :math:`1/\beta` of the noise.
    step_size : float or ndarray
        Factor :math:`\alpha` of the gradient in a message.
    """
    beta = 1.0 / np.asarray(scale)
    published = step_size * problem.published_change
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


def loss_observables(losses: Any, total_loss: np.ndarray) -> dict[str, np.ndarray]:
    """Return the observables with the mean privacy losses over agents, each [settings, runs]."""
    means = {name: getattr(losses, name).mean(-1) for name in Losses._fields}
    return means | {"realised_share": means["realised"] / total_loss.mean(-1)}
