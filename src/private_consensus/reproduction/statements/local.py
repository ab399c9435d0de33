"""Xiao et al.: local differential privacy of decentralized optimisation."""

import math
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtr
from scipy.stats import binom

from private_consensus.privacy import (
    Budget,
    aggregation,
    gaussian_epsilon,
    gaussian_noise_multiplier,
)

from .base import Part, Parts, at_least, bound, equal, falls_as, geometric, grid, grows_as


def _views(values: tuple[int, int], p: int, colluders: int) -> Counter:
    """Count how often each view of the colluders occurs over all shares of two honest agents.

    A view has the shares sent to the colluders and the two broadcasts less the colluders' shares.
    """
    counts: Counter = Counter()
    for shares in product(range(p), repeat=2 * (colluders + 1)):
        # The last share goes to the other honest agent.
        sent = shares[: colluders + 1], shares[colluders + 1 :]
        broadcasts = (
            (values[0] - sum(sent[0]) + sent[1][-1]) % p,
            (values[1] - sum(sent[1]) + sent[0][-1]) % p,
        )
        counts[*sent[0][:-1], *sent[1][:-1], *broadcasts] += 1
    return counts


def theorem_2_1() -> Parts:
    """Test that N - 2 colluders learn only the sum of the values of the other two agents.

    Three, four and five agents, all shares modulo 3 or 2. The view of the colluders has the same
    distribution for two pairs of values with equal sums. N - 1 colluders learn the last agent's
    value from the sum.
    """
    inequalities = []
    for p, colluders, values_1, values_2 in ((3, 1, (0, 2), (1, 1)), (2, 2, (0, 1), (1, 0)),
                                     (2, 3, (0, 0), (1, 1))):  # fmt: skip
        first, second = (_views(values, p, colluders) for values in (values_1, values_2))
        views = sorted(first | second)
        quantity = f"how often each view of {colluders} of {colluders + 2} agents occurs"
        inequalities.append(equal(quantity, [first[v] for v in views], [second[v] for v in views]))
        sums = {sum(view) % p for view in first}
        inequalities.append(equal("sum of all shares (plus 1)", sum(values_1) % p + 1.0,
                           np.array(list(sums)) + 1.0))  # fmt: skip
    return tuple(inequalities)


def algorithm_1() -> Parts:
    """Run Algorithm 1 with both signs of the dual update; compare the distances between agents.

    Five agents with quadratics on a complete graph, 60 iterations without noise, penalty 4 and
    zeta = 1/2.
    """
    targets = np.array([1.0, -1.0, 2.0, 0.0, 0.5])
    agents, distances = len(targets), []
    for sign in (-1.0, 1.0):  # as published, and reversed
        x, dual = np.zeros(agents), np.zeros(agents)
        for _ in range(60):
            mean = (x.sum() - x) / (agents - 1)
            x = (x + mean) / 2 - (x - targets) / 4.0 + dual / 4.0
            dual = dual + sign * 0.5 * (x.sum() - agents * x)
        distances.append(np.ptp(x) / np.ptp(targets))
    return (
        bound("distance between agents, published sign", 1e-6, distances[0]).marked(
            "detail", "E1.8"),
        bound("distance between agents, sign of (6)", 1e-6, distances[1]),
    )  # fmt: skip


def lemma_2_1() -> Parts:
    """Test definition (8) of the privacy loss, with and without the exponential.

    The loss (9) is a logarithm, so that e^epsilon is meant. With a loss that depends on the output
    X, Gaussian noise satisfies the definition, but no bound holds for all X.
    """
    losses = np.array([0.05, 0.2, 0.567, 1.0, 3.0])
    ratio = np.exp(losses)  # the largest quotient of densities, at one-sided outputs
    outputs = np.array([1.0, 10.0, 100.0, 1000.0])
    gaussian = np.abs(((outputs - 1) ** 2 - outputs**2) / 2)  # N(0, 1) against N(1, 1)
    return (
        bound("quotient of posteriors by (8), epsilon", losses, ratio).marked(erratum="E1.6"),
        bound("quotient of posteriors by e^epsilon", np.exp(losses), ratio).marked("remark"),
        bound("loss of Gaussian noise at X = 1, 10, 100, 1000, over that at X = 1",
              1.0, gaussian / gaussian[0]).marked("remark", "E1.1"),
    )  # fmt: skip


