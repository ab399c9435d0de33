r"""Statements about single observers: Muffliato, secure sums, DECOR, MAFALDA-SGD and Zip-DL.

Losses are :math:`\mu^2`, in units of the squared change over the variance of an agent's noise.
Certificates bound them from both sides.
"""

from __future__ import annotations

import numpy as np

from private_consensus.core.algorithms.decor import DECOR
from private_consensus.core.networks import Network, metropolis_mixing
from private_consensus.core.randomness import generator
from private_consensus.privacy.observers import (
    Coalition,
    Constant,
    Eavesdropper,
    LinearSystem,
    Observer,
    Once,
    SecureSums,
    agent,
    all_victims,
    chebyshev_gossip,
    decor,
    gossip,
    mu,
    noised_descent,
    zip_dl,
)
from private_consensus.privacy.observers.sampling import (
    discriminant_mu,
    sampled_views,
    standard_error,
)
from private_consensus.privacy.observers.single_losses import gossip_sum
from private_consensus.privacy.observers.temporal import error_gram, noise_energy, optimal_factor

from .base import StatementResult, bound, conclude, equal
from .common import adjacency_of

SOURCES = {
    "muffliato": "Cyffers, Even, Bellet, Massoulie, NeurIPS 2022",
    "secure": "Koskela, Kulkarni, 2025, arXiv 2505.19969",
    "decor": "Allouah et al., ICML 2024",
    "mafalda": "Bellet et al., ICLR 2026",
    "zip": "Biswas et al., PoPETs 2025(3)",
}
CERTIFIED = 1e-6
"""Largest relative difference of the lower and the upper bound on a loss."""
RUNS = 4000
"""Number of sampled views."""


def _graph(name: str, agents: int) -> Network:
    """Return a graph with Metropolis weights."""
    adjacency = adjacency_of(name, agents).astype(bool)
    return Network(adjacency, metropolis_mixing(adjacency))


def _squares(system: LinearSystem, observer: Observer) -> dict[int, tuple[float, float]]:
    """Return lower and upper bounds on mu^2 for every target agent."""
    brackets = all_victims(system, observer, Constant())
    return {u: (bracket.lower**2, bracket.upper**2) for u, bracket in brackets.items()}


