"""Wang et al.: consensus plus innovation."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

from private_consensus.core.networks import laplacian

from .base import StatementResult, bound, conclude, falls_as

EXAMPLE = np.array(
    [[0, 1, 0, 1, 0], [1, 0, 1, 0, 1], [0, 1, 0, 1, 0], [1, 0, 1, 0, 1], [0, 1, 0, 1, 0]], float
)
"""Adjacency matrix of the example in section 5."""


def _example_rows(t: float) -> np.ndarray:
    """Return the measurement rows of section 5 at time t, shape (agents, 2)."""
    s, c = math.sin(t), math.cos(t)
    return np.array([[1 + s, 0], [1 - c, 0], [0, 1 + c], [1, 1 - s], [1, s / 2]])


def _coupling(rows: np.ndarray) -> np.ndarray:
    """Return the coupling L x I_n + H H^T of the example for one measurement row per agent."""
    blocks = block_diag(*(np.outer(row, row) for row in rows))
    return np.kron(laplacian(EXAMPLE), np.eye(rows.shape[1])) + blocks


def _moments(
    eigenvalues: Iterable[float],
    initial: Iterable[float],
    steps: ArrayLike,
    noise_scale: ArrayLike,
    own_noise: float = 0.0,
) -> np.ndarray:
    r"""Return the exact :math:`E\,V(t)` of (8) for a constant coupling, computed mode by mode.

    Laplace noise of scale :math:`\sigma_t` has variance :math:`2\sigma_t^2` and enters with the
    factor :math:`1 - \alpha\lambda`. Measurement noise of variance ``own_noise`` enters with the
    factor :math:`\alpha`.
    """
    alpha, sigma = np.asarray(steps), np.asarray(noise_scale)
    total = np.zeros(len(alpha))
    for eigenvalue, initial_error in zip(eigenvalues, initial, strict=True):
        factor = 1 - alpha * eigenvalue
        added_noise = factor**2 * 2 * sigma**2 + alpha**2 * own_noise
        total += _recursion(factor**2, added_noise, initial_error**2)
    return total


def _recursion(factor: np.ndarray, added: np.ndarray, first: float) -> np.ndarray:
    """Solve V(t) = factor(t) V(t-1) + added(t) for all t, in logarithms."""
    with np.errstate(divide="ignore"):
        log_product = np.cumsum(np.log(factor))
        terms = np.append(np.log(first), np.log(added) - log_product)
        log_sums = np.logaddexp.accumulate(terms)
    return np.exp(log_product + log_sums[1:])


def lemma_3_5() -> StatementResult:
    """Test adaptive composition for random pairs of mechanisms with few outcomes.

    2,000 pairs of mechanisms. The answer of the first one determines the second one.
    """
    rng = np.random.default_rng(1)
    pairs = []
    for _ in range(2000):
        first = rng.dirichlet(np.ones(3), size=2)
        second = rng.dirichlet(np.ones(3), size=(2, 3))  # one distribution per earlier answer
        losses = np.abs(np.log(second[0] / second[1])).max()
        joint = np.log(first[0] / first[1])[:, None] + np.log(second[0] / second[1])
        pairs.append((np.abs(np.log(first[0] / first[1])).max() + losses, np.abs(joint).max()))
    return conclude(bound("largest log-ratio of two answers", *np.array(pairs).T))


def lemma_4_4() -> StatementResult:
    """Test the bound on the l1 change of a message if one measurement changes.

    1,500 random matrices with up to three rows. The sum over all entries is a bound; the largest
    row sum is a smaller one (errata E3.3). Both are equal for one row.
    """
    rng = np.random.default_rng(2)
    alpha, delta, pairs = 0.3, 0.2, []
    for _ in range(1500):
        H = rng.normal(size=(rng.integers(1, 4), rng.integers(1, 4)))
        change = rng.laplace(size=len(H)) * (rng.random(len(H)) < 0.5)
        change[rng.integers(len(H))] += 1
        change *= delta / np.abs(change).sum()
        pairs.append((alpha * delta * np.abs(H).sum(), alpha * np.abs(H.T @ change).sum()))
    return conclude(bound("l1 change of x_i(t)", *np.array(pairs).T))


def theorem_4_5() -> StatementResult:
    """Test the epsilon of one message for Laplace densities whose means differ as in Lemma 4.4.

    300 random measurement rows. The outputs include those with the largest log-ratio.
    """
    rng = np.random.default_rng(3)
    epsilon, alpha, delta = 0.8, 0.5, 0.2
    pairs = []
    for _ in range(300):
        row = rng.normal(size=2)
        sigma = alpha * delta * np.abs(row).sum() / epsilon
        shift = alpha * delta * row
        outputs = np.concatenate([rng.laplace(size=(50, 2)), shift + np.eye(2), -shift - np.eye(2)])
        ratio = (np.abs(outputs - shift) - np.abs(outputs)).sum(1) / sigma
        pairs.append((epsilon, np.abs(ratio).max()))
    return conclude(bound("epsilon of a message", *np.array(pairs).T))


def lemma_4_9() -> StatementResult:
    """Test that the smallest eigenvalue of the coupling matrix L x I + H H^T is positive."""
    rng = np.random.default_rng(4)
    eigenvalues = [np.linalg.eigvalsh(_coupling(_example_rows(t)))[0] for t in range(400)]
    for _ in range(500):
        rows = rng.normal(size=(5, 2)) * (rng.random((5, 1)) < 0.6)
        if np.linalg.eigvalsh(rows.T @ rows)[0] > 1e-3:
            eigenvalues.append(np.linalg.eigvalsh(_coupling(rows))[0])
    not_positive = np.array(eigenvalues) < 1e-12
    return conclude(
        bound("cases whose smallest eigenvalue is not positive", 0.0, not_positive),
        description=f"400 times of the example and {len(eigenvalues) - 400} random sets "
        "of rows that are jointly observable: the smallest eigenvalue is "
        f"{min(eigenvalues):.2g}, above 0.",
    )


def lemma_4_10() -> StatementResult:
    """Test that V(t) = (1 - q) V(t-1) + noise tends to 0 if noise / q tends to 0.

    40 random recursions. For every s, V(t) is at most V(s) times a product that tends to 0, plus
    the largest quotient noise / q after s.
    """
    rng = np.random.default_rng(5)
    T, pairs = 20_000, []
    t = np.arange(T)
    for _ in range(40):
        q = 1 / (1 + t) ** rng.uniform(0.1, 1.0)
        quotient = 1 / np.log(3 + t) ** rng.uniform(0.5, 2)
        q[0] = 0.5  # a factor of 0 would remove the start
        values = _recursion(1 - q, q * quotient, rng.uniform(0.1, 10))
        for s in (100, 1000, 10_000):
            remaining = np.exp(np.log1p(-q[s + 1 :]).sum()) * values[s]
            pairs.append((remaining + quotient[s + 1], values[-1]))
    return conclude(bound("V(t)", *np.array(pairs).T))


def theorem_4_11() -> StatementResult:
    r"""Test the convergence rates for steps that decrease as a power of t, by exact moments.

    The published condition :math:`b_0 \le \min(\lambda_2, \eta_0)` permits too large values. For
    consensus the smallest eigenvalue of the coupling is at most :math:`\eta_0/N`. For one parameter
    and :math:`H_i = h` it is :math:`h^2`, with :math:`\eta_0 = N h^2`.
    """
    T = 100_000
    t = np.arange(1, T + 1)
    index = np.unique(np.geomspace(100, T, 30).astype(int)) - 1

    def error(h2, gamma):
        r"""Return the exact :math:`E\,V(t)`, shape (T,)."""
        eigenvalues = np.array([h2, 5.0 + h2])  # the complete graph of five agents
        times = t + 20.0  # skip the first steps, which exceed 1 / lambda
        start = np.array([3.0, 2.0])
        return _moments(eigenvalues, start, times**-gamma, 0.01 * (times - 1) ** -gamma)

    inequalities = [
        falls_as(f"gamma = {g:g}: exponent", t[index] + 20, error(0.5, g)[index], g)
        for g in (0.5, 0.8)
    ]
    gamma_one_error = error(0.3, 1.0)[index]
    inequalities += [
        falls_as(f"gamma = 1, b_0 = {b_0}: exponent", t[index] + 20, gamma_one_error, stated)
        for b_0, stated in (("0.3 < 1", 0.3), ("1.5 > 1 (eta_0 = 1.5)", 1.0))
    ]
    return conclude(
        *inequalities,
        description="Five agents, complete graph (lambda_2 = 5), H_i^2 = h^2: eta_0 = 5 h^2. For "
        "h^2 = 0.3, the theorem permits b_0 = 1.5 and then states O(1/t). The slowest mode has "
        "the eigenvalue 0.3 and decreases as t^-0.6. With b_0 below the smallest eigenvalue of "
        "the coupling, which the proof requires, the rates hold.",
        compound=True,
    )


def theorem_4_13() -> StatementResult:
    """Test that the mean square error vanishes, for steps that decrease at different rates.

    Exact moments for the steps 1/t, t^-0.5, t^-0.2 and 1/ln^2 t, with noise in proportion to them.
    The error falls with the steps, since the mean decays and the noise is averaged.
    """
    T = 100_000
    t = np.arange(1, T + 1) + 20.0
    eigenvalues, start = np.array([0.5, 3.0, 5.0]), np.array([3.0, 1.0, 1.0])
    pairs = []
    for steps in (1 / t, t**-0.5, t**-0.2 / 4, 1 / np.log(t) ** 2):
        steps = np.minimum(steps, 0.19)  # below 1 / 5, where a mode would vanish
        error = _moments(eigenvalues, start, steps, 0.1 * steps, own_noise=0.05)
        pairs.append((0.5 * error[1000], error[-1]))
    return conclude(
        bound("error at t = 100,000 against half of that at t = 1,000", *np.array(pairs).T)
    )


def theorem_4_15() -> StatementResult:
    """Test the total epsilon of T messages, of which the first contains no data.

    One measurement changes one message; the first message contains none (errata E3.1).
    """
    T, epsilon = np.array([1, 2, 10, 100]), 0.4
    return conclude(
        bound("total epsilon of a stream", T * epsilon, (T - 1) * epsilon),
        bound("epsilon of one measurement", T * epsilon, np.full(4, epsilon)),
    )


def theorem_4_16() -> StatementResult:
    r"""Compare the limit of :math:`E\,V(t)` with its published bound (20), for permitted c.

    :math:`\|\mathcal L\|^2`, :math:`\gamma_0`, :math:`b_0` and the noise are those of the theorem.
    The noise of messages and measurements is small.
    """
    q, p, delta, measurement_noise = 0.4, 0.8, 1e-3, 1e-8
    h2 = 0.5
    eigenvalues = np.append(h2, np.full(4, 5.0 + h2))
    start = np.array([2.0, 1.0, 1.0, 1.0, 1.0])
    norm, gamma_0, b_0 = 5.0, 5 * h2, h2
    largest = (norm**2 + gamma_0**2) / b_0
    t = np.arange(200)
    pairs = []
    for c in np.array([0.001, 0.01, 0.1, 0.9]) * largest:
        noise = np.where(t > 0, c * p**t * delta * math.sqrt(h2), 0.0)
        limit = _moments(eigenvalues, start, c * q ** (t + 1.0), noise, measurement_noise)[-1]
        curvature = 2 * norm**2 + 2 * gamma_0**2
        messages = 2 * 5 * delta**2 * h2
        growth = math.exp((2 * b_0 * c * (1 + q) - curvature * c**2) / (1 - q**2))
        stated = (
            growth * (start**2).sum()
            + 3 * c**2 * messages / (1 - p**2)
            + 3 * c**2 * q**2 * gamma_0 * 5 * measurement_noise / (1 - q**2)
            + 3 * c**4 * q**2 * (norm + gamma_0) ** 2 * messages / (1 - q**2 * p**2)
        )
        pairs.append((stated, limit))
    return conclude(
        bound("limit of E V(t), c at 0.001, 0.01, 0.1 and 0.9 of what is allowed",
              *np.array(pairs).T),
        description="(20) has the sign of its exponent reversed, and its sum begins at the step c "
        "instead of c q: 1 - x <= exp(-x) gives exp(-(2 b_0 c q (1+q) - (2|L|^2 + 2 gamma_0^2) "
        "c^2 q^2)/(1 - q^2)). As published the factor of the initial error tends to 0 as c grows, "
        "while steps that large multiply the error.",
    )  # fmt: skip


def theorem_4_17() -> StatementResult:
    """Test the published total epsilon, a geometric sum over the messages that contain data.

    Four pairs of q and p. The sum from t = 1 is q/(p-q), one less than published (errata E3.2).
    """
    pairs = [(0.4, 0.8), (0.1, 0.9), (0.79, 0.8), (0.5, 0.6)]
    t = np.arange(1, 5000)
    return conclude(
        bound("total epsilon", [p / (p - q) for q, p in pairs],
              [((q / p) ** t).sum() for q, p in pairs]),
    )  # fmt: skip
