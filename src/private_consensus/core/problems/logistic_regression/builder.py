"""Construction of logistic regression from prepared records."""

from typing import Literal

import numpy as np

from private_consensus.common.arrays import require_each, require_rows_within
from private_consensus.common.errors import require

from ...parameters import Count, FiniteNonNegative, FinitePositive, Positive, validated
from ...randomness import Streams
from .objective import Coding, LogisticRegression


def require_records(agents: int, records: int, rows: int) -> None:
    """Refuse more records per agent than there are rows; one row remains for the test."""
    largest = (rows - 1) // agents
    expected = f"a whole number >= 1 and <= {largest}: {rows} rows for {agents} agents and a test"
    require(1 <= records <= largest, "problem.records", records, expected)


@validated
def build(
    streams: Streams,
    agents: int,
    *,
    prepared,
    records: Count,
    ridge: FiniteNonNegative,
    box: Positive = np.inf,
    weight: float | str = 1.0,
    loss_scale: FinitePositive = 1.0,
    test_rows: Count | None = None,
    partition: Literal["shared", "per_run"] = "shared",
    coding: Coding = "signed",
    nonnegative: bool = False,
) -> LogisticRegression:
    r"""Distribute prepared rows to agents at random; the remaining rows are the test set.

    Parameters
    ----------
    streams : Streams
        Random streams; the partition comes from the stream ``data``.
    agents : int
        Number of agents.
    prepared : object
        Prepared records: ``features`` (rows of norm <= 1) and ``labels`` in {-1, +1}.
    records : int
        Number of records per agent.
    ridge : float
        Regularisation per record: an agent's :math:`\lambda` is ``records * weight * ridge``.
    box : float
        Bound R of the domain :math:`[-R, R]^d`.
    weight : float or "mean"
        Weight of one record's loss; "mean" is ``loss_scale`` / records.
    loss_scale : float
        Factor C of the mean loss and of the ridge, as in earlier work that Ding cites.
    test_rows : int, optional
        Largest number of test rows.
    partition : {"shared", "per_run"}
        One partition for all runs, or a new one for each run.
    coding : {"signed", "zero_one"}
        Labels as prepared, or 1 for the negative class and 0 for the positive class (Xiao et al.).
    nonnegative : bool
        Whether the preparation makes all features nonnegative for every data set.

    Returns
    -------
    LogisticRegression

    Raises
    ------
    InvalidInput
        If there are not enough rows, the norm of a row exceeds 1, or labels are coded otherwise.
    """
    rows = len(prepared.labels)
    require_records(agents, records, rows)
    labels = np.asarray(prepared.labels).astype(float)
    require_each(np.abs(labels) == 1, "problem.prepared.labels", labels, ("row",), "-1 or 1")
    features = np.asarray(prepared.features)
    require_rows_within("problem.prepared.features", features, 1.0, ("row", "coordinate"))
    labels = labels if coding == "signed" else (labels < 0).astype(float)
    order = _order(streams, rows, partition)
    training, remaining = order[..., : agents * records], order[..., agents * records :]
    remaining = remaining[..., :test_rows]
    weight = _weight(weight, loss_scale, records)
    shape = (*order.shape[:-1], agents, records)
    return LogisticRegression(
        prepared.features[training].reshape(*shape, -1),
        labels[training].reshape(shape),
        prepared.features[remaining],
        labels[remaining],
        weight,
        ridge * records * weight,
        box,
        coding,
        nonnegative=nonnegative,
    )


def _weight(weight: float | str, loss_scale: float, records: int) -> float:
    require(
        weight == "mean" or loss_scale == 1.0,
        "problem.loss_scale",
        loss_scale,
        "1 unless problem.weight is mean",
    )
    return loss_scale / records if weight == "mean" else float(weight)


def _order(streams: Streams, rows: int, partition: str) -> np.ndarray:
    """Return the rows in random order, ``[rows]`` or ``[runs, rows]``."""
    if partition == "shared":
        return streams.shared("data").permutation(rows)
    return np.stack([generator.permutation(rows) for generator in streams.generators("data")])
