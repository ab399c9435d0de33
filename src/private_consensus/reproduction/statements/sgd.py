"""Ding, chapter 4: Q-DPSGD."""

import math

import numpy as np

from private_consensus.core.algorithms.families.decentralized_sgd import (
    theorem11_sigma,
    theorem15_factor,
)
from private_consensus.privacy import (
    Batches,
    Budget,
    Release,
    account,
    deadline_batches,
    fixed_batches,
    noisy_mean,
)
from private_consensus.privacy.brackets import lower_bound

from .base import Parts, bound, falls_as, grid
from .common import ring_mixing, vectors_of_norm

DELTA, RECORDS = 1e-5, 1000
DEADLINE, CONSTANT = deadline_batches(0.4), fixed_batches(20)
"""Batches limited by the deadline of the figures, and of 20 records."""


def _releases(
    epsilon: float, rounds: int, batches: Batches, sampling: str = "fixed_size"
) -> list[Release]:
    """Return the messages of one agent with the noise of Theorem 11."""
    sigma = theorem11_sigma(Budget(epsilon, DELTA), RECORDS, rounds)
    return noisy_mean(batches, RECORDS, sampling=sampling).releases(sigma, rounds)


def theorem_11() -> Parts:
    """Compare the budget with bounds on the epsilon of the noise of Remark 6.

    1,000 records, delta = 1e-5, public batch sizes, replacement of a record. The remark has longer
    runs, and 100 rounds at epsilon 1 for neighbours that have a record more or less and records
    that are sampled independently.
    """
    short = (1.0, 100, DEADLINE), (1.5, 100, DEADLINE), (1.5, 500, DEADLINE), (1.5, 44, CONSTANT)
    long = ((1.0, 300, DEADLINE), (1.5, 700, DEADLINE), (1.5, 60, CONSTANT),
            (1.0, 100, DEADLINE, "poisson"))  # fmt: skip
    attained = [lower_bound(_releases(*run), DELTA).epsilon for run in short]
    accounted = [account(_releases(*run), DELTA).epsilon for run in long]
    return (
        bound("epsilon by an attack, 44 to 500 rounds", [run[0] for run in short],
              attained).marked("main", "E4.8a"),
        bound("epsilon by the accountant, 60 to 700 rounds; add or remove",
              [run[0] for run in long], accounted).marked("remark"),
    )  # fmt: skip


def remark_6() -> Parts:
    """Compare the budget with attacks at batches of 20 records, T = 10, 100 and 1,000.

    Short runs have little noise for one record of a batch. The order of the risk is that of Theorem
    12, which needs a larger T than any simulation has.
    """
    runs = [_releases(1.0, T, CONSTANT) for T in (10, 100, 1000)]
    attained = [lower_bound(releases, DELTA).epsilon for releases in runs]
    return (bound("epsilon by an attack, batches of 20", 1.0, attained).marked("main", "E4.8a"),)


def epsilon_of_q_dpsgd_2(rounds: int) -> float:
    r"""Return a lower bound on the epsilon of Q-DPSGD-2 at the sigma of Remark 10 for epsilon 1.

    The setting is that of :func:`theorem_15`, with T ``rounds``. The sum of an agent's messages
    less the received ones is a sum over the batches with the record, noise of variance
    :math:`\sigma^2 T`, and roundings. Chernoff's inequality bounds the probability that it has the
    wrong sign; a discrete Gaussian has no larger moments :math:`E\,e^{\lambda X}` than the
    continuous one.
    """
    batch, resolution = 20, 1e-6
    alpha, averaging = rounds ** (-1 / 6), rounds**-0.5
    step = alpha * averaging
    factor = theorem15_factor(step=step, resolution=resolution, dim=1, clip=1.0, size=batch)
    sigma = theorem11_sigma(Budget(1.0, DELTA), RECORDS, rounds, factor=factor)
    kept_sums = -np.expm1(np.arange(rounds) * np.log1p(-averaging / 2)) / (averaging / 2)
    shifts = step / batch * kept_sums
    rates = np.geomspace(1e-3, 1e3, 400)[:, None] / (sigma * math.sqrt(rounds))
    log_moments = np.log1p(batch / RECORDS * np.expm1(-rates * shifts)).sum(axis=1)
    log_wrong = log_moments + rates[:, 0] * (
        rounds * resolution + rates[:, 0] * sigma**2 * rounds / 2
    )
    wrong = math.exp(log_wrong.min())
    return math.log((1 - wrong - DELTA) / wrong)


