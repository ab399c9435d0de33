"""Count the records of each agent by label, for figures of partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from private_consensus.core import partition as partitioning
from private_consensus.core.randomness import Streams

from ..datasets import Prepared


def partition_summary(prepared: Prepared, partition: Mapping[str, Any], seed: int) -> pl.DataFrame:
    """Count the records that each agent holds in run 0.

    Parameters
    ----------
    prepared : Prepared
        Prepared data set.
    partition : mapping
        Partition as :class:`.schema.Partition` serializes it.
    seed : int
        Root seed of the random streams.

    Returns
    -------
    DataFrame
        One row per agent and label. ``x`` is the agent, from 1; ``y`` its number of records with
        that label; ``size`` its number of records; ``share`` the ratio y / size.
    """
    rows_of_agents = _agent_rows(prepared.labels, partition, Streams(seed, (0,)).generators("data"))
    sizes = partitioning.sizes_of(rows_of_agents)[0]
    shares = partitioning.label_shares(prepared.labels, rows_of_agents)[0]
    rows = [
        {"agent": agent + 1, "label": int(label), "size": int(size), "share": float(share),
         "x": float(agent + 1), "y": float(round(share * size)), "series": f"label {label:+d}"
         if label < 0 or len(shares[0]) == 2 else f"class {label}"}
        for agent, size in enumerate(sizes)
        for label, share in zip(np.unique(prepared.labels), shares[agent], strict=True)
    ]  # fmt: skip
    empty = pl.lit(None, pl.Float64)
    return pl.DataFrame(rows).with_columns(
        algorithm=pl.lit(""), variant=pl.lit(partition["kind"]), interpretation=pl.lit("resolved"),
        low=empty, high=empty, runs=pl.lit(1), interval=pl.lit(""),
    )  # fmt: skip


def _agent_rows(labels: np.ndarray, partition: Mapping[str, Any], generators) -> np.ndarray:
    agents, records, concentration = map(partition.get, ("agents", "records", "concentration"))
    if partition["kind"] == "unequal":
        return partitioning.partition_unequal(
            labels, agents, agents * records, generators, concentration=concentration
        )
    sizes = [records] * agents
    if partition["kind"] == "dirichlet":
        return partitioning.partition_dirichlet(
            labels, sizes, generators, concentration=concentration
        )
    return partitioning.partition_iid(labels, sizes, generators)
