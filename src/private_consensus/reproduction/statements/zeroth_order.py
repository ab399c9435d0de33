"""Gratton et al.: D-ZOA."""

import math
from functools import cache
from itertools import product

import numpy as np
from scipy import stats
from scipy.optimize import linprog
from scipy.stats import chi2, norm

from private_consensus.core.algorithms.families.consensus_admm import total_epsilon
from private_consensus.privacy import gaussian_epsilon

from .base import Parts, at_least, bound, equal, grid
from .common import adjacency_of, laplacians, noise_weight, noisy_admm

P, J, T, C = 10, 30, 100, 0.5
"""Dimension, gradient estimates per step, inner iterations, and the constant of the bounds."""
MINIMISER = np.full(P, 0.3)
"""Minimiser of the local objective of the inner loop, of norm 0.95."""


def step_sizes(first: float) -> np.ndarray:
    """Return the T step sizes alpha_t of (12); ``first`` is alpha_0 R / L."""
    return first / np.sqrt(np.arange(1, T + 1) * P * math.log(2 * P))


def _sum_of_smoothing() -> float:
    """Return the sum over t of (1 + ln P) / t + t^(-3/2), a factor of (22) and (27)."""
    t = np.arange(1, T + 1)
    return (1 / t).sum() * (1 + math.log(P)) + (t**-1.5).sum()


def _inner(
    first: float, curvature: float, minimiser: np.ndarray, runs: int
) -> tuple[np.ndarray, float]:
    r"""Run the inner loop on :math:`F = \frac h2\|\beta - \beta^*\|^2` from 0.

    Return the outputs, shape (runs, P), and the sum that (21) uses as the variance,
    :math:`\frac1{JP}\sum_t\alpha_t^2\,\mathrm{tr}\,\Psi_t`. The gradient estimates are differences
    of F in closed form, with :math:`u_1 = 1/t` and :math:`u_2 = 1/(Pt)^2`.
    """
    rng = np.random.default_rng(1)
    beta, variance = np.zeros((runs, P)), 0.0
    for t, step in enumerate(step_sizes(first), 1):
        nu_1, nu_2 = rng.standard_normal((2, runs, J, P))
        slope = curvature * (beta[:, None] - minimiser + nu_1 / t)
        derivative = (slope * nu_2).sum(-1, keepdims=True)
        derivative += curvature / (2 * (P * t) ** 2) * (nu_2**2).sum(-1, keepdims=True)
        estimates = derivative * nu_2
        variance += step**2 * float(estimates.var(axis=1, ddof=1).sum(-1).mean()) / (J * P)
        beta = beta - step * estimates.mean(1)
    return beta, variance


CURVATURE = 24.0
"""2 rho |N_k| for rho = 4 and three agents in N_k: the curvature that ADMM adds to each loss."""
DELTA = 1e-3
NOISE_MULTIPLIER = math.sqrt(2.1 * math.log(1.25 / DELTA))
"""Standard deviation of the noise of (25) over sensitivity, at epsilon 1."""


def noise_of_theorem_1(epsilon: float) -> float:
    """Return sigma_k of (25) for c_1 = 1, rho = 4, |N_k| = 3, N_k = 20."""
    return NOISE_MULTIPLIER / (4.0 * 3 * 20 * epsilon)


def first_step_of_27(epsilon: float, best: np.ndarray) -> float:
    """Return alpha_0 R of (27), solved for the step, for the epsilon of one iteration.

    ``best`` is the minimiser, [P].
    """
    needed = J * P * noise_of_theorem_1(epsilon) ** 2 + 4 * float(best @ best) / T
    return math.sqrt(math.log(2 * P) / (C * _sum_of_smoothing()) * needed)


@cache
def _outputs(epsilon: float, lipschitz: float) -> np.ndarray:
    """Return 30 outputs of the inner loop with the steps of (27)."""
    return _inner(first_step_of_27(epsilon, MINIMISER) / lipschitz, CURVATURE, MINIMISER, 30)[0]


def deviation_of_the_output(epsilon: float) -> float:
    """Return the standard deviation of one output coordinate, with the steps of (27) at L = 1."""
    return float(_outputs(epsilon, 1.0).std(0, ddof=1).mean())


