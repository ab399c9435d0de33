"""Partitions of records to agents: counts by agent and label, as rows of a figure's numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from ..datasets import Prepared, partition
from ..randomness import Streams


def deal_points(prepared: Prepared, deal: Mapping[str, Any], seed: int) -> pl.DataFrame:
    """Records that each agent holds when prepared data are dealt once, as in run 0.

    Parameters
    ----------
    prepared : Prepared
        What is dealt.
    deal : mapping
        As :class:`private_consensus.experiments.schema.Deal` dumps it.
    seed : int
        The seed of the reproduction.

    Returns
    -------
    DataFrame
        A row an agent and label: ``x`` the agent, from 1, ``y`` its records with that label,
        ``size`` all of its records, ``share`` the quotient.
    """
    dealt = _dealt(prepared.labels, deal, Streams(seed, (0,)).generators("data"))
    sizes = partition.sizes_of(dealt)[0]
    shares = partition.label_shares(prepared.labels, dealt)[0]
    rows = [
        {"agent": agent + 1, "label": int(label), "size": int(size), "share": float(share),
         "x": float(agent + 1), "y": float(round(share * size)), "series": f"label {label:+d}"
         if label < 0 or len(shares[0]) == 2 else f"class {label}"}
        for agent, size in enumerate(sizes)
        for label, share in zip(np.unique(prepared.labels), shares[agent], strict=True)
    ]  # fmt: skip
    empty = pl.lit(None, pl.Float64)
    return pl.DataFrame(rows).with_columns(
        algorithm=pl.lit(""), variant=pl.lit(deal["kind"]), reading=pl.lit("resolved"),
        low=empty, high=empty, runs=pl.lit(1), interval=pl.lit(""),
    )  # fmt: skip


def _dealt(labels: np.ndarray, deal: Mapping[str, Any], generators) -> np.ndarray:
    agents, records, concentration = deal["agents"], deal["records"], deal["concentration"]
    if deal["kind"] == "unequal":
        return partition.partition_unequal(
            labels, agents, agents * records, generators, concentration=concentration
        )
    sizes = [records] * agents
    if deal["kind"] == "dirichlet":
        return partition.partition_dirichlet(labels, sizes, generators, concentration=concentration)
    return partition.partition_iid(labels, sizes, generators)
