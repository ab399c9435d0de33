"""Showkatbakhsh et al.: gradient descent with consensus."""

import math
from functools import cache
from itertools import product

import numpy as np
from scipy.special import gammaln

from private_consensus.core.algorithms.families.descent_theorems import (
    advanced_composition_allowance,
    theorem_1_allowance,
    theorem_2_bound,
)
from private_consensus.privacy import gaussian_epsilon, gaussian_mu

from .base import Parts, at_least, bound, equal, falls_as, grid
from .common import lazy_ring_mixing, ring_mixing, second_modulus, vectors_of_norm

EPSILONS = (0.1, 0.5, 1.0, 4.0, 10.0, 50.0)
DELTAS = (1e-2, 1e-3, 1e-6, 1e-9)
HORIZONS = np.array([10, 30, 100, 300])


def proposition_2() -> Parts:
    """Test the noise of the Gaussian mechanism as published, which does not square the sensitivity.

    Exact epsilon for three epsilon, four delta and Delta_2 of 0.5 and 4.
    """
    epsilon, delta = grid((0.1, 0.5, 0.99), DELTAS)
    multiplier = np.sqrt(2 * np.log(1.25 / delta)) / epsilon
    small, large, squared = (
        gaussian_epsilon(ratio / multiplier, delta) for ratio in (math.sqrt(0.5), 2.0, 1.0)
    )
    return (
        bound("epsilon at a sensitivity of 0.5", epsilon, small),
        bound("epsilon at a sensitivity of 4", epsilon, large).marked(erratum="E0.3"),
        bound("epsilon with the square of the sensitivity", epsilon, squared).marked("remark"),
    )


def proposition_3() -> Parts:
    """Test that a projected gradient step changes by at most 2 eta G, for random gradients.

    20,000 pairs of gradients of norm G, with projection on a box.
    """
    rng = np.random.default_rng(2)
    G, eta, box = 1.0, 0.3, 0.5
    z = rng.uniform(-box, box, size=(20_000, 3))
    slopes = vectors_of_norm(rng, G, (2, 20_000, 3))
    slopes[1, :2000] = -slopes[0, :2000]
    first_step, second_step = np.clip(z - eta * slopes, -box, box)
    distances = np.linalg.norm(first_step - second_step, axis=-1)
    return (bound("change of x", 2 * eta * G, distances.max()),)


def theorem_1() -> Parts:
    """Compare epsilon with the exact epsilon of the messages, at equality in (14).

    The transcript of noisy messages is exactly Gaussian with mu^2 = sum Delta^2 / M^2. From x(T)
    without noise, an eavesdropper computes the gradient, T (z - y(T+1)) / eta_1. The exact
    condition on mu^2 is at epsilon 4.
    """
    epsilon, delta = grid(EPSILONS, DELTAS)
    mu = np.sqrt([theorem_1_allowance(*row) for row in zip(epsilon, delta, strict=True)])
    deltas = np.array([1e-3, 1e-6, 1e-9])
    permitted = [theorem_1_allowance(4.0, delta) for delta in deltas]
    return (
        bound("epsilon of the T noisy messages", epsilon, gaussian_epsilon(mu, delta)),
        bound("epsilon with y(T+1) = x(T), sent exactly", 1.0, math.inf).marked(erratum="E0.1"),
        bound("mu^2 that the exact condition permits, against (14)", permitted,
              gaussian_mu(4.0, deltas) ** 2).marked("remark", "E0.2"),
    )  # fmt: skip


def corollary_1() -> Parts:
    """Compare epsilon with the exact epsilon at equality in (15), (14) with sensitivity 2 eta G."""
    G, eta = 1.7, 1.0 / np.arange(1, 51)
    epsilon, delta = grid(EPSILONS, DELTAS)
    kappa = _kappa(epsilon, delta, G)
    noise = np.sqrt((eta**2).sum() / kappa)  # one scale, so that (15) is an equality
    mu = 2 * G * math.sqrt((eta**2).sum()) / noise
    return (bound("epsilon", epsilon, gaussian_epsilon(mu, delta)),)


