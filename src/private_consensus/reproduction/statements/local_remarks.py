r"""Xiao et al.: sentences on coordinate descent, sampling of records and general graphs."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from scipy.stats import binom

from private_consensus.core.networks import metropolis_mixing
from private_consensus.privacy import gaussian_epsilon

from .base import Parts, at_least, bound, equal, falls_as
from .common import adjacency_of

DIM, ROUNDS = 14, 300
"""Coordinates and iterations of the experiment on coordinate descent."""


def mu_of_coordinate_descent(
    epsilon: float, excess: float, counts: np.ndarray, changes: np.ndarray
) -> np.ndarray:
    r"""Return the Gaussian-DP :math:`\mu` of all messages of private coordinate descent.

    Coordinate l is chosen :math:`A_l` times, and each of its messages moves by
    :math:`\mathcal B_l^c / \hat M`. With
    :math:`\sigma^2 = (1+a)(\mathcal B^c)^2K/(\epsilon^2\hat M^2d)` the messages are
    :math:`\mu`-Gaussian DP with :math:`\mu^2 = \sum_l A_l(\mathcal B_l^c/\hat M)^2/\sigma^2`. a,
    ``excess``, is the allowed excess of a count over its mean. Counts and changes are [..., d].
    """
    squares = changes**2
    mean_count = counts.sum(-1) / counts.shape[-1]
    variance = (1 + excess) * squares.sum(-1) * mean_count / epsilon**2
    return np.sqrt((counts * squares).sum(-1) / variance)


def sentence_1() -> Parts:
    """Compare the epsilon of private coordinate descent with the one in its noise formula.

    d = 14, K = 300, as in the experiment; a from 0.5 to 2, 500 random counts and gradients. With
    this noise, mu is at most epsilon, which does not bound epsilon: the formula lacks ln(1/delta),
    which footnote 5 treats as a constant.
    """
    rng = np.random.default_rng(1)
    budgets, excesses = np.array([0.1, 0.5, 1.0, 2.0, 5.0]), np.array([0.5, 1.0, 2.0])
    counts = rng.multinomial(ROUNDS, np.full(DIM, 1 / DIM), size=500)
    changes = rng.dirichlet(np.full(DIM, 0.3), size=500) ** 0.5
    stated, mus = [], []
    for epsilon, excess in product(budgets, excesses):
        is_within_excess = counts.max(-1) < (1 + excess) * ROUNDS / DIM
        mus.append(
            mu_of_coordinate_descent(
                epsilon, excess, counts[is_within_excess], changes[is_within_excess]
            ).max()
        )
        stated.append(epsilon)
    chernoff, tails = [], []
    for excess, rounds in product((0.1, 0.3, 1.0, 2.0, 4.0), (ROUNDS, 10 * ROUNDS)):
        mean_count = rounds / DIM
        min_count = math.ceil((1 + excess) * mean_count - 1e-9)
        chernoff.append(math.exp(-(excess**2) * mean_count / (2 + excess)))
        tails.append(float(binom.sf(min_count - 1, rounds, 1 / DIM)))
    even_counts = np.full(DIM, ROUNDS / DIM)
    mus_at_even_counts = [
        float(mu_of_coordinate_descent(e, 1.0, even_counts, np.ones(DIM))) for e in budgets
    ]
    losses = [float(gaussian_epsilon(mu, 1e-5)) for mu in mus_at_even_counts]
    return (
        bound("mu, no coordinate chosen (1 + a) K/d times", stated, mus),
        bound("probability that a coordinate is chosen (1 + a) K/d times", chernoff, tails),
        bound("epsilon at delta = 1e-5, a = 1, all coordinates chosen K/d times", budgets,
              losses).marked(erratum="E1.10"),
    )  # fmt: skip


def _largest_loss(shift: float, moved_fraction: float) -> float:
    """Return the largest log-ratio of a mixture of two Laplace densities to the first density."""
    outputs = np.linspace(-20, shift + 20, 4001)
    first, second = np.exp(-np.abs(outputs)), np.exp(-np.abs(outputs - shift))
    mixture = (1 - moved_fraction) * first + moved_fraction * second
    return float(np.abs(np.log(mixture / first)).max())


def sentence_2() -> Parts:
    """Compare the privacy loss of a gradient of sampled records with that of all records.

    One step with Laplace noise, the mean gradient of 1 to 50 of 100 records. In Definition 1, an
    agent may replace its function. Every batch then changes by the same amount, and sampling does
    not reduce the loss. In the experiments, one record may change. By convexity, the loss of a
    batch is then never below that of all records at equal noise. However, sampling amplifies the
    privacy of a batch against one whose records are known.
    """
    records, losses = 100, (0.1, 1.0, 10.0)
    batches = (1, 5, 20, 50)
    every_record = [_largest_loss(loss, 1.0) for loss in losses]
    full, sampled, fixed_batch = [], [], []
    for loss, batch in product(losses, batches):
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


def _losses(agents: int) -> tuple[np.ndarray, float, float]:
    r"""Return centres :math:`a_i`, and minimiser and minimum of :math:`\sum\sqrt{1+(x-a_i)^2}`."""
    centres = np.linspace(-1, 3, agents) ** 2 - 1
    grid = np.linspace(-2, 9, 11_001)
    sums = np.sqrt(1 + (grid[:, None] - centres) ** 2).sum(1)
    return centres, float(grid[sums.argmin()]), float(sums.min())


def excess_on_a_graph(
    weights: np.ndarray, horizons: np.ndarray, noise: float = 0.0, runs: int = 1
) -> np.ndarray:
    r"""Return the mean excess of the averaged iterate of descent with steps :math:`1/\sqrt k`.

    Agents have the losses :math:`\sqrt{1+(x-a_i)^2}`, which sum to the objective. ``weights`` is
    the mixing matrix, ``horizons`` are numbers of iterations K, and ``noise`` is V, the standard
    deviation of the noise over the step size.
    """
    rng, agents = np.random.default_rng(4), len(weights)
    targets, _, min_loss = _losses(agents)
    x, total, excess = np.full((runs, agents), 3.0), np.zeros(runs), []
    for k in range(1, int(horizons[-1]) + 1):
        total += x.mean(1)
        if k in horizons:
            distance = (total / k)[:, None] - targets
            excess.append(float(np.sqrt(1 + distance**2).sum(1).mean()) - min_loss)
        mixed = x @ weights.T
        slope = (mixed - targets) / np.sqrt(1 + (mixed - targets) ** 2)
        if noise:
            slope = slope + noise * rng.standard_normal(slope.shape)
        x = mixed - slope / math.sqrt(k)
    return np.array(excess)


def bound_of_descent(agents: int, K: np.ndarray, V: float) -> np.ndarray:
    """Return the bound of Theorem 3.4 on the excess after K iterations from 3, for c = 1."""
    start = agents * (3.0 - _losses(agents)[1]) ** 2
    steps = agents * (np.log(K) + 2) * np.sqrt(K + 1) * (1 + V**2)
    return (np.sqrt(K) * start + steps) / K


def sentence_3() -> Parts:
    """Compare the error of descent on a ring, a path and a star with the bound of Theorem 3.4.

    Nine agents, losses sqrt(1 + (x - a_i)^2), doubly stochastic (Metropolis) weights as in [8], K
    up to 3,000; noise V of 1 and 3, 50 runs.
    """
    agents, lengths = 9, np.array([30, 100, 300, 1000, 3000])
    mixing = {
        kind: metropolis_mixing(adjacency_of(kind, agents)) for kind in ("ring", "path", "star")
    }
    exponents = [
        falls_as(f"exponent of K, {kind}, without noise", lengths,
                 excess_on_a_graph(weights, lengths), 0.5)
        for kind, weights in mixing.items()
    ]  # fmt: skip
    K = np.array([10, 100, 1000])
    pairs = [
        (bound_of_descent(agents, K, noise), excess_on_a_graph(weights, K, noise, 50))
        for weights, noise in product(mixing.values(), (1.0, 3.0))
    ]
    return (
        *exponents,
        bound("excess with noise on a ring, a path and a star", *np.swapaxes(pairs, 0, 1)),
    )
