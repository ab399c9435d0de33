"""Which of several pairs of neighbouring data sets moves the messages most, without any noise."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..algorithms.base import Algorithm
from .execution import execute
from .neighbours import Attack
from .streams import AuditStreams


def strongest(algorithm: Algorithm, candidates: Iterable[Attack], horizon: int) -> Attack:
    """The attack whose two noiseless runs differ most, relative to the declared noise.

    One run a data set, with the same draws: without noise the messages are what is noised, as long
    as it does not depend on noise sent before.
    """
    candidates = list(candidates)
    if len(candidates) == 1:
        return candidates[0]
    return max(candidates, key=lambda attack: _effect(algorithm, attack, horizon))


def _effect(algorithm: Algorithm, attack: Attack, horizon: int) -> float:
    quiet = AuditStreams.labelled("probe", 1).without("noise")
    sent = [
        execute(algorithm, problem, attack.network, quiet, horizon).sent[0, :, attack.agent]
        for problem in attack.pair
    ]
    sites = algorithm.noise_sites(attack.pair[0], attack.network, horizon)
    scale = np.ones((horizon, 1, 1)) if not sites else np.nan_to_num(sites[0].scale, nan=np.inf)
    least = np.broadcast_to(scale, (horizon, *scale.shape[1:])).min(axis=(1, 2))
    both = min(len(least), *map(len, sent))  # a broken copy may send more or fewer on one of them
    apart = np.linalg.norm(sent[0][:both] - sent[1][:both], axis=-1) / least[:both]
    return float(np.nan_to_num((apart**2).sum()))
