"""Linear systems of algorithms with several messages, states or noises per agent.

Each is a :class:`~private_consensus.privacy.observers.systems.LinearSystem` with one private input
per agent and round. ``noise`` is a standard deviation, ``gain`` multiplies the input.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from private_consensus.common.errors import require

from .systems import (
    MODEL,
    Broadcast,
    LinearSystem,
    Round,
    checked_number,
    last_output,
    one_graph,
    per_round,
    positive_integer,
)


def chebyshev_gossip(
    mixing: np.ndarray,
    horizon: int,
    *,
    weight: float,
    noise: float = 1.0,
    output: str = MODEL,
) -> LinearSystem:
    r"""Build the system that adds noise once, then averages with acceleration.

    :math:`x_1 = W x_0`, :math:`x_{t+1} = \gamma W x_t + (1-\gamma) x_{t-1}` with :math:`\gamma` =
    ``weight``. The messages are :math:`x_0, \dots, x_{T-1}` (Cyffers, Even, Bellet, Massoulie,
    2022, arXiv 2206.05091). Polynomials of exact degree t span the same space as powers of W. An
    observer therefore learns as much as from plain gossip of equally many rounds.

    Parameters
    ----------
    mixing : ndarray, [N, N]
        W, one fixed graph.
    horizon : int
        T, number of rounds.
    weight : float
        :math:`\gamma`, not 0; 1 is plain gossip.
    noise : float
        :math:`\sigma > 0` of the one draw at the start.
    output : {"model", "message"}
        Final models that :class:`FinalModels` observes: :math:`x_T` after round T, or the last
        message :math:`x_{T-1}`.

    Returns
    -------
    LinearSystem

    Raises
    ------
    InvalidInput
        With the name of the parameter.
    """
    mixing, horizon = one_graph(mixing), positive_integer(horizon, "horizon")
    require(np.isfinite(weight) and weight != 0, "weight", weight, "a finite number, not 0")
    noise = checked_number(noise, "noise")
    n = len(mixing)
    identity, zeros = np.eye(n), np.zeros((n, n))
    steps = [
        np.block([[zeros, zeros], [zeros, zeros]]),
        np.block([[mixing, zeros], [identity, zeros]]),
    ]
    steps.append(np.block([[weight * mixing, (1 - weight) * identity], [identity, zeros]]))
    with_input, without_input = np.vstack([identity, zeros]), np.zeros((2 * n, n))
    sent = Broadcast(mixing)
    entries = [with_input if t == 0 else without_input for t in range(min(horizon, 3))]
    rounds = [sent.round(step, new, noise * new) for step, new in zip(steps, entries, strict=False)]
    rounds += rounds[2:] * (horizon - len(rounds))
    model = np.hstack(
        [mixing, zeros] if horizon == 1 else [weight * mixing, (1 - weight) * identity]
    )
    return LinearSystem(rounds, n, last_output(output, model, np.hstack([identity, zeros])))


def decor(
    mixing: np.ndarray,
    horizon: int,
    *,
    gain: ArrayLike = 1.0,
    own_noise: float = 1.0,
    pair_noise: float = 1.0,
    kept: float = 1.0,
) -> LinearSystem:
    r"""Build the system with noise that cancels between neighbours, and independent noise (DECOR).

    .. math:: y_t = k W y_{t-1} + \gamma_t p_t + s_{ind}\, n_i + s_{pair} \sum_{j \sim i} \pm e_{ij}

    k = ``kept`` is the factor of a state in a step. Pair noise is known to both ends (Allouah,
    Koloskova, El Firdoussi, Jaggi, Guerraoui, "The privacy power of correlated noise in
    decentralized learning", ICML 2024, arXiv 2405.01031).

    Parameters
    ----------
    mixing : ndarray, [N, N]
        W, one fixed graph.
    horizon : int
        T, number of rounds.
    gain : float or ndarray [T]
        :math:`\gamma_t \ge 0`, factor of an input.
    own_noise : float
        :math:`s_{ind} > 0`.
    pair_noise : float
        :math:`s_{pair} \ge 0`.
    kept : float
        k, factor of a state in a step; 1 for fixed inputs.

    Returns
    -------
    LinearSystem

    Raises
    ------
    InvalidInput
        With the name of the parameter.
    """
    mixing, horizon = one_graph(mixing), positive_integer(horizon, "horizon")
    gains = per_round(gain, horizon, "gain")
    own_noise, pair_noise = (
        checked_number(own_noise, "own_noise"),
        checked_number(pair_noise, "pair_noise", zero=True),
    )
    n = len(mixing)
    eye, sent = np.eye(n), Broadcast(mixing)
    ends = np.argwhere(np.triu(sent.heard | sent.heard.T, 1))
    incidence = eye[:, ends[:, 0]] - eye[:, ends[:, 1]]
    noise = np.hstack([own_noise * eye, pair_noise * incidence])
    owners = np.vstack([eye > 0, incidence.T != 0])
    rounds = [sent.round(kept * mixing, eye * g, noise, owners) for g in gains]
    return LinearSystem(_shared(rounds, gains), n, eye, noised_state=True)


def zip_dl(
    mixing: np.ndarray,
    horizon: int,
    *,
    gain: ArrayLike = 1.0,
    noise: ArrayLike = 1.0,
    kept: float = 1.0,
) -> LinearSystem:
    r"""Build the system with noise that cancels at the sender (Zip-DL).

    Agent a sends :math:`x_a' + Z_{a\to v}` to v,

    .. math::
        x_a' = k x_a + \gamma p_a, \qquad
        Z_{a\to v} = Y_{a\to v} - \frac{1}{d_a w_{av}}\sum_j w_{aj} Y_{a\to j}

    over the closed neighbourhood, :math:`d_a` its size, so that :math:`\sum_v w_{av}Z_{a\to v} = 0`
    (Biswas et al., "Low-cost privacy-preserving decentralized learning", PoPETs 2025(3), arXiv
    2403.11795). k = ``kept`` is the factor of a state in a step.

    Parameters
    ----------
    mixing : ndarray, [N, N]
        W, symmetric, positive in every closed neighbourhood.
    horizon : int
        T, number of rounds.
    gain : float or ndarray [T]
        :math:`\gamma_t \ge 0`, factor of an input.
    noise : float or ndarray [T]
        Standard deviation per coordinate of Y, above 0.
    kept : float
        k, factor of a state in a step; 1 for fixed inputs.

    Returns
    -------
    LinearSystem

    Raises
    ------
    InvalidInput
        With the name of the parameter.
    """
    mixing, horizon = one_graph(mixing), positive_integer(horizon, "horizon")
    gains = per_round(gain, horizon, "gain")
    scales = per_round(noise, horizon, "noise", positive=True)
    require(bool((mixing == mixing.T).all()), "mixing", "not symmetric", "symmetric weights")
    require(bool((np.diag(mixing) > 0).all()), "mixing", "w_ii = 0", "positive weights w_ii")
    n = len(mixing)
    eye = np.eye(n)
    pairs = [(a, v) for a in range(n) for v in np.flatnonzero(mixing[a])]
    shaped = _zero_sums(mixing, pairs)
    onward = np.array([mixing[v, a] * (np.arange(n) == v) for a, v in pairs]).T @ shaped
    sent = [k for k, (a, v) in enumerate(pairs) if a != v]
    senders = np.array([pairs[k][0] for k in sent])
    receivers = np.array([pairs[k][1] for k in sent])
    receives = receivers == np.arange(n)[:, None]
    common = {
        "senders": senders,
        "receives": receives,
        "uses": receives * mixing[receivers, senders],
        "owners": np.array([pair[0] for pair in pairs])[:, None] == np.arange(n),
    }
    rounds = [
        Round(
            *(kept * mixing, mixing * g, onward * s),
            *(kept * eye[senders], eye[senders] * g, shaped[sent] * s),
            **common,
        )
        for g, s in zip(gains, scales, strict=True)
    ]
    return LinearSystem(_shared(rounds, gains, scales), n, eye)


def _zero_sums(mixing: np.ndarray, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Return Z of each ordered pair as a combination of all Y."""
    senders = np.array([a for a, _ in pairs])
    weights = np.array([mixing[a, v] for a, v in pairs])
    sizes = (senders[:, None] == senders).sum(1)
    same = senders[:, None] == senders
    return np.eye(len(pairs)) - same * weights / (sizes * weights)[:, None]


def _shared(rounds: list[Round], *numbers: np.ndarray) -> list[Round]:
    """Represent equal rounds by one object, whose matrices are prepared once."""
    first: dict[tuple, Round] = {}
    keys = zip(*numbers, strict=True)
    return [first.setdefault(key, round_) for key, round_ in zip(keys, rounds, strict=True)]
