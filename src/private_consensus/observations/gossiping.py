r"""Muffliato, Muffliato-GD, MAFALDA-SGD, DECOR, Zip-DL, secure sums and training alone as systems.

``kept`` is what a gradient step leaves of the point at which it is taken: 1 where gradients are
inputs as given, :math:`1 - \\eta N_i` for means, whose curvature is public.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algorithms.muffliato import chebyshev_weight
from ..networks import Network
from ..privacy.observers import (
    LinearSystem,
    Round,
    chebyshev_gossip,
    decor,
    gossip,
    noised_descent,
    zip_dl,
)
from ..privacy.observers.systems import MESSAGE, Broadcast


def averaging(algorithm: Any, network: Network, horizon: int) -> LinearSystem:
    """Return noise once, then gossip; the algorithm publishes its last messages as its models."""
    options = {"noise": float(algorithm.noise.scale), "output": MESSAGE}
    if algorithm.acceleration == "none":
        return gossip(network.mixing, horizon, **options)
    weight = float(chebyshev_weight(network.mixing)[0, 0])
    return chebyshev_gossip(network.mixing, horizon, weight=weight, **options)


def phases(algorithm: Any, network: Network, horizon: int, kept: float) -> LinearSystem:
    """Noised steps with gossip between them; the state has the message before the last as well
    where gossip is accelerated."""
    first = algorithm.noised(horizon)
    gains, scales = algorithm.eta * first, algorithm.eta * algorithm.noise.scale * first
    W = network.mixing
    if algorithm.acceleration == "none":
        moves = np.where(first, kept, 1.0)[:, None, None] * W
        options = {"gain": gains, "noise": scales, "adjacency": network.adjacency}
        return noised_descent(W, horizon, transition=moves, **options)
    n, weight = len(W), float(chebyshev_weight(W)[0, 0])
    eye, none = np.eye(n), np.zeros((n, n))
    sent = Broadcast(W, network.adjacency)
    rounds = []
    for t in range(horizon):
        second = (t - 1) % algorithm.rounds == 0
        moved = np.hstack([W, none] if second else [weight * W, (1 - weight) * eye])
        moved = moved * (kept if first[t] else 1.0)
        transition = np.vstack([moved, np.hstack([eye, none])])
        inputs, noise = (np.vstack([eye * size[t], none]) for size in (gains, scales))
        rounds.append(sent.round(transition, inputs, noise))
    return LinearSystem(rounds, n, np.hstack([eye, none]), noised_state=True)


def filtered(algorithm: Any, network: Network, horizon: int, kept: float) -> LinearSystem:
    """Noise correlated over rounds."""
    eta, noise = float(algorithm.eta), float(algorithm.eta * algorithm.noise.scale)
    shaped = algorithm.filter_of(horizon)
    independent = np.array_equal(shaped, np.eye(horizon))
    return noised_descent(
        network.mixing,
        horizon,
        gain=eta,
        noise=noise,
        adjacency=network.adjacency,
        transition=kept * network.mixing,
        filter=None if independent else shaped,
    )


def pairwise_noise(algorithm: Any, network: Network, horizon: int, kept: float) -> LinearSystem:
    """Noise that cancels between neighbours, known to both of them."""
    own = float(algorithm.eta * algorithm.noise.scale)
    pair = own * float(np.reshape(algorithm.share(network), -1)[0])
    eta = float(algorithm.eta)
    return decor(network.mixing, horizon, gain=eta, own_noise=own, pair_noise=pair, kept=kept)


def cancelling_noise(algorithm: Any, network: Network, horizon: int, kept: float) -> LinearSystem:
    """Noise that cancels at its sender."""
    eta, noise = float(algorithm.eta), float(algorithm.eta * algorithm.noise.scale)
    return zip_dl(network.mixing, horizon, gain=eta, noise=noise, kept=kept)


def summed(algorithm: Any, network: Network, horizon: int, kept: float) -> LinearSystem:
    """Build the system of secure aggregation: only sums of messages are visible, and each agent
    knows its own noise.
    """
    n = network.n_agents
    everybody = np.ones((1, n))
    eta, noise = float(algorithm.eta), float(algorithm.eta * algorithm.noise.scale)
    eta, share = eta / n, noise / n / np.sqrt(n)
    told = (np.full((1, 1), kept), eta * everybody, share * everybody)
    round_ = Round(
        *(*told, *told),
        senders=np.array([-1]),
        receives=np.ones((n, 1), dtype=bool),
        uses=np.ones((n, 1)),
        owners=np.eye(n, dtype=bool),
    )
    return LinearSystem([round_] * horizon, n, np.ones((n, 1)), noised_state=True, one_model=True)


def alone(algorithm: Any, network: Network, horizon: int, kept: float) -> LinearSystem:
    """Build the system of local training: agents send nothing, and the eavesdropper receives
    every model.
    """
    eta, noise = float(algorithm.eta), float(algorithm.eta * algorithm.noise.scale)
    own = np.eye(network.n_agents)
    return noised_descent(own, horizon, gain=eta, noise=noise, transition=kept * own)
