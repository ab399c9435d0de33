"""Sums of the privacy losses of single messages, which are no bounds on the total loss.

Messages of gossip share one draw of noise. The published code of Muffliato adds up the losses of
single messages. Two messages together can reveal more than this sum. Example: on a ring of eight,
after three rounds, agent 0 knows the noisy value three hops away exactly, and the sum is 0.053. The
sums are available for comparison only; no accountant uses them.
"""

from __future__ import annotations

import numpy as np

from .systems import one_graph, positive_integer


def gossip_sum(mixing: np.ndarray, horizon: int, observer: int) -> np.ndarray:
    r"""Return the sum of single losses of gossip to one observer, for noise once, for all u.

    .. math:: \sum_{t<T}\sum_{w\in N(v)} (W^t)_{uw}^2/\|(W^t)_w\|^2

    The pairwise loss of Cyffers, Even, Bellet, Massoulie (2022) in units of
    :math:`\Delta^2/\sigma^2`, over the messages :math:`x_0, \dots, x_{T-1}`. NOT a bound on
    :math:`\mu^2`. Its sum over u, :math:`T\deg(v)`, is a bound on the sum of the true losses.

    Parameters
    ----------
    mixing : ndarray, [N, N]
        W, one fixed graph.
    horizon : int
        T, number of rounds.
    observer : int
        v, the observing agent.

    Returns
    -------
    ndarray, [N]
    """
    return _sum(mixing, horizon, observer, np.ones(positive_integer(horizon, "horizon")))


def descent_sum(mixing: np.ndarray, horizon: int, observer: int) -> np.ndarray:
    r"""Return the corrected sum for noise in every round, truncated at the local value, for all u.

    .. math:: \min\bigl(T, \sum_{s<T}(T-s)\sum_{w\in N(v)}(W^s)_{uw}/\|(W^s)_w\|^2\bigr)

    as in the published code of Bellet, Cyffers, Frey, Gaudel, Lereverend, Taiani (2026, arXiv
    2510.17480).

    Parameters
    ----------
    mixing : ndarray, [N, N]
        W, one fixed graph.
    horizon : int
        T, number of rounds.
    observer : int
        v, the observing agent.

    Returns
    -------
    ndarray, [N]
    """
    counts = np.arange(positive_integer(horizon, "horizon"), 0, -1)
    return np.minimum(_sum(mixing, horizon, observer, counts, power=1), horizon)


def _sum(
    mixing: np.ndarray, horizon: int, observer: int, counts: np.ndarray, power: int = 2
) -> np.ndarray:
    mixing = one_graph(mixing)
    neighbours = np.flatnonzero((mixing[observer] != 0) & (np.arange(len(mixing)) != observer))
    total, power_of_mixing = np.zeros(len(mixing)), np.eye(len(mixing))
    for count in counts:
        rows = power_of_mixing[neighbours]
        total += count * (rows**power / (rows**2).sum(1, keepdims=True)).sum(0)
        power_of_mixing = power_of_mixing @ mixing
    return total
