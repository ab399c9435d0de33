r"""Showkatbakhsh et al.: unnumbered statements on the predecessor, records, steps and projection.

The predecessor [5] is PDOP (Huang, Mitra, Vaidya 2015), with steps :math:`c\,q^t`. The problem is
the paper's estimation of a mean, without projection. There are 10 agents, 5 dimensions and records
in :math:`[-5, 5]^5`. The error of the mean estimate is then an exact sum.
"""

from __future__ import annotations

import math

import numpy as np

from private_consensus.core.algorithms.families.descent_theorems import (
    theorem_1_allowance,
    theorem_2_bound,
)

from .base import Parts, bound, equal, falls_as
from .common import ring_mixing

AGENTS, DIM, BOX, RECORDS = 10, 5, 5.0, 100
START = DIM * (0.7 * BOX) ** 2
"""Squared distance of the start 0 to the mean of the records."""


def error_of_algorithm_1(
    epsilon: float, delta: float, horizon: int, records: int = RECORDS
) -> float:
    r"""Return the mean square error of the released mean estimate of Algorithm 1.

    It is the mean of the squared l2 distance to the mean of all records, after T steps. The noise
    has the scales of Theorem 2, for the budget of all messages of an agent, and the sensitivity
    :math:`2R\sqrt p\,\eta_t`.
    """
    t = np.arange(1.0, horizon + 1)
    change = 2 * BOX * math.sqrt(DIM) / records
    variance = 2 * change**2 / theorem_1_allowance(epsilon, delta) * math.sqrt(horizon) * t**-1.5
    weights = (t / horizon) ** 2
    return DIM / AGENTS * float((weights * variance).sum())


def _left_without_noise(step_sizes: np.ndarray) -> np.ndarray:
    """Return the squared fraction of the initial error that remains after each step."""
    return np.cumprod(1 - step_sizes) ** 2


def sentence_4() -> Parts:
    """Compare Algorithm 1 and PDOP without noise, and Algorithm 1 at epsilon from 0.1 to 100.

    Without noise: one agent with L = 20 mu, along the direction of curvature mu. Steps q^t/L sum to
    a finite number, so that the predecessor stops short of the optimum; steps 1/t do not. With
    noise: the paper's mean, T = 1,000, delta = 0.001, exact sums.
    """
    quotient, horizons = 20.0, np.array([2000, 4000])
    predecessors = [
        _left_without_noise(decay ** np.arange(4001) / quotient)[horizons]
        for decay in (0.5, 0.9, 0.99)
    ]
    run_lengths = np.unique(np.geomspace(100, 1e5, 13).astype(int))
    steps_1 = (1 + quotient) / (2 * quotient) / np.arange(1, run_lengths[-1] + 1)
    algorithm_1 = _left_without_noise(steps_1)[run_lengths - 1]
    budgets = (0.1, 0.5, 1.0, 4.0, 10.0, 100.0)
    errors = np.array([error_of_algorithm_1(epsilon, 1e-3, 1000) for epsilon in budgets])
    return (
        equal("predecessor without noise, error at T = 4,000 over error at 2,000", 1.0,
              [late / early for early, late in predecessors], 1e-6),
        falls_as("Algorithm 1 without noise, exponent of T", run_lengths, algorithm_1, 1.0),
        bound("error over that at a smaller budget", 1.0, errors[1:] / errors[:-1]),
    )  # fmt: skip


def bound_of_theorem_2(records: int) -> float:
    r"""Return the bound of Theorem 2 for the paper's mean, T = 1,000, epsilon 4, delta 1/(10 N_i).

    :math:`\mu = L = N_i`, and G is the largest gradient of the sum over the box. The second
    eigenvalue of the mixing matrix is 0. An agent has ``records`` records, N_i.
    """
    G = records * 2 * BOX * math.sqrt(DIM)
    allowance = theorem_1_allowance(4.0, 1 / (AGENTS * records))
    return float(
        theorem_2_bound(1000, 4 * G**2 / allowance, G, 1 / records, DIM, 0.0, distance=START)
    )