def lemma_1() -> Parts:
    """Compare the mean output of the inner loop with the minimiser, for the steps of (27).

    A quadratic of curvature 2 rho |N_k|, epsilon 0.95, |beta*| = 0.95; L = 1, as in the figures,
    and a valid Lipschitz constant, with which the output remains near 0.
    """
    inequalities = []
    # Lipschitz constant of the quadratic on the ball around beta*.
    valid = 2 * CURVATURE * MINIMISER[0] * math.sqrt(P)
    for name, lipschitz, erratum in (("L = 1", 1.0, ""), ("a valid L", valid, "E2.3")):
        outputs = _outputs(0.95, lipschitz)
        error = outputs.std(0, ddof=1) / math.sqrt(len(outputs))
        quantity = f"distance of the mean from the minimiser, four standard errors, {name}"
        limit = 4 * math.sqrt((error**2).sum())
        distance = np.linalg.norm(outputs.mean(0) - MINIMISER)
        inequalities.append(bound(quantity, limit, distance).marked(erratum=erratum))
    return tuple(inequalities)


def lemma_2() -> Parts:
    """Compare the variance of the output of the inner loop with its bound (22).

    A quadratic, alpha_0 R / L of 2, 0.5 and 0.005. For short steps the right side is negative.
    """
    lipschitz = 0.5 * (1 + math.log(2 * P)) + float(np.linalg.norm(MINIMISER)) + math.sqrt(P)
    first_steps = np.array([2.0, 0.5, 0.005])  # alpha_0 R / L
    variances = [_inner(first, 1.0, MINIMISER, runs=12)[1] for first in first_steps]
    stated = C * (first_steps * lipschitz) ** 2 / (J * P * math.log(2 * P)) * _sum_of_smoothing()
    stated -= 4 * float(MINIMISER @ MINIMISER) / (T * J * P)
    return (bound("variance", stated, variances).marked(erratum="E2.8"),)


def lemma_3() -> Parts:
    """Test the sensitivity of the exact primal update for random pairs of convex losses.

    3,000 pairs of gradients of norm at most c_1. Opposite gradients reach the bound if the other
    records have no curvature. The proof equates both minimisers.
    """
    rng = np.random.default_rng(2)
    c_1, rho, neighbours, records, changes = 1.0, 4.0, 3, 20, []
    for _ in range(3000):
        curvature = rng.uniform(0, 1)  # curvature of the other records
        slopes = rng.normal(size=(2, 3))
        slopes *= c_1 / np.linalg.norm(slopes, axis=1, keepdims=True) * rng.choice([1, 1, 0.3])
        if rng.random() < 0.2:
            slopes[1] = -slopes[0]
        solutions = -slopes / records / (2 * rho * neighbours + curvature)
        changes.append(np.linalg.norm(solutions[0] - solutions[1]))
    return (
        bound("change of the minimiser, gradients of at most c_1",
              c_1 / (rho * neighbours * records), changes),
        bound("distance of two minimisers that the proof equates", 0.0,
              changes).marked("remark", "E2.7"),
    )  # fmt: skip


def sentence_4() -> Parts:
    """Compute epsilon of an iteration for a gradient that exceeds c_1 = 1.

    For |x| = 1, y = 10 and beta = 0, the gradient 2x(x'beta - y) of squared loss has the norm 20.
    """
    exact = gaussian_epsilon(20 * 0.15 / NOISE_MULTIPLIER, DELTA)
    return (bound("epsilon of an iteration", 0.15, exact).marked(erratum="E2.6"),)


def _epsilon_of_outputs(epsilon: float) -> float:
    """Return a lower bound on the epsilon of the inner loop at delta 1e-3, by threshold tests."""
    runs, change = 400, np.zeros(P)
    change[:2] = np.array([1.0, -1.0]) / math.sqrt(2) / (4.0 * 3 * 20)  # orthogonal to MINIMISER
    first = first_step_of_27(epsilon, MINIMISER + change / 2)
    outputs = (_inner(first, CURVATURE, MINIMISER + s * change, runs)[0] for s in (0.5, -0.5))
    hits, false_alarms = (int(((x - MINIMISER) @ change > 0).sum()) for x in outputs)
    hit_rate = stats.beta.ppf(5e-4, hits, runs - hits + 1)
    false_rate = stats.beta.isf(5e-4, false_alarms + 1, runs - false_alarms)
    return math.log((hit_rate - DELTA) / false_rate)