def theorem_2_2() -> Parts:
    """Test that (10) bounds the log-ratio of densities, and is at most alpha beta B.

    4,000 random outputs, lengths, noise scales and changes, with 41 shifts each.
    """
    rng = np.random.default_rng(1)
    length, beta = rng.uniform(0.05, 2, 4000), rng.uniform(0.5, 12, 4000)
    change, relative_position = rng.uniform(1e-3, 0.3, 4000), rng.uniform(-0.5, 1.5, 4000)
    position = relative_position * length
    stated = aggregation.realised_loss(position, length, beta, change)
    middle, largest_log_ratio = position - length / 2, np.zeros(4000)
    for fraction in np.linspace(-1, 1, 41):
        moved_mass = aggregation.log_mass(np.abs(middle - fraction * change), length, beta)
        centre_mass = aggregation.log_mass(np.abs(middle), length, beta)
        largest_log_ratio = np.maximum(largest_log_ratio, np.abs(centre_mass - moved_mass))
    inside = (relative_position > 0) & (relative_position < 1)
    return (
        bound("log-ratio over moves, (10)", stated, largest_log_ratio),
        bound("(10) against alpha beta B", beta * change, stated),
        bound("(10) inside the interval", (beta * change)[inside] * (1 - 1e-12), stated[inside],
              0.0),
    )  # fmt: skip


def sentence_4() -> Parts:
    """Compute the privacy loss of Laplace noise if all d = 10 coordinates change by B_inf.

    The log-ratio of densities at (-1, ..., -1), with alpha beta B_inf = 0.1.
    """
    change, output = np.full(10, 0.1), -np.ones(10)
    loss = np.sum(np.abs(output - change) - np.abs(output))
    return (bound("epsilon of a release of ten coordinates", 0.1, loss).marked(erratum="E1.2"),)


def sentence_5() -> Parts:
    """Compute the largest change of b times a logistic gradient, for two codes of the labels.

    Records ((1,1,0), 1) and ((1,0,1), 0 or -1), model (0, -20, 20).
    """
    model, records = np.array([0.0, -20.0, 20.0]), np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])

    def change(labels: tuple[int, int]) -> float:
        y = np.array(labels)[:, None]
        gradients = -y * records * expit(-y * (records @ model)[:, None])
        return float(np.abs(gradients[0] - gradients[1]).max())

    return (
        bound("change of b times the gradient, labels 0 and 1", 1.0, change((1, 0))),
        bound("change of b times the gradient, labels -1 and 1", 1.0, change((1, -1))).marked(
            "remark", "E1.3"),
    )  # fmt: skip


def theorem_2_3() -> Parts:
    """Compare (11) with the average privacy loss, computed by quadrature.

    180 lengths, noise scales and changes, including those of Figure 1: (11) is too small by a term
    of second order in the change. The largest loss is that of an output uniform on an interval of
    0.5, beta = 6, change 1e-4. (27) has omega = 0.5 in place of beta = 6 in the exponent, at a
    change of 0.01.
    """
    lengths, noises = np.linspace(0.05, 1.0, 12), (2.0, 4.0, 6.0, 8.0, 10.0)
    length, beta, change = grid(lengths, noises, (1e-3, 1e-2, 0.04))
    stated = aggregation.printed_bound(length, beta, change)
    exact = aggregation.exact_average(length, beta, change)
    tiny = np.array(0.5), np.array(6.0), np.array(1e-4)
    largest = aggregation.realised_loss(np.array(2.0), *tiny) / (6.0 * 1e-4)
    omega, change = 0.5, 0.01
    with_omega = math.log(
        math.exp(omega * change) * (1 - 2 * _inside(0.0)) + 2 * _inside(-change)
    ) / (6.0 * change)
    average = aggregation.exact_average(np.array(omega), np.array(6.0), np.array(change))
    return (
        bound("gamma", stated, exact).marked(erratum="E1.5"),
        bound("largest loss over that of fixed weights, against the mean",
              aggregation.exact_average(*tiny), largest).marked("remark", "E1.4"),
        bound("average loss over alpha beta B, against (27)", with_omega, average).marked(
            "remark", "E1.9"),
    )  # fmt: skip