def theorem_15() -> Parts:
    """Compare the budget with a lower bound on the epsilon of all messages at its noise.

    One record has the gradient K or -K, all others 0; p = 1, m = 1,000, B = 20, w_ii = 1/2,
    resolution 1e-6, the steps of Theorem 17 and sigma of Remark 10. For the parameters of the
    figures, no attack on the published sigma is known.
    """
    epsilons = [epsilon_of_q_dpsgd_2(rounds) for rounds in (1000, 10_000)]
    inequality = bound("epsilon 1 over 1,000 and 10,000 rounds", 1.0, epsilons)
    return (inequality.marked("main", "E4.8b"),)


def remark_8() -> Parts:
    """Test that the privacy loss by one use of a record falls as the step sizes fall.

    Step sizes for T from 1e4 to 1e10, w_ii = 1/3. With smaller steps a record affects more
    messages, but each of them by less.
    """
    eta, p = 1e-3, 10
    T = np.geomspace(1e4, 1e10, 13)
    alpha, averaging = T**-0.2, T**-0.6
    shift, retained = 2 * alpha * averaging / 20, 1 - averaging * 2 / 3  # K = 1, batches of 20
    published, exact = (shift + 2 * eta * math.sqrt(p)) ** 2, shift**2 / (1 - retained**2)
    return (
        bound("loss at smaller steps, Theorem 15", published[:-1], published[1:]),
        bound("loss at smaller steps, all messages", exact[:-1], exact[1:]),
    )


def remark_10() -> Parts:
    """Compare the orders of the risk of both methods, and attack Q-DPSGD-2 as in Theorem 15.

    The published orders at 21 numbers of records, budgets and dimensions at which T is at least 1.
    """
    m, epsilon, p = grid([1e2, 1e3, 1e4], [0.1, 1.0, 10.0], [1, 10, 1e4])
    is_feasible = m * epsilon / p >= 1  # T of Remark 10, up to constants
    first, second = p / (m * epsilon) ** 2, (p / (m * epsilon)) ** (4 / 3)
    privacy = bound("epsilon 1 over 1,000 rounds", 1.0, epsilon_of_q_dpsgd_2(1000))
    return (
        bound("risk of Q-DPSGD-1", second[is_feasible], first[is_feasible]),
        privacy.marked("main", "E4.8b"),
    )


def theorem_12() -> Parts:
    """Compute the largest rate delta for which (32) permits a T of at most 1e80.

    T must be at least e^(e^(1/(1 - 2 delta))). Remarks 5 and 9 set delta close to 1/2.
    """
    largest = (1 - 1 / math.log(80 * math.log(10))) / 2
    return (bound("delta", largest, 0.5).marked("remark", "E4.14"),)


def _stationary(noise_in_state: bool) -> Parts:
    """Test the rates of the squared gradient and the disagreement, averaged over a run."""
    agents, horizons = 4, np.geomspace(1e4, 1e10, 13)
    mixing, targets = ring_mixing(agents), np.array([0.5, -1.0, 2.0, 0.1])
    values, vectors = (array[..., ::-1] for array in np.linalg.eigh(mixing))
    pull = vectors.T @ targets
    off_diagonal = mixing - np.diag(np.diag(mixing))
    neighbour_weights = ((off_diagonal @ vectors) ** 2).sum(0)
    gradients, disagreements = [], []
    for T in horizons:
        alpha, averaging = T ** (-1 / 6), T**-0.5
        decay = averaging * (1 - values) + alpha * averaging  # curvature 1
        limits = alpha * averaging * pull / decay
        log = np.log1p(-decay)
        sum_1, sum_2 = (-np.expm1(k * T * log) / -np.expm1(k * log) for k in (1, 2))
        added = averaging**2 * (0.01 if noise_in_state else 0.26) * neighbour_weights
        added = added + (alpha * averaging * 0.5) ** 2 * noise_in_state
        variance = added / (decay * (2 - decay)) * (1 - sum_2 / T)
        squared_bias = limits**2 * (1 - 2 * sum_1 / T + sum_2 / T)
        limit, target = limits[0], pull[0]
        off_optimum = (limit - target) ** 2 + 2 * (target - limit) * limit * sum_1[0] / T
        off_optimum += limit**2 * sum_2[0] / T
        gradients.append((off_optimum + variance[0]) / agents)
        disagreements.append((squared_bias[1:] + variance[1:]).sum() / agents)
    return (
        falls_as("exponent of T, squared gradient", horizons, gradients, 1 / 3),
        falls_as("exponent of T, disagreement", horizons, disagreements, 1 / 3),
    )