def _kappa(epsilon, delta, G: float):
    """Return the sum of eta_t^2 / M_t^2 that (15) permits, for gradients of norm at most G."""
    return epsilon**2 / (4 * G**2 * (epsilon + 2 * np.log(2 / delta)))


def _run_stage_one(
    W: np.ndarray, targets: np.ndarray, first_step: float, kappa: float, T: int,
    runs: int, rng: np.random.Generator,
) -> tuple[np.ndarray, float]:  # fmt: skip
    r"""Run Stage I from 0 on the box [-1, 1]^p with the steps ``first_step`` / t.

    The losses are :math:`\frac12\|x - a_i\|^2` with ``targets`` :math:`a_i`, [agents, p]. Return
    x(T), [runs, agents, p], and the scale of the noise of Theorem 2 in the last message.
    """
    x, scale = np.zeros((runs, *targets.shape)), 0.0
    for t in range(1, T + 1):
        messages = x
        if t > 1:
            scale = first_step * math.sqrt(2 / kappa) * T**0.25 * (t - 1) ** -0.75
            messages = x + scale * rng.standard_normal(x.shape)
        z = np.clip(W @ messages, -1, 1)
        x = np.clip(z - first_step / t * (z - targets), -1, 1)
    return x, scale


@cache
def _simulated() -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Simulate Algorithm 1 on a ring of five agents in two dimensions, with epsilon = 40.

    Minimisers lie within a quarter of the box. Return the errors, a row per horizon: squared error
    of the mean, largest squared error of an agent, and |x(T)|^2. Return also the bound of Theorem
    2, its term with the fourth root of T, and the squared scale of the last noise.
    """
    epsilon, agents, dim, runs, rng = 40.0, 5, 2, 400, np.random.default_rng(3)
    targets = rng.uniform(-1 / 4, 1 / 4, size=(agents, dim))
    G = 1.25 * math.sqrt(dim)
    W, kappa, minimiser = ring_mixing(agents), _kappa(epsilon, 1e-3, G), targets.mean(0)
    errors, scale = [], 0.0
    for T in HORIZONS:
        x, scale = _run_stage_one(W, targets, 1.0, kappa, T, runs, rng)
        error = ((x.mean(1) - minimiser) ** 2).sum(-1).mean()
        agent_error = ((x - minimiser) ** 2).sum(-1).mean(0).max()
        errors.append((error, agent_error, (x**2).sum((1, 2)).mean()))
    beta = second_modulus(W)
    stated = theorem_2_bound(HORIZONS, 1 / kappa, G, 1.0, dim, beta, distance=2.0)
    fourth_root_term = 2 * math.sqrt(2 * dim / kappa) * G * (4 + 3 / (1 - beta)) / HORIZONS**0.25
    return np.array(errors), stated, fourth_root_term, scale**2


def _error_on_an_interval(epsilon: float) -> tuple[float, float, float]:
    r"""Simulate one agent with projection on [-1, 1] for 1,000 steps, with the noise of Theorem 2.

    Return its mean square error, the standard error of this mean, and :math:`p\,\eta_1^2/\kappa`.
    The loss is :math:`x^2/2`, so that :math:`\mu = G = 1`, and L = 20.
    """
    runs, first_step, rng = 10_000, 21 / 40, np.random.default_rng(6)
    kappa = _kappa(epsilon, 1e-3, 1.0)
    x, _ = _run_stage_one(np.eye(1), np.zeros((1, 1)), first_step, kappa, 1000, runs, rng)
    standard_error = float((x**2).std(ddof=1)) / math.sqrt(runs)
    return float((x**2).mean()), standard_error, first_step**2 / kappa


def theorem_2() -> Parts:
    """Test the error bound of Stage I in a simulation, its limit for large T, and its proof.

    Five agents on a ring, quadratics on a box, epsilon = 40. The limit, 2p/kappa in the theorem and
    4p/kappa in (31), is compared with the converged error of one agent after 1,000 steps, L = 20
    mu, delta = 0.001. The double sum of (29) is that of (20), (26) and (27) for T = 1,000 and beta
    = 0.9, in units of G^2 N eta_1^2.
    """
    errors, stated, _, last_variance = _simulated()
    paper_error, _, paper_unit = _error_on_an_interval(4.0)
    error, standard_error, unit = _error_on_an_interval(40.0)
    T, beta = 1000, 0.9
    s = np.arange(1, T)
    weights = (beta - beta ** (T - s + 1.0)) / (1 - beta)  # sum of beta^(t-s), t = s+1 to T
    return (
        bound("E|mean of x(T) - x*|^2, five agents, T = 10 to 300", stated, errors[:, 0]),
        bound("its limit with projection, epsilon 4", 2 * paper_unit, paper_error),
        bound("its limit with projection, epsilon 40, less five standard errors",
              2 * unit, error - 5 * standard_error).marked("detail", "E0.7"),
        bound("the same, last term of the proof", 4 * unit, error).marked("remark"),
        bound("E|mean of the released models - mean of x(T)|^2", 0.0,
              2 * last_variance / 5).marked("remark", "E0.4"),
        bound("sum of 1/t up to T = 1,000", math.log(T), (1 / (s + 1)).sum() + 1).marked(
            "remark", "E0.5"),
        bound("double sum of the steps in (29)", math.log(T) / (T * (1 - beta)),
              2 * (weights / s).sum() / T).marked("remark", "E0.9"),
    )  # fmt: skip


def corollary_2() -> Parts:
    """Test the error bound of Stage II, with the published square root of T.

    The simulation is that of Theorem 2. The proof gives T^(1/4); no case was found in which the
    difference matters. The linear rate of Stage II is that of Lemma 1.
    """
    errors, theorem_2_bounds, fourth, _ = _simulated()
    stated = 4 * errors[:, 2] + 2 * (theorem_2_bounds - fourth + fourth * HORIZONS**-0.25)
    quotients = np.array([2.0, 4.0, 20.0])
    a = (1 + quotients) / (2 * quotients)
    return (
        bound("E|x_i(T) - x*|^2, T = 10 to 300", stated, errors[:, 1]),
        bound("its limit over p eta_1^2 / kappa, L = 2, 4, 20 mu", 4.0, 2 / (2 * a - 0.5)),
        bound("factor of the third term by the proof, T = 1,000", 1000**-0.5,
              1000**-0.25).marked("remark", "E0.6"),
    )  # fmt: skip


def _distances_to_the_mean(seed: int) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """Simulate one random run of Stage I with projection, and its continuation in Stage II.

    Return the right side of (53), the norm of the last noise, and the distances of z hat and of z
    to their means, a row for each of t = 2, ..., 8; and the bound and distance of (21).
    """
    agents, dim, box = 4, 2, 1.0
    rng = np.random.default_rng(seed)
    W = lazy_ring_mixing(agents, rng.uniform(0.1, 0.9))
    noise_scale, G = rng.choice([0.01, 0.3, 3.0]), rng.choice([0.1, 1.0])
    slopes = vectors_of_norm(rng, G, (agents, dim))
    x, noises, rows, beta = np.clip(-slopes, -box, box), [], [], second_modulus(W)
    for t in range(2, 9):
        noise = noise_scale * rng.normal(size=x.shape)
        noises.append(np.linalg.norm(noise))
        unprojected = W @ (x + noise)
        z = np.clip(unprojected, -box, box)
        x = np.clip(z - slopes / t, -box, box)
        powers = beta ** (t - np.arange(1, t))
        right_side = 2 * powers @ noises + math.sqrt(agents) * powers @ (G / np.arange(1, t))
        gaps = [np.linalg.norm(values - values.mean(0)) for values in (unprojected, z)]
        rows.append((right_side, noises[-1], *gaps))
    mixed, stage_two = x, []
    for k in range(1, 6):
        mixed = W @ mixed
        stage_two.append((beta**k * np.linalg.norm(x), np.linalg.norm(mixed - mixed.mean(0))))
    return np.array(rows), stage_two


def lemma_1() -> Parts:
    """Test the bounds on the distances of agents to their mean in both stages.

    100 random runs of four agents with projection, with steps and noise of several sizes. The term
    outside the sums is the noise in z(t), as in the proof.
    """
    runs = [_distances_to_the_mean(seed) for seed in range(100)]
    right_sides, noises, _, gaps = np.concatenate([rows for rows, _ in runs]).T
    return (
        bound("distance in Stage I, (20)", noises + right_sides, gaps),
        bound("distance in Stage II, (21)", *np.concatenate([pairs for _, pairs in runs]).T),
    )


def lemma_3() -> Parts:
    """Test the bound on the error after mixing with noise, by exact second moments.

    500 random points and doubly stochastic weights.
    """
    # The moments are without projection, which only reduces the distance.
    rng = np.random.default_rng(5)
    pairs = []
    for _ in range(500):
        agents, dim, M = 5, 3, rng.uniform(0, 2)
        W = lazy_ring_mixing(agents, rng.uniform(0, 1))
        x, point = rng.normal(size=(agents, dim)), rng.normal(size=dim)
        stated = ((x - point) ** 2).sum() + dim * agents * M**2
        pairs.append((stated, ((W @ x - point) ** 2).sum() + dim * M**2 * (W**2).sum()))
    return (bound("sum of E|z_i - x|^2", *np.array(pairs).T),)


def lemma_4() -> Parts:
    """Test the bound on the moment generating function of the loss of two adaptive rounds.

    The noise of the first determines the change of the second. 36 cases, by sums over a grid.
    """
    grid = np.linspace(-12, 12, 4001)
    weight = np.exp(-(grid**2) / 2)
    weight /= weight.sum()
    changes, pairs = (0.3, 1.0, 2.0), []
    for first, second, order in product(changes, changes, (-3.0, -1.0, 0.5, 2.0)):
        shift = np.where(grid > 0, second, 0.2 * second)  # at most `second`, chosen adaptively
        inner = np.exp(order * first * grid + (order * shift) ** 2 / 2)
        pairs.append((math.exp((first**2 + second**2) * order**2 / 2), weight @ inner))
    return (bound("E exp(lambda C_T)", *np.array(pairs).T),)


def lemma_5() -> Parts:
    """Test the bound on the distances of averages before projection, in the runs of Lemma 1."""
    runs = [_distances_to_the_mean(seed)[0] for seed in range(100)]
    right_sides, _, gaps, _ = np.concatenate(runs).T
    return (bound("distance of z hat, (53)", right_sides, gaps),)


AGENTS, DIM, BOX, RECORDS = 10, 5, 5.0, 100
"""Estimation of a mean as in section V, without projection, so that errors are exact sums."""
START = DIM * (0.7 * BOX) ** 2
"""Squared distance of the start 0 to the mean of the records."""


def error_of_algorithm_1(
    epsilon: float, delta: float, horizon: int, records: int = RECORDS
) -> float:
    r"""Return the mean squared l2 distance of the released estimate to the mean of all records.

    The noise has the scales of Theorem 2, for the budget of all messages of an agent in ``horizon``
    steps, and the sensitivity :math:`2R\sqrt p\,\eta_t`.
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

    Without noise: one agent with L = 20 mu, along the direction of curvature mu. The steps q^t/L of
    the predecessor have a finite sum, steps 1/t do not. With noise: the paper's mean, T = 1,000,
    delta = 0.001, exact sums.
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

    10 to 1,000 records, epsilon = 4, delta = 1/(10 N_i). G, mu and L of the local sum cancel in the
    bound. With the sensitivity of one record in kappa, the bound would decrease.
    """
    records = np.array([10, 20, 50, 100, 200, 500, 1000])
    errors = np.array([error_of_algorithm_1(4.0, 1 / (AGENTS * n), 1000, n) for n in records])
    bounds = np.array([bound_of_theorem_2(n) for n in records])
    return (
        bound("error over that with fewer records", 1.0, errors[1:] / errors[:-1]),
        bound("bound of Theorem 2 over that with fewer records", 1.0,
              bounds[1:] / bounds[:-1]).marked("detail", "E0.8"),
    )  # fmt: skip


def sentence_7() -> Parts:
    """Test that Stage II stays in the box without projection, from x(T) as in (12).

    2,000 runs on a ring of ten, box [-5, 5]^5. The corrected Stage II starts from x(T) + n(T) and
    leaves the box, here with the noise of one step at epsilon 0.5.
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