def muffliato_1() -> StatementResult:
    """Test that the sum of the losses of single messages bounds the loss of each pair of agents."""
    graph = _graph("ring", 8)
    stated = gossip_sum(graph.mixing, 3, 0)
    exact = _squares(gossip(graph.mixing, 3), agent(0))
    views = sampled_views(
        gossip(graph.mixing, 3), agent(0), 3, np.array([1.0, 0, 0]), RUNS, generator(7, "views")
    )
    attained_mu = max(discriminant_mu(*views) - 5 * standard_error(1.0, RUNS // 2), 0.0)
    return conclude(
        bound("mu^2 of all agents to agent 0", stated[1:], [exact[u][0] for u in range(1, 8)]),
        bound("mu^2 that sampled views attain, of agent 3", stated[3], attained_mu**2),
        description=f"{SOURCES['muffliato']}, as computed by its published code. Ring of 8, "
        "Metropolis weights, three rounds: all messages contain the same draw of noise, so that "
        "agent 0 can compute the noisy value of agent 3. The second part learns a discriminant "
        f"from {RUNS // 2} runs without a formula; five standard errors are subtracted.",
    )


def muffliato_2() -> StatementResult:
    """Test that the losses to one agent sum to at most the number of values that it receives."""
    pairs = []
    for name, agents in (("ring", 8), ("star", 6), ("path", 6)):
        graph = _graph(name, agents)
        for rounds in (1, 2, 3):
            squares = _squares(gossip(graph.mixing, rounds), agent(1))
            received_values = rounds * int(graph.degrees[1])
            pairs.append((received_values, sum(upper for _, upper in squares.values())))
    description = (
        f"{SOURCES['muffliato']}, Theorem 1. Ring of 8, star of 6, path of 6, one to three rounds."
    )
    return conclude(
        bound("sum of mu^2 over target agents", *np.array(pairs).T, CERTIFIED),
        description=description,
    )


def chebyshev_1() -> StatementResult:
    """Test that accelerated gossip has the privacy loss of plain gossip with as many rounds."""
    mixing = _graph("path", 6).mixing
    plain, accelerated = (
        _squares(system, agent(0))
        for system in (gossip(mixing, 4), chebyshev_gossip(mixing, 4, weight=1.5))
    )
    targets = range(1, 5)  # agent 5 is too far away in both cases
    stated, measured = ([squares[u][1] for u in targets] for squares in (plain, accelerated))
    description = (
        f"{SOURCES['muffliato']}. Path of 6, four rounds; polynomials of the same degrees."
    )
    return conclude(
        equal("mu^2 of an agent to the end", stated, measured, CERTIFIED), description=description
    )


def secure_sums_1() -> StatementResult:
    """Test that the mean loss under secure sums grows with the rounds as in central aggregation."""
    pairs = []
    for name, agents in (("ring", 6), ("path", 5), ("complete", 4)):
        graph = _graph(name, agents)
        for rounds in (1, 3, 6):
            squares = _squares(noised_descent(graph.mixing, rounds), SecureSums((0,)))
            pairs.append((rounds / (agents - 1), np.mean([upper for _, upper in squares.values()])))
    description = (
        f"{SOURCES['secure']}: O(T), whereas earlier bounds grew like T^2. Fresh noise, the same "
        "change in every round. On every graph, the mean over target agents equals that of a sum "
        "at a server, T/(N-1). This mean is no guarantee for a single agent."
    )
    return conclude(
        equal("mean of mu^2 over target agents", *np.array(pairs).T, CERTIFIED),
        description=description,
    )


def decor_1() -> StatementResult:
    """Test that the loss of DECOR is within a constant factor of that with a server's noise."""
    stated, measured = [], []
    for name in ("path", "ring", "star", "complete"):
        for agents in (4, 9):
            inverse = np.linalg.inv(DECOR().covariance(_graph(name, agents)))
            stated.append(2.0 / agents)
            measured.append(np.diag(inverse).max())
    description = f"{SOURCES['decor']}. s_pair^2 = (N-2) s_ind^2 / a, a the algebraic connectivity."
    return conclude(bound("mu^2 of a round, s_ind = 1", stated, measured), description=description)


def decor_2() -> StatementResult:
    """Test the loss of DECOR to a curious neighbour, on graphs with and without a cycle."""
    path, ring = _graph("path", 5), _graph("ring", 5)
    path_loss, ring_loss = (
        mu(decor(graph.mixing, 2, pair_noise=50.0), Coalition((1,)), 0, Constant()).upper ** 2
        for graph in (path, ring)
    )
    return conclude(
        equal("end of a path to its neighbour, two rounds", 2.0, path_loss, CERTIFIED),
        bound("ring, to one neighbour, two rounds", 2.0 / 4 * (1 + 1e-2), ring_loss),
        description=f"{SOURCES['decor']}. s_ind = 1, s_pair = 50. Without its neighbour, the end "
        "of a path has its own noise only. On a ring of five, four connected agents remain, and "
        "the noise of all four counts.",
    )


def mafalda_1() -> StatementResult:
    """Compare the errors of optimal, independent and anti-correlated noise at equal privacy."""
    optimal, independent, anti_pgd = [], [], []
    for name, agents, rounds in (("ring", 10, 8), ("path", 6, 8), ("star", 6, 6)):
        gram = error_gram(_graph(name, agents).mixing, rounds)
        factors = optimal_factor(gram), np.eye(rounds), np.tril(np.ones((rounds, rounds)))
        for energies, factor in zip((optimal, independent, anti_pgd), factors, strict=True):
            energies.append(noise_energy(gram, factor))
    return conclude(
        bound("error of the optimum against independent noise", independent, optimal),
        bound("error of independent noise against anti-PGD", anti_pgd, independent),
        description=f"{SOURCES['mafalda']}: squared error of all models, one round of an agent "
        "changes. Ring of 10, path and star of 6.",
    )


def mafalda_2() -> StatementResult:
    """Test that the optimal noise for the eavesdropper is not optimal for every pair.

    Not stated by the paper. Path of 6, twelve rounds, one of them changes.
    """
    mixing, rounds = _graph("path", 6).mixing, 12
    factor = optimal_factor(error_gram(mixing, rounds))
    filters = (None, np.tril(np.linalg.inv(factor)))
    systems = [noised_descent(mixing, rounds, filter=noise_filter) for noise_filter in filters]
    pairs = [mu(system, agent(0), 5, Once()) for system in systems]
    eavesdropper_losses = [mu(system, Eavesdropper(), 5, Once()).upper ** 2 for system in systems]
    return conclude(
        equal("the eavesdropper's mu^2", eavesdropper_losses[0], eavesdropper_losses[1], CERTIFIED),
        bound("mu^2 of one end of a path to the other", pairs[0].upper ** 2, pairs[1].lower ** 2),
        compound=True,
    )


def zip_dl_1() -> StatementResult:
    """Test the loss of Zip-DL to a neighbour in one round with equal weights."""
    pairs = []
    for name, agents, degree in (("ring", 6, 2), ("complete", 4, 3)):
        system = zip_dl(_graph(name, agents).mixing, 1)
        pairs.append(((degree + 1) / degree, mu(system, agent(0), 1, Constant()).upper ** 2))
    description = (
        f"{SOURCES['zip']}: one message has the noise of d of d + 1 draws. Ring of 6, four agents."
    )
    return conclude(
        equal("mu^2 of a neighbour", *np.array(pairs).T, CERTIFIED), description=description
    )


def zip_dl_2() -> StatementResult:
    """Compare the loss of Zip-DL to an eavesdropper with its loss to a neighbour."""
    system = zip_dl(_graph("ring", 6).mixing, 1)
    neighbour = mu(system, agent(0), 1, Constant()).upper ** 2
    eavesdropper = mu(system, Eavesdropper(), 1, Constant()).lower ** 2
    description = (
        f"Not stated by {SOURCES['zip']}, whose observers are agents. d (d + 1) = 6 on a ring."
    )
    return conclude(
        bound("mu^2 of an eavesdropper", neighbour, eavesdropper), description=description
    )