def _inside(shift: float) -> float:
    """Return the probability of one half of the interval of (27), whose centre is shifted."""
    x = np.linspace(0, (0.5 - 0.01) / 2, 2001)[:, None]
    y = np.linspace(0, 0.5, 2001)
    densities = np.trapezoid(6.0 / (2 * 0.5) * np.exp(-6.0 * np.abs(x - y - shift)), y, axis=1)
    return float(np.trapezoid(densities, x[:, 0]))


def _by_footnote(epsilon: float, rounds: float, delta: float) -> float:
    """Return the bound of footnote 1 for several rounds with an equal loss epsilon."""
    deviation_term = np.sqrt(2 * rounds * epsilon**2 * math.log(1 / delta))
    return rounds * epsilon * math.tanh(epsilon / 2) + deviation_term


def _stopped(epsilon: float, rounds: int, delta: float) -> tuple[float, float]:
    """Return the probability that responses exceed the footnote's bound, and the required delta.

    An agent stops once the loss of its responses exceeds the bound for them.
    """
    heads = np.arange(rounds + 1)
    mass = np.append(1.0, np.zeros(rounds))
    exceeding = required = 0.0
    for n in range(1, rounds + 1):
        mass = mass * (1 - expit(epsilon)) + np.append(0.0, mass[:-1]) * expit(epsilon)
        excess = epsilon * (2.0 * heads - n) - _by_footnote(epsilon, n, delta)
        is_stopped = excess > 0
        exceeding += mass[is_stopped].sum()
        required += (mass[is_stopped] * -np.expm1(-excess[is_stopped])).sum()
        mass = np.where(is_stopped, 0.0, mass)
    return float(exceeding), float(required)


def footnote_1() -> Parts:
    """Test the composition of footnote 1 for fixed and for output-dependent losses.

    Exact computation for randomised response. The cited theorem has losses that are fixed in
    advance. If an agent stops when its loss exceeds the bound, the final loss exceeds it with a
    probability above delta; no case requires more than delta for (epsilon, delta)-DP.
    """
    fixed, stopped = [], []
    for epsilon, delta in product((0.1, 0.2, 0.5), (0.1, 0.01)):
        for rounds in (1, 30, 300):
            heads = np.arange(rounds + 1)
            weight = binom.pmf(heads, rounds, expit(epsilon))
            excess = epsilon * (2.0 * heads - rounds) - _by_footnote(epsilon, rounds, delta)
            fixed.append(float((weight * -np.expm1(-excess.clip(0))).sum()) / delta)
        stopped.append(np.array(_stopped(epsilon, 300, delta)) / delta)
    exceeding, required = np.array(stopped).T
    return (
        bound("needed delta over delta, fixed losses", 1.0, fixed),
        bound("needed delta over delta, losses that depend on outputs", 1.0, required),
        bound("probability that the loss exceeds the bound over delta", 1.0, exceeding).marked(
            "remark", "E1.4"),
    )  # fmt: skip


def equation_71() -> Parts:
    """Test the increase of the loss function by noise in the model, for l1-bounded gradients.

    d from 2 to 10,000, by quadrature. In a generalised linear loss, <z, Delta> is one normal
    variable of deviation |z| sigma for every d. Theorems 4.1 and 4.2 rest on this step.
    """
    d = np.array([2, 10, 100, 10_000])
    x = np.linspace(0, 12, 24_001)
    largest = np.array([np.trapezoid(1 - (2 * ndtr(x) - 1) ** n, x) for n in d])
    return (bound("E max |Delta_l| over sigma", np.sqrt(2 * np.log(2 * d)), largest),)


class QuadraticSetting(NamedTuple):
    """Parameters of (12), or of (13) if ``first_order``, for quadratics in two dimensions.

    Their curvature is m. The constraint is sum x_i = c with A_i = I, or consensus on a path: A_i
    has one row per edge. ``weight`` is that of the multiplier in the norm G; by default 1/zeta, as
    in the proof of Theorem 3.1.
    """

    m: float
    rho: float
    spread: float
    D: float
    zeta: float
    alpha: float
    agents: int = 3
    is_path: bool = False
    first_order: bool = False
    weight: float | None = None

    @property
    def A(self) -> np.ndarray:
        """Constraint matrix; shape (constraints, agents). Column i acts on both coordinates."""
        eye = np.eye(self.agents)
        return eye[:-1] - eye[1:] if self.is_path else np.ones((1, self.agents))