def sentence_5() -> Parts:
    """Test that the error and the bound of Theorem 2 decrease as agents have more records.

    10 to 1,000 records, epsilon = 4, delta = 1/(10 N_i). In Theorem 2, G, mu and L refer to the
    local sum and are proportional to N_i. They cancel, and the bound grows with ln(1/delta). With
    the sensitivity of one record in kappa, the bound decreases.
    """
    records = np.array([10, 20, 50, 100, 200, 500, 1000])
    errors = np.array([error_of_algorithm_1(4.0, 1 / (AGENTS * n), 1000, n) for n in records])
    bounds = np.array([bound_of_theorem_2(n) for n in records])
    return (
        bound("error over that with fewer records", 1.0, errors[1:] / errors[:-1]),
        bound("bound of Theorem 2 over that with fewer records", 1.0,
              bounds[1:] / bounds[:-1]).marked("detail", "E0.8"),
    )  # fmt: skip


def _distances_of_descent(step_sizes: np.ndarray) -> np.ndarray:
    """Return the largest distance of an agent to the optimum after each step, on a ring of five.

    The losses are quadratics with curvatures from 1 to 2 and different minimisers.
    """
    curvature, targets = np.linspace(1, 2, 5), np.array([-2.0, 1.0, 3.0, 0.0, -1.0])
    minimiser = float(curvature @ targets / curvature.sum())
    W, x, distances = ring_mixing(5), np.zeros(5), []
    for step_size in step_sizes:
        mixed = W @ x
        x = mixed - step_size * curvature * (mixed - targets)
        distances.append(np.abs(x - minimiser).max())
    return np.array(distances)


def sentence_6() -> Parts:
    """Test that descent with fixed steps stops at a distance in proportion to the step size.

    Five agents on a ring, quadratics with curvatures from 1 to 2, no noise. The exponent is that of
    the distance of the worst agent to the optimum after 6,000 iterations, for steps from 0.1 to
    0.003. With steps 1/(t + 1) the distance vanishes, here in up to 5,000 iterations.
    """
    step_sizes = 0.1 / 2.0 ** np.arange(6)
    final_distances = [_distances_of_descent(np.full(6000, size))[-1] for size in step_sizes]
    lengths = np.unique(np.geomspace(100, 5000, 12).astype(int))
    diminishing_step_distances = _distances_of_descent(1 / (1 + np.arange(1.0, 5001)))[lengths - 1]
    slopes = np.diff(np.log(final_distances)) / np.diff(np.log(step_sizes))
    return (
        equal("exponent of the step size, fixed steps below 0.01", 1.0, slopes[-2:], 0.03),
        falls_as("exponent of t, steps 1/(t + 1)", lengths, diminishing_step_distances, 1.0),
    )


def sentence_7() -> Parts:
    """Test that Stage II stays in the box without projection, from x(T) as in (12).

    2,000 runs of Stage II on a ring of ten, box [-5, 5]^5. From x(T) all later values are convex
    combinations of points of the box. The corrected Stage II starts from x(T) + n(T) and leaves the
    box, here with the noise of one step at epsilon 0.5.
    """
    rng = np.random.default_rng(8)
    noise = math.sqrt(2 / theorem_1_allowance(0.5, 1e-3)) * 2 * BOX * math.sqrt(DIM) / RECORDS
    exact = np.clip(rng.normal(0.7 * BOX, 1.0, size=(2000, AGENTS, DIM)), -BOX, BOX)
    noisy = exact + noise * rng.standard_normal(exact.shape)
    W, largest_coordinates = ring_mixing(AGENTS), []
    for _ in range(30):
        exact, noisy = W @ exact, W @ noisy
        largest_coordinates.append(np.abs(exact).max())
    return (
        bound("largest coordinate, from x(T)", BOX, largest_coordinates),
        bound("fraction of the agents outside the box, from x(T) + n(T)", 0.0,
              (np.abs(noisy) > BOX).any(-1).mean()).marked("remark"),
    )  # fmt: skip
