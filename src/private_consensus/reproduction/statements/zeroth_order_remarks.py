r"""Gratton et al.: sentences on the coordinator, the number of samples and non-smooth losses.

They are in sections II and VI. Data are those of the experiments: five agents on a ring with one
chord, 20 records each, 10 features, columns and rows normalised.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from scipy.optimize import linprog
from scipy.stats import chi2, norm

from .base import Parts, at_least, bound
from .zeroth_order import J, P, first_step_of_27, step_sizes

AGENTS, RECORDS, RHO = 5, 20, 4.0
REACHED = 0.01
"""Fraction of the initial error at which a run has converged."""


def _neighbourhoods() -> np.ndarray:
    """Return the adjacency matrix of a ring of five with a chord and with self-loops."""
    adjacency = np.eye(AGENTS)
    for i, j in ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)):
        adjacency[i, j] = adjacency[j, i] = 1
    return adjacency


def _records(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sample features, shape (agents, records, P), and responses, shape (agents, records)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((AGENTS * RECORDS, P))
    X /= np.abs(X).max(0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = X @ rng.standard_normal(P) + math.sqrt(0.1) * rng.standard_normal(len(X))
    return X.reshape(AGENTS, RECORDS, P), y.reshape(AGENTS, RECORDS)


def iterations_of_admm(
    seed: int, rho: float, *, coordinator: bool, eta_0: float | None = None
) -> int:
    r"""Return the number of iterations after which ADMM without noise stays near the solution.

    It is the first of 60 iterations from which the squared error stays below a hundredth of its
    initial value; 61 if there is none. Losses are :math:`\|X_kb - y_k\|^2`. The primal update is
    exact, as D-ZOA's is on average, or the linearised one of DP-ADMM with the step parameter eta_0
    / sqrt(m). A coordinator averages all models, or neighbours exchange them.
    """
    X, y = _records(seed)
    gram, pull = 2 * np.swapaxes(X, 1, 2) @ X, 2 * np.einsum("knp,kn->kp", X, y)
    best = np.linalg.solve(gram.sum(0), pull.sum(0))
    adjacency = _neighbourhoods()
    degree = adjacency.sum(1)[:, None]
    penalty = np.full((AGENTS, 1), rho) if coordinator else 2 * rho * degree
    model, dual, mean = np.zeros((AGENTS, P)), np.zeros((AGENTS, P)), np.zeros(P)
    exact = np.linalg.inv(gram + penalty[..., None] * np.eye(P))
    last_outside = 0
    for m in range(1, 61):
        if coordinator:
            linear = rho * mean - dual
        else:
            dual = dual + rho * (degree * model - adjacency @ model)
            linear = rho * (degree * model + adjacency @ model) - dual
        if eta_0 is None:
            model = np.einsum("kpq,kq->kp", exact, pull + linear)
        else:
            eta = eta_0 / math.sqrt(m)
            slope = np.einsum("kpq,kq->kp", gram, model) - pull
            model = (linear + model / eta - slope) / (penalty + 1 / eta)
        if coordinator:
            mean = model.mean(0) + dual.mean(0) / rho
            dual = dual + rho * (model - mean)
        if ((model - best) ** 2).sum() > REACHED * AGENTS * (best**2).sum():
            last_outside = m
    return last_outside + 1


def _fewest_iterations(has_coordinator: bool) -> float:
    """Return the mean over three data sets of the fewest iterations over penalties and steps."""
    steps = (0.1, 0.2, 0.4, 0.8)
    parameter_choices = list(product((0.1, 0.2, 0.4, 0.7, 1.5, 3.0, 6.0), steps))
    return float(np.mean([
        min(iterations_of_admm(seed, rho, coordinator=has_coordinator, eta_0=eta)
            for rho, eta in parameter_choices)
        for seed in range(3)
    ]))  # fmt: skip


def sentence_1() -> Parts:
    """Compare the convergence of D-ZOA and DP-ADMM with and without a coordinator.

    No noise, least squares, mean over three data sets of the iterations until the squared error
    stays below a hundredth of its start: D-ZOA at rho = 4, DP-ADMM with tuned rho and eta_0. The
    coordinator is the main cause if it accounts for half of the logarithm of their quotient. It
    does for D-ZOA, since its penalty is then rho in place of 2 rho |N_k|, and not for DP-ADMM:
    tuning, which only DP-ADMM has, explains more.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        d_zoa, coordinated_d_zoa = (
            np.mean([iterations_of_admm(s, RHO, coordinator=has_coordinator) for s in range(3)])
            for has_coordinator in (False, True)
        )
        dp_admm, local_dp_admm = _fewest_iterations(True), _fewest_iterations(False)
    half = math.sqrt(d_zoa / dp_admm)
    return (
        at_least("iterations of D-ZOA without over with a coordinator, rho = 4", half,
                 d_zoa / coordinated_d_zoa),
        at_least("iterations of DP-ADMM without over with a coordinator", half,
                 local_dp_admm / dp_admm).marked("detail"),
    )  # fmt: skip


