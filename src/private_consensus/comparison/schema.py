"""Columns of the comparison's results, which statistics and pages are made from.

One row a cell, method, tuning, run and measure. ``epsilon`` is the budget of the cell, at ``delta``
for the observer of the method; ``epsilon_accountant`` is what the accountant finds at the noise
that ran and ``epsilon_lower`` is below which no guarantee lies: a bracket. A row that is not
``proven`` is not ranked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from ..errors import InvalidInput, require
from ..readable import readable

TUNINGS = ("default", "tuned", "tuned_paid")
"""Default parameters; those of the best trial; the same with all trials paid from the budget."""

NEIGHBOUR = "neighbour"
OBSERVERS = ("eavesdropper", "outsider", "sums", NEIGHBOUR, "none")
"""Who must not learn a record: who sees all messages; who sees them without the secrets that pairs
of neighbours share; who sees sums of messages alone, as under secure aggregation; an agent, any one
of them, that sees what its neighbours send it; nobody (no privacy)."""

MEASURES = {
    "excess_loss_mean": "excess loss of what is released, mean over agents",
    "excess_loss_worst": "excess loss of what is released, worst agent",
    "accuracy_mean": "test accuracy of what is released, mean over agents",
    "accuracy_worst": "test accuracy of what is released, worst agent",
    "consensus_error": "mean squared distance of agents from their mean",
    "messages": "messages sent by all agents",
    "bits": "bits sent by all agents",
    "gradient_evaluations": "gradients of single records computed by all agents",
    "seconds": "wall time of a run, in seconds",
}

ENVIRONMENT = {
    "problem": pl.String,
    "agents": pl.Int64,
    "graph": pl.String,
    "partition": pl.String,
    "missing": pl.Float64,
    "links": pl.Float64,
}
CELL = {**ENVIRONMENT, "epsilon": pl.Float64}
COLUMNS = {
    **CELL,
    "delta": pl.Float64,
    "observer": pl.String,
    "method": pl.String,
    "label": pl.String,
    "tuning": pl.String,
    "run": pl.Int64,
    "measure": pl.String,
    "value": pl.Float64,
    "proven": pl.Boolean,
    "epsilon_accountant": pl.Float64,
    "epsilon_lower": pl.Float64,
}
KEYS = [*CELL, "observer", "method", "tuning", "run", "measure"]


def read_results(path: str | Path) -> pl.DataFrame:
    """Results of a comparison from a Parquet file.

    Raises
    ------
    InvalidInput
        For a file that is none, a column that is missing or of another type, an unknown measure,
        tuning or observer, a row that is there twice, or a guarantee that its rows contradict.
    """
    with readable(path):
        frame = pl.read_parquet(path)
    return checked(frame, str(path))


def checked(frame: pl.DataFrame, name: str = "results") -> pl.DataFrame:
    """The columns of :data:`COLUMNS` in order, after all that can be wrong with them."""
    for column, kind in COLUMNS.items():
        found = frame.schema.get(column)
        require(found == kind, f"{name}.{column}", found, f"a column of {kind}")
    frame = frame.select(list(COLUMNS))
    for column, known in {"measure": MEASURES, "tuning": TUNINGS, "observer": OBSERVERS}.items():
        for value in frame[column].unique():
            require(value in known, f"{name}.{column}", value, f"one of {', '.join(known)}")
    twice = frame.filter(pl.struct(KEYS).is_duplicated())
    if twice.height:
        raise InvalidInput(name, _first(twice), "every row once")
    beyond = frame.filter(
        pl.col("proven")
        & (pl.col("observer") != "none")
        & ~(pl.col("epsilon_accountant") <= pl.col("epsilon"))
    )
    if beyond.height:
        raise InvalidInput(f"{name}.epsilon_accountant", _first(beyond), "at most the budget")
    return frame


def _first(frame: pl.DataFrame) -> dict[str, Any]:
    return frame.select(KEYS).row(0, named=True)
