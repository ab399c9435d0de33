r"""Linear systems of gossip algorithms.

They are Muffliato, Muffliato-GD, MAFALDA-SGD, DECOR, Zip-DL, secure sums and local training.
``point_factor`` is the factor of the point at which a gradient step is made. It is 1 if gradients
are fixed inputs, and :math:`1 - \eta N_i` for means, whose curvature is public.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from private_consensus.core.algorithms.muffliato import chebyshev_weight
from private_consensus.core.networks import Network, second_eigenvalue
from private_consensus.privacy.observers import (
    LinearSystem,
    Round,
    chebyshev_gossip,
    decor,
    gossip,
    noised_descent,
    zip_dl,
)
from private_consensus.privacy.observers.systems import MESSAGE, Broadcast


def averaging(algorithm: Any, network: Network, horizon: int) -> LinearSystem:
    """Build the system of gossip with noise in the first round only.

    The algorithm publishes its last messages as its models.

    Parameters
    ----------
    algorithm : Algorithm
        Calibrated Muffliato.
    network : Network
        Graph of the run.
    horizon : int
        Number of rounds.

    Returns
    -------
    LinearSystem
    """
    noise, adjacency = float(algorithm.noise.scale), network.adjacency
    options = {"noise": noise, "output": MESSAGE, "adjacency": adjacency}
    if algorithm.acceleration == "none":
        return gossip(network.mixing, horizon, **options)
    weight = float(chebyshev_weight(second_eigenvalue(network.mixing))[0, 0])
    return chebyshev_gossip(network.mixing, horizon, weight=weight, **options)


def phases(algorithm: Any, network: Network, horizon: int, point_factor: float) -> LinearSystem:
    """Build the system of noisy gradient steps with gossip between them.

    With accelerated gossip the state also contains the message before the last.

    Parameters
    ----------
    algorithm : Algorithm
        Calibrated Muffliato-GD.
    network : Network
        Graph of the run.
    horizon : int
        Number of rounds.
    point_factor : float
        Factor of the point in a gradient step.

    Returns
    -------
    LinearSystem
    """
    is_noised = algorithm.noised(horizon)
    gains, scales = algorithm.eta * is_noised, algorithm.eta * algorithm.noise.scale * is_noised
    W = network.mixing
    if algorithm.acceleration == "none":
        moves = np.where(is_noised, point_factor, 1.0)[:, None, None] * W
        options = {"gain": gains, "noise": scales, "adjacency": network.adjacency}
        return noised_descent(W, horizon, transition=moves, **options)
    n, weight = len(W), float(chebyshev_weight(second_eigenvalue(W))[0, 0])
    identity, none = np.eye(n), np.zeros((n, n))
    sent = Broadcast(W, network.adjacency)
    rounds = []
    for t in range(horizon):
        second = (t - 1) % algorithm.rounds == 0
        moved = np.hstack([W, none] if second else [weight * W, (1 - weight) * identity])
        moved = moved * (point_factor if is_noised[t] else 1.0)
        transition = np.vstack([moved, np.hstack([identity, none])])
        inputs, noise = (np.vstack([identity * size[t], none]) for size in (gains, scales))
        rounds.append(sent.round(transition, inputs, noise))
    return LinearSystem(rounds, n, np.hstack([identity, none]), noised_state=True)


def filtered(algorithm: Any, network: Network, horizon: int, point_factor: float) -> LinearSystem:
    """Build the system of gradient steps with noise that is correlated over rounds.

    Parameters
    ----------
    algorithm : Algorithm
        Calibrated MAFALDA-SGD.
    network : Network
        Graph of the run.
    horizon : int
        Number of rounds.
    point_factor : float
        Factor of the point in a gradient step.

    Returns
    -------
    LinearSystem
    """
    eta, noise = float(algorithm.eta), float(algorithm.eta * algorithm.noise.scale)
    shaped = algorithm.filter_of(horizon)
    independent = np.array_equal(shaped, np.eye(horizon))
    return noised_descent(
        network.mixing,
        horizon,
        gain=eta,
        noise=noise,
        adjacency=network.adjacency,
        transition=point_factor * network.mixing,
        filter=None if independent else shaped,
    )


def pairwise_noise(
    algorithm: Any, network: Network, horizon: int, point_factor: float
) -> LinearSystem:
    """Build the system with noise that cancels between neighbours, and that both of them know.

    Parameters
    ----------
    algorithm : Algorithm
        Calibrated DECOR.
    network : Network
        Graph of the run.
    horizon : int
        Number of rounds.
    point_factor : float
        Factor of the point in a gradient step.

    Returns
    -------
    LinearSystem
    """
    agent_noise_scale = float(algorithm.eta * algorithm.noise.scale)
    pair = agent_noise_scale * float(np.reshape(algorithm.pair_ratio(network), -1)[0])
    eta = float(algorithm.eta)
    return decor(
        network.mixing,
        horizon,
        gain=eta,
        own_noise=agent_noise_scale,
        pair_noise=pair,
        kept=point_factor,
        adjacency=network.adjacency,
    )


def cancelling_noise(
    algorithm: Any, network: Network, horizon: int, point_factor: float
) -> LinearSystem:
    """Build the system with noise that cancels over the messages of its sender.

    Parameters
    ----------
    algorithm : Algorithm
        Calibrated Zip-DL.
    network : Network
        Graph of the run.
    horizon : int
        Number of rounds.
    point_factor : float
        Factor of the point in a gradient step.

    Returns
    -------
    LinearSystem
    """
    eta, noise = float(algorithm.eta), float(algorithm.eta * algorithm.noise.scale)
    return zip_dl(network.mixing, horizon, gain=eta, noise=noise, kept=point_factor)


def summed(algorithm: Any, network: Network, horizon: int, point_factor: float) -> LinearSystem:
    """Build the system of secure aggregation: only sums of messages are visible.

    Each agent knows its own noise.

    Parameters
    ----------
    algorithm : Algorithm
        Calibrated secure aggregation.
    network : Network
        Graph of the run.
    horizon : int
        Number of rounds.
    point_factor : float
        Factor of the point in a gradient step.

    Returns
    -------
    LinearSystem
    """
    n = network.n_agents
    all_agents = np.ones((1, n))
    eta, noise = float(algorithm.eta), float(algorithm.eta * algorithm.noise.scale)
    eta, share = eta / n, noise / n / np.sqrt(n)
    matrices = (np.full((1, 1), point_factor), eta * all_agents, share * all_agents)
    round_ = Round(
        *(*matrices, *matrices),
        senders=np.array([-1]),
        receives=np.ones((n, 1), dtype=bool),
        uses=np.ones((n, 1)),
        owners=np.eye(n, dtype=bool),
    )
    return LinearSystem([round_] * horizon, n, np.ones((n, 1)), noised_state=True, one_model=True)


def alone(algorithm: Any, network: Network, horizon: int, point_factor: float) -> LinearSystem:
    """Build the system of local training, in which agents send nothing.

    The eavesdropper receives every model.

    Parameters
    ----------
    algorithm : Algorithm
        Calibrated local training.
    network : Network
        Graph, for the number of agents.
    horizon : int
        Number of rounds.
    point_factor : float
        Factor of the point in a gradient step.

    Returns
    -------
    LinearSystem
    """
    eta, noise = float(algorithm.eta), float(algorithm.eta * algorithm.noise.scale)
    identity = np.eye(network.n_agents)
    return noised_descent(
        identity, horizon, gain=eta, noise=noise, transition=point_factor * identity
    )