PROOF = QuadraticSetting(m=10.0, rho=2.0, spread=0.1, D=3.0, zeta=1.0, alpha=1.37)
"""Parameters that satisfy condition (43), with the two symbols of (39)."""
PATH = QuadraticSetting(150.0, 1.0, 0.0, D=4.0, zeta=0.5, alpha=10.0, agents=10, is_path=True)
"""Consensus of ten agents, with parameters that satisfy (43)."""
FIRST_ORDER = QuadraticSetting(40.0, 2.0, 0.1, D=1700.0, zeta=1.0, alpha=1.37, first_order=True)
"""Parameters that satisfy (48), with M the square of the smoothness."""
FLAT = QuadraticSetting(0.1, 0.01, 0.0, D=0.03, zeta=0.005, alpha=300.0, first_order=True)
"""Parameters that satisfy (48) with M, but not with the square root of M, for losses with M < 1."""


def _distances(
    setting: QuadraticSetting, rounds: int, noise: Callable[[int], float] | None = None
) -> np.ndarray:
    """Run (12) or (13); return the squared G-norm of :math:`u^k - u^*` before each iteration."""
    rng = np.random.default_rng(2)
    targets = rng.normal(size=(setting.agents, 2))
    A, c = setting.A, np.array([[0.0, 0.0]] if setting.is_path else [[1.0, -0.5]])
    multiplier = np.linalg.solve(A @ A.T, setting.m * (c - A @ targets))
    solution = targets + A.T @ multiplier / setting.m
    x, dual, norms = np.zeros_like(targets), np.zeros_like(multiplier), []
    weight = setting.weight or 1 / setting.zeta
    for k in range(rounds):
        norms.append(
            ((x - solution) ** 2).sum() * setting.D + weight * ((dual - multiplier) ** 2).sum()
        )
        rho = setting.rho * (1 + setting.spread * rng.uniform(-1, 1, size=(setting.agents, 1)))
        pull = A.T @ dual - rho * (A.T @ (A @ x - c)) + setting.D * x
        if setting.first_order:
            x = (pull - setting.m * (x - targets)) / setting.D
        else:
            x = (pull + setting.m * targets) / (setting.D + setting.m)
        if noise is not None:
            x = x + noise(k) * rng.laplace(size=x.shape)
        dual = dual - setting.zeta * (A @ x - c)
    return np.array(norms)


def _contraction_rate(setting: QuadraticSetting) -> float:
    """Return the contraction rate p of (42) or (47), with M = m^2.

    Each A_i is a column, so that the squares of its smallest nonzero and of its largest singular
    value are equal.
    """
    M, N, sigma_2 = setting.m**2, setting.agents, (setting.A**2).sum(0)
    D, zeta, alpha, first_order = setting.D, setting.zeta, setting.alpha, setting.first_order
    largest, deviation = setting.rho * (1 + setting.spread), setting.rho * setting.spread
    penalty_term = alpha * (N * largest**2 + deviation**2) * sigma_2
    factor = 2 if first_order else 1
    first = ((2 / factor) * setting.m - penalty_term) / (5 * factor * M / (zeta * N * sigma_2) + D)
    margin = D - N * sigma_2 / alpha - (M if first_order else 0)
    squares = D**2 + (2 * M if first_order else 0)
    second = margin / (5 * squares / (zeta * N * sigma_2) + 5 * sigma_2 * N * largest**2 / zeta)
    third = 2 * setting.rho / zeta - N / (alpha * zeta) - 1
    return float(min(first.min(), second.min(), third / (5 * N * (largest**2 / zeta**2 + 1 / N))))


def contraction(quantity: str, setting: QuadraticSetting, rounds: int = 60) -> Part:
    """Test that each iteration reduces the squared G-norm by the factor 1 + p."""
    norms = _distances(setting, rounds)
    above_rounding = norms[1:] > 1e-20
    p = max(_contraction_rate(setting), 0.0)
    return bound(quantity, norms[:-1][above_rounding] / (1 + p), norms[1:][above_rounding])


