"""Linear systems with noiseless states, two messages per round, pairwise averaging, and ADMM."""

import numpy as np

from private_consensus.privacy.observers import LinearSystem, Round, noised_descent
from private_consensus.privacy.observers.systems import Broadcast


def dimension_exchange(agents):
    """Average exactly along the dimensions of a hypercube, with unit noise once.

    In round r agent i averages with agent i XOR 2^(r-1). The number of agents is a power of 2.
    """
    k = agents.bit_length() - 1
    eye = np.eye(agents)
    pairs = [(eye + eye[np.arange(agents) ^ (1 << r)]) / 2 for r in range(k)]
    once = np.arange(k) == 0
    return noised_descent(np.array(pairs), k, gain=once * 1.0, noise=once * 1.0)


def clean_state(mixing, horizon):
    """Add unit noise to messages only: an agent continues from its own value without noise."""
    eye = np.eye(len(mixing))
    sent = Broadcast(mixing)
    round_ = Round(
        *(mixing, mixing, sent.uses),
        *(eye, eye, eye),
        senders=np.arange(len(eye)),
        receives=sent.heard,
        uses=sent.uses,
        owners=sent.own,
    )
    return LinearSystem([round_] * horizon, len(eye), eye)


def tracking(mixing, horizon, step, noise=1.0):
    r"""Track gradients p + n with noise n; the messages are v and x - step v.

    .. math:: v \leftarrow W v + \tilde p_t - \tilde p_{t-1}, \qquad x \leftarrow W(x - \eta v)
    """
    n = len(mixing)
    eye, zeros = np.eye(n), np.zeros((n, n))
    tracker = np.hstack([zeros, mixing, -eye])  # of the state (x, v, last noisy gradient)
    half = np.hstack([eye, zeros, zeros]) - step * tracker
    transition = np.vstack([mixing @ half, tracker, np.zeros((n, 3 * n))])
    entered = np.vstack([-step * mixing, eye, eye])
    sent = Broadcast(mixing)
    messages = np.vstack([tracker, half])
    inputs = np.vstack([eye, -step * eye])
    round_ = Round(
        *(transition, entered, noise * entered),
        *(messages, inputs, noise * inputs),
        senders=np.tile(np.arange(n), 2),
        receives=np.tile(sent.heard, (1, 2)),
        uses=np.hstack([sent.uses, sent.uses]),
        owners=sent.own,
        kinds=np.repeat([0, 1], n),
    )
    return LinearSystem([round_] * horizon, n, np.hstack([eye, zeros, zeros]))


def quadratic_admm(adjacency, horizon, curvature, penalty, noise=1.0):
    r"""Run decentralized ADMM with output noise on the losses :math:`q_i x^2/2 - b_i x`, q public.

    The private input is b. Agents continue from the values that they sent.
    """
    n = len(adjacency)
    degrees = adjacency.sum(1)
    gain = 1 / (curvature + 2 * penalty * degrees)
    eye, zeros = np.eye(n), np.zeros((n, n))
    centre = (eye + adjacency / degrees[:, None]) / 2
    moved = np.hstack([(gain * 2 * penalty * degrees)[:, None] * centre, -gain[:, None] * eye])
    dual = penalty * (np.diag(degrees) - adjacency)
    transition = np.vstack([moved, np.hstack([zeros, eye]) + dual @ moved])
    inputs = np.vstack([np.diag(gain), dual * gain])
    noises = noise * np.vstack([eye, dual])
    round_ = Broadcast(adjacency.astype(float)).round(transition, inputs, noises)
    return LinearSystem([round_] * horizon, n, np.hstack([eye, zeros]))