def theorem_1() -> Parts:
    """Test epsilon for Gaussian noise with sigma of (25), and for the outputs of D-ZOA.

    Exact epsilon of Gaussian noise at twelve pairs. D-ZOA has the steps of (27), L = 1, epsilon
    0.15. One record moves the minimiser by the sensitivity (24), at equal norms. The fraction of
    400 outputs beyond the midpoint bounds epsilon from below, with confidence 99.9 %.
    """
    epsilon, delta = grid((0.05, 0.15, 0.5, 1.0), (1e-2, 1e-3, 1e-6))
    mu = epsilon / np.sqrt(2.1 * np.log(1.25 / delta))
    claimed, deviation = noise_of_theorem_1(0.15), deviation_of_the_output(0.15)
    halved = (noise_of_theorem_1(0.25) / noise_of_theorem_1(0.5)) ** 2
    return (
        bound("epsilon, Gaussian noise of scale (25)", epsilon, gaussian_epsilon(mu, delta)),
        bound("epsilon, outputs of D-ZOA (lower bound)", 0.15, _epsilon_of_outputs(0.15)).marked(
            erratum="E2.1"),
        at_least("standard deviation of the output", claimed, deviation).marked("remark", "E2.1"),
        bound("variance at half of epsilon, relative", 2.0, halved).marked("remark", "E2.10"),
    )  # fmt: skip


def corollary_1() -> Parts:
    """Test epsilon for the steps of (27), which takes an upper bound for the variance.

    L = 1, epsilon 0.15 and 0.95. The computed epsilon is that of Gaussian noise of the standard
    deviation of the output. The steps depend on the norm of the optimum, here for two data sets of
    three records that differ in one response.
    """
    epsilon = np.array([0.15, 0.95])
    ratio = np.array([noise_of_theorem_1(e) / deviation_of_the_output(e) for e in epsilon])
    exact = gaussian_epsilon(ratio * epsilon / NOISE_MULTIPLIER, DELTA)
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    norms = [np.linalg.norm(np.linalg.lstsq(X, y, rcond=None)[0]) for y in ([1, 1, 2], [1, 1, 1])]
    return (
        bound("epsilon, at the standard deviation of the output", epsilon, exact).marked(
            erratum="E2.2"),
        equal("norm of the optimum of a neighbour", norms[0], norms[1]).marked("remark", "E2.4"),
    )  # fmt: skip


def theorem_2() -> Parts:
    """Compare (29) with the exact total of Gaussian noise, three epsilon, 10 and 200 iterations."""
    epsilon, M = grid((0.15, 0.5, 1.0), (10, 200))
    stated = [total_epsilon(e, DELTA, int(m)) for e, m in zip(epsilon, M, strict=True)]
    exact = gaussian_epsilon(np.sqrt(M) * epsilon / NOISE_MULTIPLIER, DELTA)
    return (bound("total epsilon", stated, exact).marked(erratum="E2.5"),)


