"""Ding, chapter 3: PR-, PP- and IPP-ADMM."""

import math
from itertools import product

import numpy as np
from scipy.special import gammaincc, gammaln
from scipy.stats import laplace

from private_consensus.privacy import gaussian_epsilon, sparse_vector_scales, zcdp_epsilon

from .base import Parts, at_least, bound, equal, falls_as, grid
from .common import adjacency_of, laplacians, noise_weight, noisy_admm
from .concentrated import divergence_on_grid, renyi_divergence

HORIZONS = np.array([10, 30, 100, 300])
"""Numbers of iterations T."""
DECAY = 0.9
"""Decay rate of the noise variance."""
DELTA = 1e-4


def _path_laplacians(agents: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the signless Laplacian and the Laplacian of a path, a graph that mixes slowly."""
    return laplacians(adjacency_of("path", agents))


def _matrix_root(matrix: np.ndarray) -> np.ndarray:
    """Return the symmetric square root of a positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.sqrt(values.clip(0)) @ vectors.T


def _deviation_bound(
    plus: np.ndarray, minus: np.ndarray, model_bound: float, gradient_bound: float, eta: float
) -> float:
    """Return U hat of Lemma 9, for bounds V_1 on models and V_2 on gradients."""
    largest = np.linalg.eigvalsh(plus)[-1] + 2 * math.sqrt(np.linalg.eigvalsh(minus)[-1] / 2)
    gradient_term = 2 * gradient_bound**2 / (eta**2 * np.linalg.eigvalsh(minus)[1])
    return largest * model_bound**2 + gradient_term + 1


def lemma_9() -> Parts:
    """Test the bound on the summed deviations of ADMM without noise, on paths of agents.

    The losses are f = 0 (convex, V_2 = 0), and x^0 is the slowest mode with norm V_1 = 1. For these
    losses the bound does not depend on how slowly a graph mixes.
    """
    eta, pairs = 0.5, []
    for agents in (5, 10, 20, 40):
        plus, minus = _path_laplacians(agents)
        start = np.cos(np.pi * (np.arange(agents) + 0.5) / agents)
        start *= 1 / np.linalg.norm(start)
        xs = noisy_admm(plus, minus, eta, 0.0, np.zeros(agents), start, np.zeros((2000, agents)))
        deviations = np.linalg.norm(xs @ _matrix_root(minus / 2), axis=1)
        largest = np.linalg.norm(xs, axis=1).max()
        pairs.append((_deviation_bound(plus, minus, largest, 0.0, eta), deviations.sum()))
    inequality = bound("sum of |Q x^t|, paths of 5, 10, 20, 40 agents", *np.array(pairs).T)
    return (inequality.marked("main", "E4.11"),)


def lemma_10() -> Parts:
    """Test the bound on the change of a minimiser if the slope of one of its records is reversed.

    Slopes have the norm V = 1, eta = 1/2, degree 2. The bound is reached with one record. With
    |D_i| records it is |D_i| times too large.
    """
    stated, records = 1.0, np.array([1, 2, 30, 8000])
    measured = 2 / records / (2 * 0.5 * 2)
    return (
        bound("change of x_i", stated, measured),
        equal("change of x_i, 8,000 records", stated, measured[-1]).marked("remark", "E4.1"),
    )


def theorem_1() -> Parts:
    """Test the sensitivity of Lemma 10 and the divergence of Gaussian noise at this sensitivity.

    Two sigma, changes of 0.1, 1 and 3, up to six orders, by sums over a fine grid.
    """
    return divergence_on_grid((0.01,), (0.7, 2.0), (10, 100, 300)), *lemma_10()


def theorem_2() -> Parts:
    """Compare the published total epsilon with the exact total of all messages.

    Ten horizons, periods and rates, one record, delta = 1e-4. By the published sum a single message
    (T = T_p = 1) would have no privacy cost.
    """

    def sums(T: int, period: int, rate: float) -> tuple[float, float]:
        """Return the published and the exact sum of all losses over the first loss."""
        periods = T // period
        published = period * (1 - rate**periods) / (rate ** (periods - 1) - rate**periods) - 1
        return published, (rate ** -(np.arange(T) // period).astype(float)).sum()

    pairs, rho = [], 0.01  # zCDP cost of the first message
    for (T, period), rate in product(((1, 1), (2, 1), (50, 1), (50, 5), (4, 4)), (0.5, 0.925)):
        published, exact = sums(T, period, rate)
        stated = zcdp_epsilon(rho * published, DELTA, conversion="safe") if published > 1e-9 else 0
        pairs.append((stated, gaussian_epsilon(math.sqrt(2 * rho * exact), DELTA)))
    losses = bound("sum of the losses over the first, T = 50, R = 0.925", *sums(50, 1, 0.925))
    return (bound("epsilon", *np.array(pairs).T), losses.marked("main", "E4.2"))


def theorem_3() -> Parts:
    """Test the closed form of the total privacy loss, and the exact epsilon at this total.

    Twelve horizons and rates. The first message has the variance sigma_1^2, since the published
    schedule divides by zero there.
    """
    T, rate = grid((1, 2, 5, 50), (0.015, 0.5, 2.0))
    t = np.arange(50)
    sums = 1 + rate * np.where(t < T[:, None], t * (t + 1), 0).sum(1)
    stated = (rate * T * (T**2 - 1) + 3) / 3
    rho = 0.01
    epsilon = rho * stated + 2 * np.sqrt(rho * stated * math.log(1 / DELTA))
    return (
        equal("sum of the losses over the first", stated, sums),
        bound("epsilon", epsilon, gaussian_epsilon(np.sqrt(2 * rho * sums), DELTA)),
    )


def proposition_1() -> Parts:
    """Test the inequality of one iteration for random quadratics, noise and vectors r.

    60 runs of twelve iterations, five agents, noise of three sizes, r zero or random.
    """
    rng, agents = np.random.default_rng(2), 5
    plus, minus = _path_laplacians(agents)
    Q, tau = _matrix_root(minus / 2), noise_weight(plus, minus)
    pairs = []
    for _ in range(60):
        eta, h = rng.uniform(0.1, 2), rng.uniform(0.1, 3)
        targets = rng.normal(size=agents)
        noises = rng.choice([0.0, 0.1, 1.0]) * rng.normal(size=(12, agents))
        noises[0] = 0
        xs = noisy_admm(plus, minus, eta, h, targets, np.zeros(agents), noises)
        sums = np.cumsum((xs + noises) @ Q, axis=0)
        r = rng.normal(size=agents) * rng.choice([0.0, 1.0])

        deviations = xs - targets.mean()
        distance = ((sums - r) ** 2).sum(1) + ((deviations @ plus) * deviations).sum(1) / 2
        gap = h / 2 * ((xs - targets) ** 2 - (targets.mean() - targets) ** 2).sum(1)[1:]
        left_side = gap / eta + 2 * xs[1:] @ Q @ r
        right_side = distance[:-1] - distance[1:] + tau * (noises[:-1] ** 2).sum(1)
        right_side += 2 * ((noises[1:] @ Q) * (sums[1:] - r)).sum(1)
        offset = np.abs(left_side) + np.abs(right_side) + 1.0  # both sides may be negative
        pairs.append((right_side + offset, left_side + offset))
    return (bound("left-hand side, both sides shifted equally", *np.array(pairs).swapaxes(0, 1)),)


def _noise_variances(schedule: str, T: int) -> np.ndarray:
    """Return the variances of T messages over the first; a period has one iteration."""
    t = np.arange(T)
    return DECAY**t if schedule == "periodic" else 1 / (DECAY * np.maximum(t * (t + 1), 1 / DECAY))


def excess_of_run(schedule: str, T: int, sigma: float) -> tuple[float, float]:
    """Return the mean excess of f at the averaged iterate, and its bound of Theorem 4 or 5.

    V_1 and V_2 of Lemma 9 are the largest norms of models and gradients in 100 runs. The optimum is
    the vector of ones. ``sigma`` is the standard deviation of the first noise.
    """
    agents, runs, eta = 5, 100, 0.5
    plus, minus = _path_laplacians(agents)
    start, targets = np.zeros((agents, runs)), np.ones((agents, runs))
    scales = sigma * np.sqrt(np.append(0, _noise_variances(schedule, T)))
    unit_noises = np.random.default_rng(3).standard_normal((T + 1, agents, runs))
    xs = noisy_admm(plus, minus, eta, 1.0, targets, start, scales[:, None, None] * unit_noises)
    mean_excess = ((xs[1:].mean(0) - 1) ** 2).sum(0).mean() / 2
    variance_sum = 1 / (1 - DECAY) if schedule == "periodic" else 1 / DECAY
    norms = (np.linalg.norm(values, axis=1).max() for values in (xs, xs - targets))
    deviation_bound = _deviation_bound(plus, minus, *norms, eta)
    # The start is common to the agents, so that Q x^0 and x^0 - x* in the norm of L_- are 0.
    noise_term = noise_weight(plus, minus) * agents * sigma**2 * variance_sum
    return float(mean_excess), float(eta / T * (2 * deviation_bound**2 + noise_term))


def _convergence(schedule: str) -> Parts:
    """Test the error bound, its rate in T, and the rate at a constant total privacy loss."""
    rows = [[excess_of_run(schedule, T, sigma) for T in HORIZONS] for sigma in (0.0, 0.3, 2.0)]
    measured, stated = np.array(rows).transpose(2, 0, 1)
    losses = np.array([(1 / _noise_variances(schedule, T)).sum() for T in HORIZONS])
    scales = 2.0 * np.sqrt(losses / losses[0])
    private = [excess_of_run(schedule, *pair)[0] for pair in zip(HORIZONS, scales, strict=True)]
    in_plus, in_minus = (matrix.sum() / 2 for matrix in _path_laplacians(5))  # x^0 - x* = -1
    return (
        bound("E[f(mean of x) - f(x*)]", stated, measured),
        falls_as("exponent of T", HORIZONS, measured[-1], 1.0),
        falls_as("exponent of T at a constant privacy loss", HORIZONS, private, 1.0).marked(
            "remark"),
        bound("|x^0 - x*|^2 in the norm of L_+, that of L_- stated", in_minus, in_plus).marked(
            "remark", "E4.11"),
    )  # fmt: skip


def theorem_4() -> Parts:
    """Test the error bound and its rate O(1/T) if the noise variance decays once per period.

    Five agents on a path with equal quadratics, sigma_1 of 0, 0.3 and 2, T from 10 to 300, 100
    runs. The theorem holds the first variance fixed, so that the total privacy loss grows with T.
    """
    return _convergence("periodic")


def theorem_5() -> Parts:
    """Test the error bound and its rate O(1/T) for the problem of Theorem 4."""
    rates, t = np.array([0.015, 0.05, 0.15, 1.5]), np.arange(1, 49)
    sums = 1 + (1 / (t * (t + 1))).sum() / rates
    variances = bound("sum of 50 variances over the first, R_T from 0.015 to 1.5", 1 / rates, sums)
    return (*_convergence("iteration"), variances.marked("remark", "E4.17"))


def remark_1() -> Parts:
    """Test the rate O(1/T) of both schedules, at a fixed first variance and at a fixed total loss.

    Unlike the constants of Theorems 4 and 5, the rate at a fixed first variance has a proof: the
    sum of Proposition 1 over t with r = 0, whose right side has a finite mean.
    """
    return theorem_4()[1:3] + theorem_5()[1:3]


def _perturbed_divergence(share: float, order: float, records: int, penalty: float) -> float:
    r"""Return the Renyi divergence of one perturbed minimiser over order rho_1, in one dimension.

    The noise is a function of the minimiser x, :math:`b = -\nabla f(x) - D(x - c)`, so that x has
    the density :math:`\phi(b(x))\,|b'(x)|`. The data are n - 1 records (1, +1), and one record with
    either label. epsilon_1 is 1.
    """
    sigma = 2 * math.sqrt(2 * math.log(1.25 / DELTA)) / (records * share)
    x = np.linspace(-1, 1, 20_001) * (40 * sigma / penalty + 4)
    sigmoid = 1 / (1 + np.exp(x))  # sigmoid(-x)
    logs = []
    for record_slope in (sigmoid, sigmoid - 1):
        b = ((records - 1) * sigmoid + record_slope) / records - penalty * x
        log = -(b**2) / (2 * sigma**2) + np.log(sigmoid * (1 - sigmoid) + penalty)
        logs.append(log - np.logaddexp.reduce(log))
    return renyi_divergence(*logs, [order])[0] / (order / (4 * math.log(1 / DELTA)))


def _log_jacobian_ratio() -> float:
    """Return the largest log-Jacobian over ln(1 + kappa), 2,000 Hessians that differ by a record.

    Both records add a term of rank one, of at most kappa times the smallest eigenvalue.
    """
    rng = np.random.default_rng(8)
    curvature, kappa = rng.uniform(0.5, 3.0, 2000), rng.uniform(0.0, 1.0, 2000)
    directions, factor = rng.normal(size=(2, 2000, 4)), rng.normal(size=(2000, 4, 4))
    directions *= np.sqrt(rng.uniform(size=(2, 2000)) * kappa * curvature)[..., None] / (
        np.linalg.norm(directions, axis=-1, keepdims=True)
    )
    base = curvature[:, None, None] * np.eye(4) + factor @ factor.swapaxes(1, 2)
    changed = base + directions[..., :, None] * directions[..., None, :]
    logs = np.linalg.slogdet(changed).logabsdet
    return float((np.abs(logs[0] - logs[1]) / np.log1p(kappa)).max())


def theorem_6() -> Parts:
    """Compare Renyi divergences of perturbed minimisers in one dimension with the stated ones.

    Sixteen cases contradict nothing. The remarks test steps of the proof, with a mechanism that
    releases the record with probability delta; solutions within 0.001 of m x^2/2, m = 2; epsilon_1
    for the Gaussian part; and the Jacobians of 2,000 Hessians.
    """
    ratios = [
        _perturbed_divergence(share, order, records, max(0.05, 0.7 / ((1 - share) * records)))
        for share, order, records in product((0.9, 0.99), (1.1, 2.0, 16.0, 200.0), (10, 1000))
    ]
    with np.errstate(divide="ignore"):
        outcomes, neighbour = np.log([1 - DELTA, DELTA]), np.log([1.0, 0.0])
    rho = 1 / (4 * math.log(1 / DELTA)), renyi_divergence(outcomes, neighbour, [2.0])[0] / 2
    beta, m, share, epsilon = 1e-3, 2.0, 0.99, 0.04
    proof_sum = epsilon + (1 - share) * epsilon
    return (
        bound("divergence of a solve over order rho_1", 1.0, ratios),
        bound("rho of an (epsilon, delta)-DP release, epsilon = 1", *rho).marked("remark", "E4.3"),
        bound("distance of accepted solutions", beta / m, 2 * beta / m).marked("remark", "E4.4"),
        bound("epsilon of a solve by the proof", epsilon, proof_sum).marked("remark", "E4.5"),
        equal("factor of the log-Jacobian", 2.8, _log_jacobian_ratio()).marked("remark", "E4.10"),
    )


def theorem_7() -> Parts:
    """Test the conversion of the total zCDP cost to (epsilon, delta), for the cost of Theorem 6.

    15 pairs of rho and delta, Gaussian noise, whose divergences reach rho at all orders. Agents
    hold disjoint data, so that the largest loss of an agent is the total loss.
    """
    rho, delta = grid((1e-3, 0.01, 0.1, 1.0, 10.0), (1e-2, 1e-4, 1e-8))
    stated = [zcdp_epsilon(r, d, conversion="safe") for r, d in zip(rho, delta, strict=True)]
    return (bound("epsilon", stated, gaussian_epsilon(np.sqrt(2 * rho), delta)),)


def lemma_12() -> Parts:
    """Test the sensitivity of the clipped quality function, for any two pairs of models.

    3,000 pairs of data sets whose models may differ, which the proof omits. The remark takes a
    minimiser that is not sent, from 100 losses of slope 1 in [0, 2] of which one is reversed, m =
    0.1; the stated bound is that of fixed models, 2 C_loss / |D_i|.
    """
    losses = np.random.default_rng(4).uniform(size=(3000, 2, 2, 20))
    losses[:1000] = losses[:1000, ..., :1].round()
    change = np.diff((losses[:, 0] - losses[:, 1]).mean(-1))

    def query(slopes: np.ndarray) -> float:
        x = -(slopes.mean() - 1.1) / 0.1  # the same noise for both data sets
        return float(np.where(slopes > 0, x, 2 - x).clip(0, 2).mean())

    slopes = np.ones(100)
    moved = abs(query(slopes) - query(np.append(-1.0, slopes[1:])))
    unsent = bound("change of a query by an unsent minimiser, bound of fixed models", 0.04, moved)
    return (
        bound("change of the clipped quality function over C_loss", 2.0, np.abs(change).max()),
        unsent.marked("remark", "E4.6"),
    )


def _log_below(
    query: float, tests: int, scales: tuple[float, float], count: int, fresh: bool = True
) -> float:
    """Return the log-probability that tests of one query all answer "below" the threshold 0.

    The ``scales`` of threshold and queries are multiplied by ``count``. The threshold is sampled
    for each test if ``fresh``.
    """
    threshold_scale, query_scale = scales
    thresholds = np.linspace(-60, 60, 20_001) * threshold_scale * count
    weight = laplace.pdf(thresholds, scale=threshold_scale * count)
    below = laplace.cdf(thresholds - query, scale=query_scale * count)
    weight /= weight.sum()
    return tests * math.log(weight @ below) if fresh else math.log(weight @ below**tests)


def _tests_divergence(count: int, tests: int) -> float:
    """Return a lower bound on the Renyi divergence of tests over order (eps^2 / 2), for epsilon 1.

    The single outcome in which all answers are below bounds the divergence of every order.
    """
    scales = sparse_vector_scales(1.0, sensitivity=1.0, count=1)
    log_p, log_q = (_log_below(query, tests, scales, count) for query in (-1.0, 0.0))
    orders = np.array([1.5, 2.0, 3.0, 5.0, 8.0])
    divergence = (orders * log_p + (1 - orders) * log_q) / (orders - 1)
    return max(float((divergence / (orders / 2)).max()), 0.0)


def lemma_13() -> Parts:
    """Compare the zCDP cost of tests whose threshold is sampled each time with the stated cost.

    The cited theorem samples the threshold once. With c = 15 and T = 30 the noise, c times as
    large, covers every answer; with many tests for few messages it does not. At the published
    scales with C_loss = 2, a test is nearly a fair coin.
    """
    rows = [(15, 30), (1, 20), (1, 100), (1, 400)]
    quantity = "divergence over order (eps_1 + eps_2)^2 / 2"
    cost = bound(f"{quantity}; c, T = 15, 30; 1, 20; 1, 100; 1, 400", 1.0,
                 [_tests_divergence(*row) for row in rows])  # fmt: skip
    single, published = (sparse_vector_scales(1.0, sensitivity=s, count=1) for s in (1.0, 4.0))
    logs = [_log_below(query, 400, single, 1, fresh=False) for query in (0.0, 1.0)]
    sent = 1 - math.exp(_log_below(0.01, 1, published, 15))
    return (
        cost.marked("main", "E4.7"),
        bound("epsilon of 400 tests, one threshold", 1.0, abs(logs[0] - logs[1])).marked("remark"),
        equal("probability that a gain of 0.01 is sent, c = 15", 0.5, sent, 0.02).marked("remark"),
    )


def theorem_10() -> Parts:
    """Compare the divergence of the tests of IPP-ADMM without messages with the stated total.

    All tests have the answer below, so that c (rho_i1 + rho_i2) is arbitrarily small. The tests
    alone exceed the total if T is far above c. The paper's c = 15 and T = 30 contradict nothing.
    """
    rows = [(15, 30), (1, 100), (1, 1000), (2, 1000)]
    inequality = bound("divergence over order rho'; c, T = 15, 30; 1, 100; 1, 1000; 2, 1000", 1.0,
                 [_tests_divergence(*row) for row in rows])  # fmt: skip
    return (inequality.marked("main", "E4.7"),)


def lemma_14() -> Parts:
    """Test that a normal vector exceeds the norm sqrt(2 d ln(1/xi)) with probability at most xi.

    Exact distribution of the norm, d from 1 to 100. The dissertation uses small xi.
    """
    d, xi = grid((1, 2, 10, 100), (1e-4, 1e-2, 0.1, 0.5, 0.9))
    exceeded = gammaincc(d / 2, d * np.log(1 / xi))
    small = xi <= 0.1
    large = bound("probability of a larger norm, xi 0.5 and 0.9", xi[~small], exceeded[~small])
    return (
        bound("probability of a larger norm, xi up to 0.1", xi[small], exceeded[small]),
        large.marked("main", "E4.16"),
    )


def sentence_1() -> Parts:
    """Test that expected norms of Gamma noise are at least sqrt d times those of Gaussian noise.

    d from 1 to 1,000. In zCDP, which the text is about, a pure epsilon_0 costs what sigma = Delta /
    epsilon_0 costs.
    """
    d = np.array([1, 2, 10, 41, 104, 1000])
    norms = np.sqrt(2) * np.exp(gammaln((d + 1) / 2) - gammaln(d / 2))
    return (at_least("improvement, T releases of equal loss in zCDP", np.sqrt(d), d / norms),)