def theorem_13() -> Parts:
    """Test the rate O(T^-1/3) of gradient and disagreement of Q-DPSGD-1 on smooth losses.

    Four agents on a ring, different quadratics, exact moments at T from 1e4 to 1e10. The convex
    case could contradict the statement on all smooth functions, not prove it.
    """
    return _stationary(True)


def theorem_17() -> Parts:
    """Test the rate O(T^-1/3) of Q-DPSGD-2 for the problem of Theorem 13."""
    return _stationary(False)


def lemma_15() -> Parts:
    """Test the variances of gradients of records and of batches limited by a deadline.

    Items (ii) to (iv) hold for independent records. The size of a batch is V T_d rounded down, and
    the gradient of an empty one is 0 (Remark 4). The deadline of the figures is 0.4.
    """
    gamma, mean, m, n = 1.3, 10.0, 50, 10
    speeds, variances = np.linspace(10, 90, 80_001), []
    for deadline in (0.4, 0.05):
        sizes = np.floor(speeds * deadline)
        batch_variance = np.where(sizes > 0, gamma**2 / np.maximum(sizes, 1), mean**2).mean()
        claimed = 2 * gamma**2 * max((1 / speeds).mean() / deadline, 1 / m)
        variances.append((claimed, batch_variance + gamma**2 / m))
    exact = gamma**2 * np.array([1 / m, 1 / (n * m), 1 / m - 1 / (n * m)])
    stated = gamma**2 * np.array([1 / m, 1 / (n * m), 1 / m + 1 / (n * m)])
    short = bound("variance of a batch, item (vi), deadline 0.05", *variances[1])
    return (
        bound("variance, items (ii) to (iv)", stated, exact),
        bound("variance of a batch, item (vi), deadline 0.4", *variances[0]),
        short.marked("detail", "E4.16"),
    )


def lemma_18() -> Parts:
    """Test the stated rate of the term of c in the recursion (41), a = c = 1.

    As published, and with c T^(-4 delta), as in the proof of Lemma 16. delta = 0.4, T from 1e65 on,
    in the range of the lemma.
    """
    rate = 0.4
    T = np.geomspace(1e65, 1e75, 13)
    factor = T ** (-2 * rate)
    decayed = np.exp(T * np.log1p(-factor))
    fourth, third = (T ** (-power * rate) / factor * (1 - decayed) + decayed for power in (4, 3))
    published = falls_as("exponent of T, as published", T, third, 2 * rate)
    return (
        falls_as("exponent of T, c T^(-4 delta)", T, fourth, 2 * rate),
        published.marked("detail", "E4.13"),
    )


def lemma_19() -> Parts:
    """Test the sensitivity of a stochastically rounded model, for 1,000 random models and batches.

    Pairs of gradients of norm K, the roundings as far apart as they can be.
    """
    rng, pairs = np.random.default_rng(1), []
    for _ in range(1000):
        K, step, batch = rng.uniform(0.1, 2), rng.uniform(1e-3, 0.5), rng.integers(1, 30)
        p, eta = int(rng.integers(1, 6)), rng.choice([1e-3, 0.1])
        slopes = vectors_of_norm(rng, K, (2, p))
        models = rng.normal(size=p) - step * slopes / batch
        lower, upper = eta * np.floor(models[0] / eta), eta * np.ceil(models[1] / eta)
        pairs.append((2 * K * step / batch + 2 * eta * math.sqrt(p), np.linalg.norm(lower - upper)))
    return (bound("change of Q(x)", *np.array(pairs).T),)