def rate_to_the_ball() -> Parts:
    """Test the rate at which the exact error converges to its limit, for two quotients L / mu.

    Quadratics without projection, T from 100 to 100,000: the noise of step s enters x(T) with the
    product of 1 - a/r over later steps r, a = mu eta_1. The distance of the error to its limit
    falls faster than T^(-1/4): as 1/T at L = mu, and as T^(-1/2) if L is large.
    """
    horizons = np.unique(np.geomspace(100, 1e5, 13).astype(int))

    def error(T: int, a: float) -> float:
        s = np.arange(1, T)
        log = gammaln(T + 1 - a) - gammaln(T + 1) - gammaln(s + 1 - a) + gammaln(s + 1)
        return (np.exp(2 * log) * (math.sqrt(T) * np.arange(1.0, T) ** -1.5)).sum()

    inequalities = []
    for quotient in (1.0, 50.0):
        a = (1 + quotient) / (2 * quotient)
        distances = np.abs([error(T, a) - 1 / (2 * a - 0.5) for T in horizons])
        quantity = f"exponent of T at L = {quotient:g} mu"
        inequalities.append(falls_as(quantity, horizons, distances, 0.25))
    return tuple(inequalities)


def scales_of_noise() -> Parts:
    """Compare the error at the noise scales of Theorem 2 with that at 63 others of equal budget.

    T = 1,000. The stated scales minimise the term of the bound, but not the error of the mean (mu =
    L, no projection), because (30) replaces the weight s^2/T^2 by the larger s/T.
    """
    T = 1000
    t = np.arange(1.0, T + 1)
    stated_squares = t**-1.5

    def at_equal_budget(squares: np.ndarray) -> np.ndarray:
        """Scale squared noise scales so that (15) is an equality."""
        return squares * (1 / (t**2 * squares)).sum()

    rng = np.random.default_rng(2)
    other_squares = [t**-power for power in np.linspace(0, 3, 13)]
    other_squares += [stated_squares * np.exp(rng.normal(size=T)) for _ in range(50)]
    stated_term, *terms = (
        (t * at_equal_budget(squares)).sum() for squares in (stated_squares, *other_squares)
    )
    mean_errors = [(t**2 * at_equal_budget(squares)).sum() for squares in (stated_squares, t**-2)]
    return (
        at_least("second term of (30), other scales over the stated", 1.0, terms / stated_term),
        at_least("error of the mean, scales M_t = 1/t over the stated", 1.0,
                 mean_errors[1] / mean_errors[0]).marked("detail"),
    )  # fmt: skip


def remark_1() -> Parts:
    """Compare the noise of (14) with advanced composition of 1 to 1,000 steps, at nine budgets."""
    epsilon, delta = grid((0.1, 0.5, 0.99), (1e-2, 1e-4, 1e-9))
    pairs = list(zip(epsilon, delta, strict=True))
    permitted = np.array([theorem_1_allowance(*pair) for pair in pairs])
    composed = [advanced_composition_allowance(*pair, T) for pair in pairs for T in (1, 10, 1000)]
    return (
        at_least("sum Delta^2/M^2 by (14), against advanced composition", composed,
                 np.repeat(permitted, 3)),
    )  # fmt: skip


def remark_3() -> Parts:
    """Compare small epsilon with the exact epsilon of the noise that (16) permits.

    Nine budgets. (16) leaves epsilon out of the denominator of (14).
    """
    epsilon, delta = grid((1e-3, 1e-2, 0.1), (1e-4, 1e-6, 1e-9))
    mu = epsilon / np.sqrt(2 * np.log(2 / delta))
    return (bound("epsilon", epsilon, gaussian_epsilon(mu, delta)),)