def sentence_2() -> Parts:
    """Test that the mean of 30 gradient estimates is normal, in the centre and in the tails.

    One step with J = 30. Along the gradient an estimate is |grad F| nu^2 with normal nu, so that
    the mean of J is chi-squared with J degrees of freedom over J. Privacy at delta needs the tails.
    No value is below 0, for any J.
    """
    x = np.linspace(0, 4, 40_001)
    distance = np.abs(chi2.cdf(J * x, J) - norm.cdf((x - 1) * math.sqrt(J / 2))).max()
    delta = np.array([1e-6, 1e-3])
    tails = chi2.sf(J * (1 + norm.isf(delta) * math.sqrt(2 / J)), J)
    return (
        bound("largest difference of the distribution functions", 0.05, distance),
        bound("probability above a quantile of the normal distribution, 1e-6", delta[0],
              tails[0]).marked("detail"),
        bound("probability above a quantile of the normal distribution, 1e-3", delta[1],
              tails[1]).marked("detail"),
    )  # fmt: skip


def centralised_median_fit(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    r"""Return the minimiser of :math:`\sum|x_n^Tb - y_n| + \|b\|_1`, by linear programming."""
    rows = np.vstack([X, np.eye(X.shape[1])])
    right_sides = np.append(y, np.zeros(X.shape[1]))
    count, dim = rows.shape
    costs = np.append(np.zeros(dim), np.ones(count))
    constraints = np.block([[rows, -np.eye(count)], [-rows, -np.eye(count)]])
    limits = np.append(right_sides, -right_sides)
    solution = linprog(
        costs, constraints, limits, bounds=[(None, None)] * dim + [(0, None)] * count
    )
    return solution.x[:dim]


def _objective(
    X: np.ndarray, y: np.ndarray, linear: np.ndarray, penalty: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """Return the local objectives F_k with absolute losses at points, shape (agents, J, P)."""
    residuals = np.abs(points @ np.swapaxes(X, 1, 2) - y[:, None]).sum(-1)
    smooth = (linear * points).sum(-1) + penalty * (points**2).sum(-1)
    return residuals + np.abs(points).sum(-1) / AGENTS + smooth


def error_with_absolute_loss() -> float:
    r"""Return the error of D-ZOA over its initial value, with the losses :math:`|x^Tb - y|`.

    The inner loop is that of Algorithm 1 with the steps of (27) at epsilon 0.95 and L = 1. The
    error after 40 outer iterations is the squared distance to the centralised solution.
    """
    X, y = _records(0)
    best = centralised_median_fit(X.reshape(-1, P), y.ravel())
    rng, adjacency = np.random.default_rng(0), _neighbourhoods()
    degree = adjacency.sum(1)[:, None]
    penalty = RHO * degree
    steps = step_sizes(first_step_of_27(0.95, best))
    model, dual = np.zeros((AGENTS, P)), np.zeros((AGENTS, P))
    for _ in range(40):
        dual = dual + RHO * (degree * model - adjacency @ model)
        linear = (dual - RHO * (degree * model + adjacency @ model))[:, None]
        model = np.zeros((AGENTS, P))
        for t, step_size in enumerate(steps, 1):
            nu_1, nu_2 = rng.standard_normal((2, AGENTS, J, P))
            smoothed_points, width = model[:, None] + nu_1 / t, 1 / (P * t) ** 2
            objectives = [
                _objective(X, y, linear, penalty, points)
                for points in (smoothed_points + width * nu_2, smoothed_points)
            ]
            slope = (objectives[0] - objectives[1]) / width
            model = model - step_size * (slope[..., None] * nu_2).mean(1)
    return float(((model - best) ** 2).sum() / (AGENTS * (best**2).sum()))


def _proximal_minimiser(slopes: np.ndarray, kinks: np.ndarray, curvature: float) -> float:
    r"""Return the minimiser of :math:`\frac1n\sum_i s_i|x - k_i| + \frac c2x^2`, by bisection."""
    low, high = -10.0, 10.0
    for _ in range(80):
        middle = (low + high) / 2
        slope = float((slopes * np.sign(middle - kinks)).mean()) + curvature * middle
        low, high = (low, middle) if slope > 0 else (middle, high)
    return high


def sentence_3() -> Parts:
    """Test the convergence of D-ZOA and the sensitivity of its update for absolute losses.

    The paper treats non-smooth losses and simulates squared ones. Here, |x'b - y| is summed over 20
    records of each of five agents, T = 100, J = 30, L = 1, with the steps of (27) at epsilon 0.95.
    Gradients are bounded by c_1 = 1, which those of squared loss are not, and c_1 / (rho |N_k| N_k)
    of Lemma 3 is reached.
    """
    rng, pairs = np.random.default_rng(7), []
    for _ in range(300):
        records, neighbours = int(rng.integers(1, 8)), int(rng.integers(1, 4))
        curvature = 2 * RHO * neighbours
        slopes, kinks = rng.uniform(0, 1, records), rng.normal(0, 0.1, records)
        if rng.random() < 0.3:
            slopes[0], kinks[0] = 1.0, 5.0
        other_slopes, other_kinks = slopes.copy(), kinks.copy()
        other_slopes[0], other_kinks[0] = 1.0, -5.0
        minimisers = [_proximal_minimiser(*pair, curvature)
                 for pair in ((slopes, kinks), (other_slopes, other_kinks))]  # fmt: skip
        pairs.append((1.0 / (RHO * neighbours * records), abs(minimisers[0] - minimisers[1])))
    return (
        bound("error after 40 iterations over its start, absolute loss", REACHED,
              error_with_absolute_loss()),
        bound("change of the update by a record, absolute loss with |x| at most 1",
              *np.array(pairs).T),
    )  # fmt: skip