def theorem_3_1() -> Parts:
    """Test linear convergence, and the contraction by 1 + p of (42), within (43).

    Three agents with sum x_i = c and random penalties, or consensus of ten agents on a path with
    equal penalties, for which A_i^T is not injective. The norm G has the weight 1/zeta, as in the
    proof, or zeta, as in the theorem. The remark has equal penalties and D_i > N / alpha.
    """
    path = _distances(PATH, 8000)[4000:]
    zeta_in_G = PROOF._replace(zeta=0.02, weight=0.02)
    one_symbol = QuadraticSetting(m=0.1, rho=2.0, spread=0.0, D=0.01, zeta=1.0, alpha=1000.0)
    return (
        geometric("decline of ln distance, consensus on a path", np.arange(len(path)), path),
        contraction("distance after an iteration, A_i = I", PROOF),
        contraction("distance, consensus on a path of ten agents", PATH, 1500).marked(
            "detail", "E1.11"),
        contraction("distance, A_i = I, zeta = 0.02 in G", zeta_in_G).marked("detail", "E1.13"),
        contraction("distance, rho_max the largest deviation in both places", one_symbol).marked(
            "remark", "E1.7"),
    )  # fmt: skip


def theorem_3_2() -> Parts:
    """Test that the first-order version (13) contracts by 1 + p of (47), at a linear rate.

    Three agents with sum x_i = c within (48), losses of curvature 40 and 0.1, M = 1600 and 0.01.
    """
    norms = _distances(FIRST_ORDER, 1200)[400:]
    return (
        contraction("distance after an iteration, M = 1600", FIRST_ORDER),
        geometric("decline of ln distance, late against early, M = 1600", np.arange(800), norms),
        contraction("distance after an iteration, M = 0.01", FLAT, 10).marked(
            erratum="E1.12"),
    )  # fmt: skip


LENGTH = 600
"""Number of iterations of the runs whose residual is measured and whose noise is calibrated."""


def _residual(dim: int, epsilon: float, relaxed: bool) -> float:
    """Return the mean square distance to the solution in runs of (13) with noise for a budget.

    B_inf = 1. Each of ``dim`` coordinates has Laplace noise for the l1 change d B_inf, or Gaussian
    noise for the l2 change sqrt(d) B_inf, divided by D. The mean is over the second half of the
    iterations.
    """
    s, rng, runs = FIRST_ORDER, np.random.default_rng(7), 2400 // dim
    if relaxed:
        multiplier = gaussian_noise_multiplier(Budget(epsilon, 1e-5), LENGTH)
        noise_scale, sample = multiplier * math.sqrt(dim) / s.D, rng.standard_normal
    else:
        noise_scale, sample = dim * LENGTH / epsilon / s.D, lambda shape: rng.laplace(size=shape)
    # The recursion is linear: the distance does not depend on the solution, which is set to 0.
    x, dual, summed_squares = np.zeros((runs, s.agents, dim)), np.zeros((runs, 1, dim)), 0.0
    for k in range(LENGTH):
        rho = s.rho * (1 + s.spread * rng.uniform(-1, 1, size=(runs, s.agents, 1)))
        others_sum = x.sum(1, keepdims=True) - x
        x = (dual - rho * others_sum + (s.D - rho - s.m) * x) / s.D + noise_scale * sample(x.shape)
        dual = dual - s.zeta * x.sum(1, keepdims=True)
        if 2 * k >= LENGTH:
            summed_squares += float((x**2).sum() + (dual**2).sum()) / runs
    return summed_squares / (LENGTH / 2)


