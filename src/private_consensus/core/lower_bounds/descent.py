"""Attacks on gradient descent with noise on each message."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from . import Attack


def _projected_steps(algorithm, problem, network, horizon, releases):
    steps = [float(algorithm.step_size(problem, t)) for t in range(1, horizon + 1)]
    attained = problem.attained_step_share(np.array(steps))
    if not algorithm.noise:
        return releases
    if algorithm.stage_two == "repaired":
        return [replace(releases[0], attained=attained)]
    last = None if attained is None else float(attained[-1])
    return [releases[0], replace(releases[1], attained=last)]


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
    return [replace(releases[0], reached=1.0)]


def _one_shot(algorithm, problem, network, horizon, releases):
    if not algorithm.noise or releases[0].profile is not None:
        return releases
    if algorithm.perturbed == "output":
        attained = problem.attained_minimiser_share("l2", algorithm.D)
    else:
        attained = problem.attained_gradient_share("l2")
    attained = None if attained is None else float(np.max(attained))
    return [replace(releases[0], attained=attained)]


ATTACKS = {
    "OneShotAveraging": Attack(
        "a changed label changes the minimiser or the gradient by the attained fraction", _one_shot
    ),
    "RandomAggregation": Attack(
        "outside of its interval, a random aggregate has the tails of the Laplace noise", _tails
    ),
    "GradientDescent": Attack(
        "records in opposite corners change each projected step by the attained fraction",
        _projected_steps,
    ),
    **{
        name: Attack(
            "at distant points, a changed record changes each gradient by the attained fraction",
            _gradient_steps,
        )
        for name in (
            "LocallyPrivateGradientDescent",
            "LocallyPrivateSubgradient",
            "PrivateDistributedOptimisation",
        )
    },
}
"""Attacks by class."""
