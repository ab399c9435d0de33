"""Attacks on gradient descent with noise on each message, and on linearised and local steps."""

from dataclasses import replace

import numpy as np
from scipy.special import log_ndtr

from private_consensus.privacy import Release
from private_consensus.privacy.mechanisms import dominating


def reached_gradient_fractions(problem, horizon: int, norm: str, first: float | None):
    """Return the fraction of the gradient's sensitivity that an attack at delta 0 attains.

    In iteration 1, the gradient is evaluated at a fixed point, and ``first`` is an additional
    factor; None, for 0, if it is unknown. In later iterations, every point has a positive density,
    so that the fraction is that at points far from the origin. The result is None if that fraction
    is unknown, else an array over iterations.
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


def _linearised_steps(algorithm, problem, network, horizon, releases):
    """Return the fraction of the change of a linearised step by opposite responses."""
    return [replace(releases[0], attained=problem.attained_gradient_share("l2"))]


def _log_survival_of_laplace(x: np.ndarray) -> np.ndarray:
    return np.where(x >= 0, -np.abs(x) - np.log(2.0), np.log1p(-0.5 * np.exp(-np.abs(x))))


LOG_SURVIVAL = {"gaussian": lambda x: log_ndtr(-x), "laplace": _log_survival_of_laplace}
"""Logarithm of the survival function P(X > x) of one coordinate of unit noise, by distribution."""


def _coordinate_steps(algorithm, problem, network, horizon, releases):
    r"""Return the privacy loss that a pair attains at delta 0 (Xiao et al., Appendix K).

    One record is a unit row along the first axis, all others are 0, and the label of this
    record differs. The step of the first coordinate then differs by :math:`s = w/\hat M` at
    every point. With positive probability, the first coordinate is sampled in all iterations.

    Without a box, the loss of Gaussian noise is unbounded: no finite epsilon holds at delta 0.
    With a box, the largest loss is finite. It occurs if, from the second iteration on, the
    first coordinate stays on the upper face R and the others stay inside. With m the smaller of
    the two steps from R, and S the survival function of the noise, each iteration has the loss
    :math:`\ln S(R - m - s) - \ln S(R - m)`.
    """
    (release,) = releases
    log_survival = LOG_SURVIVAL.get(algorithm.law)
    fraction = problem.attained_gradient_share("linf")
    if not algorithm.noise or log_survival is None or fraction is None:
        return releases
    if np.isinf(problem.box):
        return [replace(release, reached=fraction)]
    upper, lower = problem.upper_face_steps(1.0 / problem.smoothness)
    box, scales = problem.box, release.scale
    losses = log_survival((box - upper) / scales) - log_survival((box - lower) / scales)
    losses = np.where(np.arange(horizon) == 0, 0.0, losses)
    return [replace(release, attack=Release("pure", epsilon=losses, reached=1.0))]


def _measurements(algorithm, problem, network, horizon, releases):
    """Return the loss of one measurement, which changes one message by the stated sensitivity."""
    (release,) = releases
    if not algorithm.noise:
        return releases
    if algorithm.unit == "measurement":
        return [replace(release, reached=1.0)]
    mechanism = algorithm.mechanisms(problem, network, horizon)["message"]
    losses = np.array([np.ravel(mechanism.loss(t)) for t in range(1, horizon + 1)])
    largest = release.losses()
    agent_losses = dominating(losses)[1]
    reached = np.divide(agent_losses, largest, out=np.ones(horizon), where=largest > 0)
    return [replace(release, reached=np.minimum(reached, 1.0))]
