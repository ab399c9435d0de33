r"""Sums over messages of the privacy loss of each alone, which bound nothing.

Messages of gossip share one draw of noise. Adding up what each reveals by itself, as the published
code of Muffliato does, is neither what a pair of them reveals together nor more than that: on a
ring of eight, after three rounds, agent 0 knows the noised value three hops away exactly, and the
sum says 0.053. Kept to be compared with; no accountant is given it.
"""

from __future__ import annotations

import numpy as np

from .systems import one_graph, whole


def gossip_sum(mixing: np.ndarray, horizon: int, observer: int) -> np.ndarray:
    r""":math:`\sum_{t<T}\sum_{w\in N(v)} (W^t)_{uw}^2/\|(W^t)_w\|^2` for all u, for noise once.

    The pairwise loss of Cyffers, Even, Bellet, Massoulie (2022) in units of
    :math:`\Delta^2/\sigma^2`, over the messages :math:`x_0, \dots, x_{T-1}`. NOT a bound on
    :math:`\mu^2`. Its sum over u, :math:`T\deg(v)`, does bound the sum of the true ones.

    Returns
    -------
    ndarray, [N]
    """
    return _sum(mixing, horizon, observer, np.ones(whole(horizon, "horizon")))


def descent_sum(mixing: np.ndarray, horizon: int, observer: int) -> np.ndarray:
    r""":math:`\min\bigl(T, \sum_{s<T}(T-s)\sum_{w\in N(v)}(W^s)_{uw}/\|(W^s)_w\|^2\bigr)` for all
    u: the corrected sum for noise in every round, cut at the local value, as in the published code
    of Bellet, Cyffers, Frey, Gaudel, Lereverend, Taiani (2026, arXiv 2510.17480).

    Returns
    -------
    ndarray, [N]
    """
    counts = np.arange(whole(horizon, "horizon"), 0, -1)
    return np.minimum(_sum(mixing, horizon, observer, counts, power=1), horizon)


def _sum(
    mixing: np.ndarray, horizon: int, observer: int, counts: np.ndarray, power: int = 2
) -> np.ndarray:
    mixing = one_graph(mixing)
    heard = np.flatnonzero((mixing[observer] != 0) & (np.arange(len(mixing)) != observer))
    total, now = np.zeros(len(mixing)), np.eye(len(mixing))
    for count in counts:
        rows = now[heard]
        total += count * (rows**power / (rows**2).sum(1, keepdims=True)).sum(0)
        now = now @ mixing
    return total
