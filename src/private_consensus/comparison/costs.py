"""What a run costs: messages, bits, gradients of single records.

Of a second stage that only mixes what was released, to its limit (paper 000), nothing is counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algorithms.base import Algorithm

BITS = 64
"""Of a number that is not compressed."""
SILENT = {"coordinate_descent", "local_training"}
STAR = {"dp_admm", "secure_aggregation"}
"""Algorithms with a server, or a sum that takes the place of one: a message up and one down."""
SOLVES = {
    "admm", "d_zoa", "dvp", "exact_admm", "ipp_admm", "m_admm", "one_shot_averaging", "p_admm",
    "pp_admm", "pp_admm_renyi", "pr_admm", "r_admm",
}  # fmt: skip
"""Algorithms that minimise in every iteration: gradients of records are no measure of that."""
SENT_ONCE = {"muffliato", "one_shot_averaging"}
"""Data are used in the first iteration alone."""


def messages_of(name: str, network: Any, horizon: int) -> float:
    """Messages of all agents in a run in which nobody is missing, one a neighbour and round."""
    if name in SILENT:
        return 0.0
    each = 2 * network.n_agents if name in STAR else network.degrees.sum()
    return float(horizon * each)


def bits_of(messages: Any, problem: Any, shown: dict[str, np.ndarray], horizon: int) -> Any:
    """Bits of all messages; where an algorithm counts its own, those, in as many rounds."""
    if "bits" in shown:
        return shown["bits"] * (messages / horizon)
    return messages * problem.dim * BITS


def gradients_of(
    name: str, algorithm: Algorithm, problem: Any, records: int, horizon: int
) -> float:
    """Gradients of single records that all agents compute; NaN where they minimise instead."""
    if name in SOLVES:
        return float("nan")
    batch = getattr(algorithm, "B", None)
    if batch is not None:
        return float(horizon * problem.n_agents * np.max(batch))
    return float(records * (1 if name in SENT_ONCE else horizon))