def theorem_3_3() -> Parts:
    """Test that noise leaves a residual error, and its exponents in d and epsilon.

    The distance of (13) without noise, and with noise that decreases as 0.98^k, M = 1600. The
    exponents are those of the mean square distance in 2,400 / d runs of 600 iterations with noise
    for the budget, d from 2 to 32. With M = 0.01, (14) fails without noise, as in Theorem 3.2.
    """
    noiseless = _distances(FIRST_ORDER, 1000)
    fading_noise = _distances(FIRST_ORDER, 1000, noise=lambda k: 0.05 * 0.98**k)
    dims, budgets = np.array([2, 4, 8, 16, 32]), np.array([0.1, 0.3, 1.0, 3.0])
    pure_residuals = [_residual(d, 1.0, relaxed=False) for d in dims]
    relaxed_residuals = [_residual(d, 1.0, relaxed=True) for d in dims]
    by_budget = [_residual(4, epsilon, relaxed=False) for epsilon in budgets]
    flat = _distances(FLAT, 10)
    return (
        bound("distance with fading noise", 1e-3 * fading_noise[0], fading_noise[-1]),
        bound("distance without noise", 1e-3 * noiseless[0], noiseless[-1]),
        grows_as("exponent of d, pure", dims, pure_residuals, 3.0),
        grows_as("exponent of d, relaxed", dims, relaxed_residuals, 2.0),
        grows_as("exponent of 1/epsilon", 1 / budgets, by_budget, 2.0),
        bound("distance without noise, M = 0.01", flat[0], flat[-1]),
    )


CENTRES = np.linspace(-1, 3, 5) ** 2 - 1
r"""Centres :math:`a_i` of the losses :math:`\sqrt{1+(x-a_i)^2}` of five agents."""
POINTS = np.linspace(-2, 9, 11_001)


def _sum_of_losses(x: np.ndarray) -> np.ndarray:
    """Return the objective at points; shape (points,)."""
    return np.sqrt(1 + (x[:, None] - CENTRES) ** 2).sum(1)


def excess_of_descent(horizons: np.ndarray, noise: float = 0.0, runs: int = 1) -> np.ndarray:
    r"""Return the mean excess of the averaged iterate of descent with steps :math:`1/\sqrt k`.

    ``horizons`` are numbers of iterations K, and ``noise`` is V, the standard deviation of the
    noise over the step size. Agents average all models.
    """
    rng, weights = np.random.default_rng(4), np.full((5, 5), 1 / 5)
    x, total, excess = np.full((runs, 5), 3.0), np.zeros(runs), []
    for k in range(1, int(horizons[-1]) + 1):
        total += x.mean(1)
        if k in horizons:
            mean_loss = float(_sum_of_losses(total / k).mean())
            excess.append(mean_loss - float(_sum_of_losses(POINTS).min()))
        mixed = x @ weights.T
        slope = (mixed - CENTRES) / np.sqrt(1 + (mixed - CENTRES) ** 2)
        if noise:
            slope = slope + noise * rng.standard_normal(slope.shape)
        x = mixed - slope / math.sqrt(k)
    return np.array(excess)


def bound_of_descent(K: np.ndarray, V: float) -> np.ndarray:
    """Return the bound of Theorem 3.4 on the excess after K iterations from 3, for c = 1."""
    start = 5 * (3.0 - POINTS[_sum_of_losses(POINTS).argmin()]) ** 2
    steps = 5 * (np.log(K) + 2) * np.sqrt(K + 1) * (1 + V**2)
    return (np.sqrt(K) * start + steps) / K


def theorem_3_4() -> Parts:
    r"""Test the error bound of noisy descent with steps :math:`\eta_k = 1/(c\sqrt k)`.

    Five agents with the losses sqrt(1 + (x - a_i)^2), whose gradients are at most 1; K from 10 to
    1,000, noise of three sizes, 100 runs each, c = 1.
    """
    lengths, K = np.array([30, 100, 300, 1000, 3000]), np.array([10, 100, 1000])
    pairs = [(bound_of_descent(K, V), excess_of_descent(K, V, 100)) for V in (0.0, 1.0, 3.0)]
    noiseless = excess_of_descent(lengths)
    return (
        bound("excess of the averaged iterate, five agents", *np.swapaxes(pairs, 0, 1)),
        falls_as("exponent of K, five agents, without noise", lengths, noiseless, 0.5),
    )


DIM, ROUNDS = 14, 300
"""Coordinates and iterations of the experiment on coordinate descent."""


