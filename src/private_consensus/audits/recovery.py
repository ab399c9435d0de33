r"""The noise that an agent really added, from all messages and from its own data.

Where noise is added to what is sent, it is the difference to the iterate before. Where it enters a
minimisation, of :math:`f_i(x) + (a_i + b_i)^Tx + \frac{D_i}2\|x - c_i\|_2^2 + \frac{h}2\|x\|_2^2`,
the condition of the minimum gives it back:

.. math:: b_i = -\nabla f_i(\hat x_i) - a_i - D_i(\hat x_i - c_i) - h\hat x_i

with :math:`a_i` and :math:`c_i` sums of what was sent before. Nothing of the algorithm's own noise
is asked for, so that a copy that forgets, halves or reuses it cannot hide behind its parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..algorithms.admm import ADMM
from ..algorithms.coordinate_descent import CoordinateDescent
from ..algorithms.d_zoa import ConsensusADMM, neighbourhood_sizes
from ..algorithms.decentralized_sgd import DecentralizedSGD
from ..algorithms.dp_admm import DPADMM
from ..algorithms.ipp_admm import ImprovedPlausiblyPrivateADMM
from ..algorithms.noise import Perturbed
from ..algorithms.pp_admm import PlausiblyPrivateADMM
from ..algorithms.r_admm import RecycledADMM
from ..algorithms.sdm_dsgd import SDMDSGD
from .rounds import units_in_rounds


def in_units_of_the_claim(
    algorithm: Any, problem: Any, network: Any, horizon: int, sent: np.ndarray, bare: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    """Where noise was added, and the noise over the scale that is claimed for it.

    Parameters
    ----------
    sent, bare : ndarray, shape (runs, iterations, agents, dim)
        Messages, and the iterates before what was added to them.

    Yields
    ------
    str, ndarray of shape (runs, iterations, agents, dim)
    """
    inside = isinstance(algorithm, ADMM) and algorithm.where != "output"
    if not inside or isinstance(algorithm, PlausiblyPrivateADMM):
        if isinstance(algorithm, DecentralizedSGD):
            unit = units_in_rounds(algorithm, horizon, sent, bare)
        else:
            unit = (sent - bare) / output_scales(algorithm, problem, network, horizon)
        yield "message", _of_noised(algorithm, unit, sent, bare)
    if inside:
        yield "minimisation", _from_minima(algorithm, problem, network, sent, bare)


def coefficient_units(algorithm, problem, quadratic, linear, covariance) -> np.ndarray:
    """Noise of a functional mechanism's coefficients over the scale claimed, [runs, 1, 1, number].

    The diagonal of M, b and, where it is a block of its own, g: what has one draw each.
    """
    made, scales = problem.coefficients, algorithm.scales(problem)

    def diagonal(matrix):
        return np.diagonal(matrix, axis1=-2, axis2=-1)

    parts = [
        (diagonal(quadratic) - diagonal(made.quadratic)) / diagonal(scales.quadratic),
        (linear - made.linear) / scales.linear,
    ]
    if algorithm.fair == "penal":
        parts.append((covariance - algorithm.alpha * made.covariance) / scales.fairness)
    return np.concatenate(parts, axis=-1)[0][:, None, None]


def output_scales(algorithm, problem, network, horizon: int) -> np.ndarray:
    """Scale claimed for the noise of each message, broadcastable to [iterations, agents, dim]."""
    times = range(1, horizon + 1)
    if isinstance(algorithm, PlausiblyPrivateADMM):
        curvatures = [algorithm.ridge + _penalty(algorithm, network, t) for t in times]
        return algorithm.fuzz / np.stack(curvatures)
    if isinstance(algorithm, Perturbed):
        return np.array([float(algorithm.scale(t)) for t in times])[:, None, None]
    if isinstance(algorithm, DPADMM):
        weights = [algorithm.rho + np.sqrt(t) / algorithm.eta_0 for t in times]
        return algorithm.noise / np.array(weights)[:, None, None]
    if isinstance(algorithm, ConsensusADMM):
        return algorithm.noise / neighbourhood_sizes(network)[..., None]
    if hasattr(algorithm, "noise_scale"):
        return np.array([float(algorithm.noise_scale(problem, t)) for t in times])[:, None, None]
    scales = [np.ravel(release.scale) for release in algorithm.releases(problem, network, horizon)]
    return np.broadcast_to(np.concatenate(scales), horizon)[:, None, None]


def _of_noised(algorithm, unit: np.ndarray, sent: np.ndarray, bare: np.ndarray) -> np.ndarray:
    """Where not all that is sent is noised each time, what was."""
    before = np.concatenate([np.zeros_like(sent[:, :1]), sent[:, :-1]], axis=1)
    if isinstance(algorithm, ImprovedPlausiblyPrivateADMM):
        new = (sent != before).any(-1)
        return unit.swapaxes(1, 2)[new.swapaxes(1, 2)][:, None, None]
    if isinstance(algorithm, CoordinateDescent | SDMDSGD):
        moved = (sent != bare) | (bare != before)
        return unit.swapaxes(1, 2)[moved.swapaxes(1, 2)][:, None, None, None]
    return unit


def _from_minima(algorithm, problem, network, sent, found) -> np.ndarray:
    before, dual = np.zeros_like(sent[:, 0]), np.zeros_like(sent[:, 0])
    degrees = network.degrees[..., None]
    units = []
    for k in range(sent.shape[1]):
        centre = (before + network.neighbour_sum(before) / degrees) / 2
        x = found[:, k]
        units.append(noise_in_minimum(algorithm, problem, network, x, dual, centre, k + 1))
        before = sent[:, k]
        dual = dual + algorithm.dual_step * (degrees * before - network.neighbour_sum(before))
    noised = algorithm.charged(sent.shape[1]) - 1 if isinstance(algorithm, RecycledADMM) else ...
    return np.stack(units, axis=1)[:, noised]


def noise_in_minimum(algorithm, problem, network, x, dual, centre, t: int) -> np.ndarray:
    """The noise with which ``x`` [runs, agents, dim] is the minimum of iteration t, over its
    scale."""
    penalty = _penalty(algorithm, network, t)
    slope = problem.gradient(x) + dual + penalty * (x - centre)
    slope = slope + _added_curvature(algorithm, problem) * x
    return -slope / _inner_scale(algorithm, penalty, t)


def _penalty(algorithm, network, t: int) -> np.ndarray:
    """[agents, 1]."""
    penalty = algorithm.penalty(network, t)
    return penalty.reshape(penalty.shape[-2:])


def _inner_scale(algorithm, penalty, t: int):
    if isinstance(algorithm, PlausiblyPrivateADMM):
        return algorithm.scale(t)
    return algorithm.linear_scale(penalty, algorithm.scale(t))


def _added_curvature(algorithm, problem) -> float:
    if isinstance(algorithm, PlausiblyPrivateADMM):
        return max(algorithm.ridge - problem.strong_convexity, 0.0)
    return algorithm.Phi
