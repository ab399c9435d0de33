r"""ADMM as a linear system for objectives :math:`\frac{q}2\|x\|^2 - b_i^Tx` with public q.

With :math:`a^-` the dual before its update by the last messages, and :math:`L` the Laplacian,

.. math::
    a &= a^- + \zeta L x, \qquad
    x' = \frac{b - a + D c}{q + D + \Phi} + \sigma n, \qquad c = C x

so that input and noise enter the state :math:`(x, a^-)` in a single block. The outer loop of D-ZOA
has this form with :math:`D_i = 2\rho|N_i|`, where the agent is one of its own neighbours. A
first-order step is :math:`x' = c - (qx - b + a)/D + \sigma n`. Noise of the dual is equivalent to
noise of x divided by :math:`q+D+\Phi`, and noise of the centre to D times that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from private_consensus.core.algorithms.families.consensus_admm import (
    ConsensusADMM,
    neighbourhood_sizes,
)
from private_consensus.core.networks import Network, laplacian
from private_consensus.privacy.mechanisms import ObjectivePerturbation
from private_consensus.privacy.observers import LinearSystem
from private_consensus.privacy.observers.systems import Broadcast


class _Update(NamedTuple):
    """Coefficients of x': matrix of x [N, N], and vectors [N] of dual, input and noise."""

    primal: np.ndarray
    dual: np.ndarray
    gain: np.ndarray
    noise: np.ndarray


def not_linear(algorithm: Any) -> str:
    """Return the reason why a version of ADMM is not linear on quadratic objectives.

    The reason is empty if it is linear.
    """
    if getattr(algorithm, "weights", "fixed") == "random":
        return "the weights of aggregates are random"
    if getattr(algorithm, "threshold", "none") != "none":
        return "values of neighbours that are far apart are replaced"
    if getattr(algorithm, "exchange", "plain") != "plain":
        return "values are shared in secret; the plain exchange has an observer of sums"
    return ""


def projects(algorithm: Any) -> bool:
    """Return True if an iterate is projected to the domain, which is not linear."""
    return getattr(algorithm, "minimisation", "exact") == "exact"


def quadratic_system(algorithm: Any, problem: Any, network: Network, horizon: int) -> LinearSystem:
    """Build rounds 1 to T of a calibrated version of ADMM on one graph; the private input is b.

    Parameters
    ----------
    algorithm : Algorithm
        Calibrated version of ADMM.
    problem : MeanEstimation
        Objectives, whose public curvature q is the number of records.
    network : Network
        Graph of the run.
    horizon : int
        Number of rounds T.

    Returns
    -------
    LinearSystem
    """
    n, curvature = network.n_agents, problem.records
    zeta, graph_laplacian = _dual_step(algorithm), laplacian(network.adjacency)
    sent, none = Broadcast(network.adjacency.astype(float)), np.zeros((n, n))
    mechanism = None
    if not isinstance(algorithm, ConsensusADMM):
        (mechanism,) = algorithm.mechanisms(problem, network, horizon).values()
    rounds = []
    for t in range(1, horizon + 1):
        update = _update(algorithm, mechanism, curvature, network, t)
        from_dual = np.diag(update.dual)
        moved = np.hstack([update.primal + from_dual @ (zeta * graph_laplacian), from_dual])
        transition = np.vstack([moved, np.hstack([zeta * graph_laplacian, np.eye(n)])])
        inputs = np.vstack([np.diag(update.gain), none])
        noise = np.vstack([np.diag(update.noise), none])
        rounds.append(sent.round(transition, inputs, noise))
    return LinearSystem(rounds, n, np.hstack([np.eye(n), none]), noised_state=True)


def _dual_step(algorithm: Any) -> float:
    if isinstance(algorithm, ConsensusADMM):
        return float(algorithm.rho)
    return float(algorithm.dual_step)


def _update(algorithm: Any, mechanism: Any, q: float, network: Network, t: int) -> _Update:
    if isinstance(algorithm, ConsensusADMM):
        sizes = neighbourhood_sizes(network)
        centre = (np.eye(len(sizes)) * (sizes + 1)[:, None] + network.adjacency) / 2
        weight = 2.0 * algorithm.rho * sizes
        return _minimised(q, weight, weight, centre / sizes[:, None], algorithm.noise.scale / sizes)
    n = network.n_agents
    penalty = np.broadcast_to(algorithm.penalty(network, t), (1, 1, n, 1)).ravel()
    scale = np.broadcast_to(mechanism.unit_scale(t), (1, 1, n, 1)).ravel()
    mean = (np.eye(n) + network.adjacency / network.degrees[:, None]) / 2
    if not projects(algorithm):
        state_weights = mean - np.diag(q / penalty)
        return _Update(state_weights, -1 / penalty, 1 / penalty, scale)
    total = penalty + getattr(algorithm, "Phi", 0.0)
    in_objective = isinstance(mechanism, ObjectivePerturbation)
    return _minimised(q, penalty, total, mean, scale / (q + total) if in_objective else scale)


def _minimised(
    q: float, penalty: np.ndarray, total: np.ndarray, centre: np.ndarray, noise: np.ndarray
) -> _Update:
    gain = 1 / (q + total)
    return _Update((gain * penalty)[:, None] * centre, -gain, gain, noise)
