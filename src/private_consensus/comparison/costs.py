"""Costs of a run: messages, bits, and gradients of single records.

The averaging of released values after the last iteration (Showkatbakhsh et al.) is not counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from private_consensus.core.algorithms.base import Algorithm

BITS = 64
"""Bits of an uncompressed number."""
WITHOUT_MESSAGES = {"coordinate_descent", "local_training"}
"""Algorithms that send nothing at intermediate iterations."""
STAR = {"dp_admm", "secure_aggregation"}
"""Algorithms with a server or a secure sum: one message to it and one back per agent."""
SOLVES = {
    "admm", "d_zoa", "dvp", "exact_admm", "ipp_admm", "m_admm", "one_shot_averaging", "p_admm",
    "pp_admm", "pp_admm_renyi", "pr_admm", "r_admm",
}  # fmt: skip
"""Algorithms that solve a minimisation in every iteration; their gradients are not counted."""
DATA_USED_ONCE = {"muffliato", "one_shot_averaging"}
"""Algorithms that use data in the first iteration only."""


def messages_of(name: str, network: Any, horizon: int) -> float:
    """Return the number of messages of all agents in a run without missing agents.

    Parameters
    ----------
    name : str
        Name of the algorithm.
    network : Network
        Graph of the run.
    horizon : int
        Number of iterations.

    Returns
    -------
    float
        One message per neighbour and round; two per agent and round for algorithms with a server.
    """
    if name in WITHOUT_MESSAGES:
        return 0.0
    messages_per_round = 2 * network.n_agents if name in STAR else network.degrees.sum()
    return float(horizon * messages_per_round)


def bits_of(messages: Any, problem: Any, recorded: dict[str, np.ndarray], horizon: int) -> Any:
    """Return the number of bits of all messages.

    Parameters
    ----------
    messages : array_like
        Number of messages of each run.
    problem : Problem
        Problem, for the dimension of a message.
    recorded : dict of str to ndarray
        Quantities of the last iteration. If ``bits`` is among them, the algorithm counts its own
        bits, which are scaled to the number of rounds with messages.
    horizon : int
        Number of iterations.

    Returns
    -------
    array_like
    """
    if "bits" in recorded:
        return recorded["bits"] * (messages / horizon)
    return messages * problem.dim * BITS


def gradients_of(
    name: str, algorithm: Algorithm, problem: Any, records: int, horizon: int
) -> float:
    """Return the number of gradients of single records that all agents compute.

    Parameters
    ----------
    name : str
        Name of the algorithm.
    algorithm : Algorithm
        Algorithm with its parameters; the attribute ``B`` is a batch size.
    problem : Problem
        Problem, for the number of agents.
    records : int
        Number of records of all agents together.
    horizon : int
        Number of iterations.

    Returns
    -------
    float
        NaN for an algorithm that solves a minimisation in every iteration.
    """
    if name in SOLVES:
        return float("nan")
    batch = getattr(algorithm, "B", None)
    if batch is not None:
        return float(horizon * problem.n_agents * np.max(batch))
    return float(records * (1 if name in DATA_USED_ONCE else horizon))