def mu_of_coordinate_descent(
    epsilon: float, excess: float, counts: np.ndarray, changes: np.ndarray
) -> np.ndarray:
    r"""Return the Gaussian-DP :math:`\mu` of all messages of private coordinate descent.

    Coordinate l is chosen :math:`A_l` (``counts``) times; a message moves by
    :math:`\mathcal B_l^c/\hat M` (``changes``): :math:`\mu^2 = \sum_l A_l(\mathcal
    B_l^c/\hat M)^2/\sigma^2`. a, ``excess``, is the allowed excess of a count over its mean.
    """
    squares = changes**2
    mean_count = counts.sum(-1) / counts.shape[-1]
    variance = (1 + excess) * squares.sum(-1) * mean_count / epsilon**2
    return np.sqrt((counts * squares).sum(-1) / variance)


def sentence_1() -> Parts:
    """Compare the epsilon of private coordinate descent with the one in its noise formula.

    d = 14, K = 300, as in the experiment; a from 0.5 to 2, 500 random counts and gradients.
    """
    rng = np.random.default_rng(1)
    budgets, excesses = np.array([0.1, 0.5, 1.0, 2.0, 5.0]), np.array([0.5, 1.0, 2.0])
    counts = rng.multinomial(ROUNDS, np.full(DIM, 1 / DIM), size=500)
    changes = rng.dirichlet(np.full(DIM, 0.3), size=500) ** 0.5
    mus, tails = [], []
    for epsilon, excess in product(budgets, excesses):
        within = counts.max(-1) < (1 + excess) * ROUNDS / DIM
        mu = mu_of_coordinate_descent(epsilon, excess, counts[within], changes[within])
        mus.append((epsilon, mu.max()))
    for excess, rounds in product((0.1, 0.3, 1.0, 2.0, 4.0), (ROUNDS, 10 * ROUNDS)):
        mean_count = rounds / DIM
        min_count = math.ceil((1 + excess) * mean_count - 1e-9)
        chernoff = math.exp(-(excess**2) * mean_count / (2 + excess))
        tails.append((chernoff, binom.sf(min_count - 1, rounds, 1 / DIM)))
    even_counts = np.full(DIM, ROUNDS / DIM)
    even_mus = [mu_of_coordinate_descent(e, 1.0, even_counts, np.ones(DIM)) for e in budgets]
    quantity = "epsilon at delta = 1e-5, a = 1, all coordinates chosen K/d times"
    losses = bound(quantity, budgets, gaussian_epsilon(np.array(even_mus), 1e-5))
    return (
        bound("mu, no coordinate chosen (1 + a) K/d times", *np.array(mus).T),
        bound("probability that a coordinate is chosen (1 + a) K/d times", *np.array(tails).T),
        losses.marked(erratum="E1.10"),
    )


def _largest_loss(shift: float, moved_fraction: float) -> float:
    """Return the largest log-ratio of a mixture of two Laplace densities to the first density."""
    outputs = np.linspace(-20, shift + 20, 4001)
    first, second = np.exp(-np.abs(outputs)), np.exp(-np.abs(outputs - shift))
    mixture = (1 - moved_fraction) * first + moved_fraction * second
    return float(np.abs(np.log(mixture / first)).max())


def sentence_2() -> Parts:
    """Compare the privacy loss of a gradient of sampled records with that of all records.

    One step with Laplace noise, the mean gradient of 1 to 50 of 100 records. In Definition 1 an
    agent may replace its function, so that every batch changes by the same amount. In the
    experiments one record may change: by convexity, the loss of a batch is never below that of all
    records. However, sampling amplifies the privacy against a batch whose records are known.
    """
    records, losses = 100, (0.1, 1.0, 10.0)
    every_record = [_largest_loss(loss, 1.0) for loss in losses]
    full, sampled, fixed_batch = [], [], []
    for loss, batch in product(losses, (1, 5, 20, 50)):
        full.append(_largest_loss(loss / records, 1.0))
        sampled.append(_largest_loss(loss / batch, batch / records))
        fixed_batch.append(_largest_loss(loss / batch, 1.0))
    return (
        equal("loss if all records of an agent may change, batch over all records", losses,
              every_record),
        at_least("loss if one record changes, batch over all records, equal noise", full, sampled),
        at_least("loss if one record changes, sampled batch over a known batch", fixed_batch,
                 sampled).marked("detail"),
    )  # fmt: skip