def _excess_of_admm(
    adjacency: np.ndarray,
    curvature: float,
    sigma: float,
    run_lengths: tuple[int, ...],
    best: float = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Simulate ADMM with Gaussian noise; return E[f(mean of w) - f(w*)] and both terms of (32).

    All three are arrays over the lengths of the run. All agents have equal losses; with different
    ones, f(mean of w) could be below f(w*). Each agent is also its own neighbour, as in N_k. The
    second term has the variance of one agent.
    """
    agents, rho, lengths = len(adjacency), 1.0, np.array(run_lengths)
    plus, minus = laplacians(adjacency + np.eye(agents))
    noises = np.zeros((lengths[-1] + 1, agents, 400))
    noises[1:] = sigma * np.random.default_rng(4).standard_normal(noises[1:].shape)
    w = noisy_admm(plus, minus, rho, curvature, best, np.zeros(noises.shape[1:]), noises)
    means = np.cumsum(w[1:], axis=0)[lengths - 1] / lengths[:, None, None]
    excess = curvature / 2 * ((means - best) ** 2).sum(1).mean(-1)
    first_term = rho / 2 * best**2 * plus.sum() / lengths
    return excess, first_term, np.full(len(lengths), rho * noise_weight(plus, minus) * sigma**2)


def theorem_3() -> Parts:
    """Test the error bound (32) of ADMM with Gaussian noise, on a small and a large graph.

    Five agents on a ring, three sizes of noise, M = 10, 100 and 300: (32) is far above. A complete
    graph of 80 agents that start at the minimiser, curvature 640, M = 8, 12 and 20: it is exceeded.
    The remark has the variances of all agents, as the trace in the proof. 400 runs each.
    """
    ring, complete = adjacency_of("ring", 5), adjacency_of("complete", 80)
    small = [_excess_of_admm(ring, 1.0, sigma, (10, 100, 300)) for sigma in (0.0, 0.02, 0.1)]
    excess, start, noise = np.concatenate(small, axis=1)
    large_excess, large_start, large_noise = _excess_of_admm(
        complete, 640.0, 1.0, (8, 12, 20), best=0.0
    )
    all_stated = [*start + 5 * noise, *large_start + 80 * large_noise]
    return (
        bound("E[f(mean of w) - f(w*)], ring of 5", start + noise, excess),
        bound("E[f(mean of w) - f(w*)], complete graph of 80", large_start + large_noise,
              large_excess).marked("detail", "E2.9"),
        bound("both graphs, variances of all agents", all_stated,
              [*excess, *large_excess]).marked("remark"),
    )  # fmt: skip


AGENTS, RECORDS, RHO = 5, 20, 4.0
"""Agents on a ring with one chord, records of each, and penalty of the experiments."""
REACHED = 0.01
"""Fraction of the initial error at which a run has converged."""


def _neighbourhoods() -> np.ndarray:
    """Return the adjacency matrix of a ring of five with a chord and with self-loops."""
    adjacency = np.eye(AGENTS) + adjacency_of("ring", AGENTS)
    adjacency[0, 2] = adjacency[2, 0] = 1
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
    r"""Return the iteration from which the squared error stays below a hundredth of its start.

    It is 61 if there is none up to 60. Losses are :math:`\|X_kb - y_k\|^2`, without noise. The
    primal update is exact, as D-ZOA's is on average, or the linearised one of DP-ADMM with the step
    eta_0 / sqrt(m). A coordinator averages all models, or neighbours exchange them.
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
    parameters = list(product((0.1, 0.2, 0.4, 0.7, 1.5, 3.0, 6.0), (0.1, 0.2, 0.4, 0.8)))
    return float(np.mean([
        min(iterations_of_admm(seed, rho, coordinator=has_coordinator, eta_0=eta)
            for rho, eta in parameters)
        for seed in range(3)
    ]))  # fmt: skip


def sentence_1() -> Parts:
    """Compare the convergence of D-ZOA and DP-ADMM with and without a coordinator.

    No noise, least squares, mean over three data sets of the iterations to a hundredth of the
    error: D-ZOA at rho = 4, DP-ADMM with tuned rho and eta_0. The coordinator is the main cause if
    it accounts for half of the logarithm of their quotient: it does for D-ZOA, whose penalty is
    then rho, not 2 rho |N_k|. For DP-ADMM, its tuning explains more.
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

    Along the gradient an estimate is |grad F| nu^2 with normal nu, so that the mean of J is
    chi-squared over J, and never below 0. Privacy at delta needs the tails.
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


def error_with_absolute_loss() -> float:
    r"""Return the error of D-ZOA over its initial value, with the losses :math:`|x^Tb - y|`.

    The inner loop is that of Algorithm 1 with the steps of (27) at epsilon 0.95 and L = 1. The
    error after 40 outer iterations is the squared distance to the centralised solution.
    """
    X, y = _records(0)
    best = centralised_median_fit(X.reshape(-1, P), y.ravel())
    rng, adjacency = np.random.default_rng(0), _neighbourhoods()
    degree = adjacency.sum(1)[:, None]
    steps = step_sizes(first_step_of_27(0.95, best))
    model, dual = np.zeros((AGENTS, P)), np.zeros((AGENTS, P))

    def objective(points: np.ndarray, linear: np.ndarray) -> np.ndarray:
        """Return F_k at points, shape (agents, J, P)."""
        residuals = np.abs(points @ np.swapaxes(X, 1, 2) - y[:, None]).sum(-1)
        smooth = (linear * points).sum(-1) + RHO * degree * (points**2).sum(-1)
        return residuals + np.abs(points).sum(-1) / AGENTS + smooth

    for _ in range(40):
        dual = dual + RHO * (degree * model - adjacency @ model)
        linear = (dual - RHO * (degree * model + adjacency @ model))[:, None]
        model = np.zeros((AGENTS, P))
        for t, step in enumerate(steps, 1):
            nu_1, nu_2 = rng.standard_normal((2, AGENTS, J, P))
            smoothed, width = model[:, None] + nu_1 / t, 1 / (P * t) ** 2
            change = objective(smoothed + width * nu_2, linear) - objective(smoothed, linear)
            model = model - step * ((change / width)[..., None] * nu_2).mean(1)
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

    |x'b - y| is summed over 20 records of each of five agents, T = 100, J = 30, L = 1, with the
    steps of (27) at epsilon 0.95. Gradients are bounded by c_1 = 1, which those of squared loss are
    not, and c_1 / (rho |N_k| N_k) of Lemma 3 is reached.
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
