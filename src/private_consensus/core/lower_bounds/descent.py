"""Attacks on gradient descent with noise on each message."""

from dataclasses import replace

import numpy as np


def reached_gradient_fractions(problem, horizon: int, norm: str, first: float | None):
    """Return the fraction of the gradient's sensitivity that an attack at delta 0 attains.

    In iteration 1, the gradient is evaluated at a fixed point. In later iterations, every point has
    a positive density, so that the fraction is that at points far from the origin.

    Parameters
    ----------
    problem : Problem
        Objectives and data of the agents, with their sensitivities.
    horizon : int
        Number of iterations.
    norm : {"l1", "l2"}
        Norm of the sensitivity.
    first : float or None
        Additional factor in iteration 1; None, for 0, if it is unknown.

    Returns
    -------
    ndarray, shape (horizon,), or None
        None if the fraction of later iterations is unknown.
    """
    later = problem.reached_gradient_share(norm)
    if later is None:
        return None
    return np.where(np.arange(horizon) == 0, (first or 0.0) * later, later)


def _gradient_steps(algorithm, problem, network, horizon, releases):
    """Return the fraction of each gradient's change that a record attains at distant points."""
    (release,) = releases
    bounded = problem.offers("box") and np.isfinite(problem.box)
    if not algorithm.noisy or bounded:
        return releases
    attained, first = map(problem.attained_gradient_share, (release.norm, "l2"))
    reached = reached_gradient_fractions(problem, horizon, release.norm, first)
    # An attack on a mixture over random weights is known at delta 0 only.
    if getattr(algorithm, "weights", "fixed") == "random":
        attained = None
    return [replace(release, attained=attained, reached=reached)]


def _tails(algorithm, problem, network, horizon, releases):
    """Return the loss of Laplace noise, whose tails a random aggregate has outside its interval."""
    return [replace(releases[0], reached=1.0)]
