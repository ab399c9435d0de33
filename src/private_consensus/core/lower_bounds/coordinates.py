"""Attack on private coordinate descent (Xiao et al., Appendix K)."""

from dataclasses import replace

import numpy as np
from scipy.special import log_ndtr

from private_consensus.privacy import Release


def _log_survival_of_laplace(x: np.ndarray) -> np.ndarray:
    """Return the logarithm of the survival function of Laplace noise of scale 1."""
    return np.where(x >= 0, -np.abs(x) - np.log(2.0), np.log1p(-0.5 * np.exp(-np.abs(x))))


LOG_SURVIVAL = {"gaussian": lambda x: log_ndtr(-x), "laplace": _log_survival_of_laplace}
"""Logarithm of the survival function P(X > x) of one coordinate of unit noise, by distribution."""


def _coordinate_steps(algorithm, problem, network, horizon, releases):
    r"""Return the privacy loss that a pair of neighbouring data sets attains at delta 0.

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
