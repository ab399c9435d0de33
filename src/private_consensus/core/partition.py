"""Random partitions of records to agents, one partition per run.

Each function has one generator per run and returns row indices ``[runs, agents, size]``. Agents
with fewer records have padding, ``UNUSED``. A run depends on its own generator only, so that more
runs do not change earlier runs. Some records may belong to no agent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from private_consensus.common.errors import require

UNUSED = -1
"""Index that pads the rows of agents with fewer records than the largest agent."""


def partition_iid(
    labels: np.ndarray, sizes: int | Sequence[int], generators: Sequence[np.random.Generator]
) -> np.ndarray:
    """Assign records to agents uniformly at random, without replacement.

    Parameters
    ----------
    labels : ndarray, shape (rows,)
        Labels of the records, of which only the number is used.
    generators : sequence of numpy.random.Generator
        One generator per run.

    Returns
    -------
    ndarray of int, shape (runs, agents, max(sizes))
        Rows of each agent, padded with ``UNUSED``.
    """
    counts = _checked_sizes(sizes, len(labels))
    agent_rows = np.full((len(generators), len(counts), counts.max()), UNUSED)
    filled = np.arange(counts.max()) < counts[:, None]
    for run, generator in enumerate(generators):
        agent_rows[run, filled] = generator.permutation(len(labels))[: counts.sum()]
    return agent_rows


def partition_unequal(
    labels: np.ndarray,
    agents: int,
    total: int,
    generators: Sequence[np.random.Generator],
    *,
    concentration: float = 1.0,
    smallest: int = 1,
) -> np.ndarray:
    """Assign records uniformly at random to agents with Dirichlet-distributed sizes.

    Parameters
    ----------
    labels : ndarray, shape (rows,)
        Labels of the records, of which only the number is used.
    generators : sequence of numpy.random.Generator
        One generator per run.
    concentration : float
        Parameter of the Dirichlet distribution of the sizes; larger values give more equal sizes.

    Returns
    -------
    ndarray of int, shape (runs, agents, largest size)
        Rows of each agent, padded with ``UNUSED``.
    """
    _checked_sizes([smallest] * agents, len(labels))
    require(concentration > 0, "partition.concentration", concentration, "a number > 0")
    expected = f"between {agents * smallest} and the {len(labels)} records"
    require(agents * smallest <= total <= len(labels), "partition.total", total, expected)
    runs = []
    for generator in generators:
        shares = generator.dirichlet(np.full(agents, concentration))
        sizes = smallest + largest_remainders(shares, total - agents * smallest)
        runs.append(np.split(generator.permutation(len(labels))[:total], np.cumsum(sizes)[:-1]))
    return _padded(runs)


def partition_dirichlet(
    labels: np.ndarray,
    sizes: int | Sequence[int],
    generators: Sequence[np.random.Generator],
    *,
    concentration: float,
) -> np.ndarray:
    """Assign records to agents with a Dirichlet-distributed mixture of classes per agent.

    The mean of the mixtures is the frequency of the classes. If too few records of a class remain,
    records of the remaining classes replace them. Each agent has exactly its number of records.

    Parameters
    ----------
    labels : ndarray, shape (rows,)
        Class of each record.
    generators : sequence of numpy.random.Generator
        One generator per run.
    concentration : float
        Parameter of the Dirichlet distribution. With large values, the classes of all agents are
        distributed equally; with small values, most records of an agent have one class.

    Returns
    -------
    ndarray of int, shape (runs, agents, max(sizes))
        Rows of each agent, padded with ``UNUSED``.
    """
    counts = _checked_sizes(sizes, len(labels))
    require(concentration > 0, "partition.concentration", concentration, "a number > 0")
    classes, codes = np.unique(labels, return_inverse=True)
    frequency = np.bincount(codes) / len(codes)
    runs = [
        _skewed_rows(codes, counts, concentration * len(classes) * frequency, generator)
        for generator in generators
    ]
    return _padded(runs)


def sizes_of(agent_rows: np.ndarray) -> np.ndarray:
    """Return the number of records of each agent, ``[runs, agents]``."""
    return (agent_rows != UNUSED).sum(axis=-1)


def label_shares(labels: np.ndarray, agent_rows: np.ndarray) -> np.ndarray:
    """Compute the fraction of each class among each agent's records.

    Parameters
    ----------
    labels : ndarray [rows]
        Class of each record.
    agent_rows : ndarray of int [runs, agents, size]
        Indices of each agent's rows, padded with ``UNUSED``.

    Returns
    -------
    ndarray [runs, agents, classes]
        Fractions that sum to 1 over the classes, in ascending order of the classes.
    """
    classes = np.unique(labels)
    class_codes = np.where(agent_rows == UNUSED, len(labels), agent_rows)
    padded = np.append(np.searchsorted(classes, labels), -1)
    counts = (padded[class_codes][..., None] == np.arange(len(classes))).sum(axis=-2)
    return counts / sizes_of(agent_rows)[..., None]


def _skewed_rows(
    codes: np.ndarray, sizes: np.ndarray, alpha: np.ndarray, generator: np.random.Generator
) -> list[np.ndarray]:
    """Return the rows of each agent of one run; ``alpha`` are the Dirichlet parameters."""
    class_rows = [generator.permutation(np.flatnonzero(codes == c)) for c in range(len(alpha))]
    used_counts = np.zeros(len(alpha), int)
    agents: list[np.ndarray] = [np.empty(0, int)] * len(sizes)
    # In random order: the last agents have the records of the classes that remain.
    for agent in generator.permutation(len(sizes)):
        remaining = np.array([len(s) for s in class_rows]) - used_counts
        mixture = generator.dirichlet(np.maximum(alpha, 1e-3))
        counts = _class_counts(mixture, remaining, int(sizes[agent]))
        pieces = [s[t : t + n] for s, t, n in zip(class_rows, used_counts, counts, strict=True)]
        agents[agent] = generator.permutation(np.concatenate(pieces))
        used_counts += counts
    return agents


def _class_counts(mixture: np.ndarray, remaining: np.ndarray, size: int) -> np.ndarray:
    """Return numbers of records per class, close to ``mixture * size``, with the sum ``size``.

    They do not exceed the numbers of remaining records.
    """
    counts = np.minimum(largest_remainders(mixture, size), remaining)
    while counts.sum() < size:
        available = remaining - counts
        weights = np.where(available > 0, np.maximum(mixture, 1e-12), 0)
        counts += np.minimum(largest_remainders(weights, size - counts.sum()), available)
    return counts


def largest_remainders(shares: np.ndarray, total: int) -> np.ndarray:
    """Round proportional counts to integers that sum to ``total``, by the largest remainders.

    Parameters
    ----------
    shares : ndarray
        Non-negative weights; they need not sum to 1.

    Returns
    -------
    ndarray of int
        One count per weight. Ties go to the earlier weight.
    """
    exact = shares / shares.sum() * total
    counts = np.floor(exact).astype(int)
    counts[np.argsort(counts - exact, kind="stable")[: total - counts.sum()]] += 1
    return counts


def _padded(runs: list[list[np.ndarray]]) -> np.ndarray:
    longest = max(len(rows) for run in runs for rows in run)
    agent_rows = np.full((len(runs), len(runs[0]), longest), UNUSED)
    for r, run in enumerate(runs):
        for a, rows in enumerate(run):
            agent_rows[r, a, : len(rows)] = rows
    return agent_rows


def _checked_sizes(sizes: int | Sequence[int], records: int) -> np.ndarray:
    counts = np.atleast_1d(np.asarray(sizes, int))
    expected = f"at most the {records} records there are"
    require(len(counts) <= records, "partition.agents", len(counts), expected)
    one_each = bool((counts > 0).all())
    require(one_each, "partition.sizes", counts.tolist(), "at least one record per agent")
    require(counts.sum() <= records, "partition.sizes", int(counts.sum()), expected)
    return counts
